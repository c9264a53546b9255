"""The packages that an installed distribution requires, read from its metadata, so that no list has to be kept here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)\s*(?:\[(?P<extras>[^\]]*)\])?\s*\(?(?P<bounds>[^;)]*)\)?\s*(?:;(?P<marker>.*))?"
)
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
_BOUND = re.compile(r"(>=|<=|==|!=|<|>)\s*([\w.]+)")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A required distribution, the extras of it, its bounds such as (">=", "4.2"), and the extra that asks for it."""

    name: str
    extras: tuple[str, ...]
    bounds: tuple[tuple[str, str], ...]
    extra: str

    @property
    def shown(self) -> str:
        """The bounds as text: `>=2.2,<3`."""
        return ",".join(f"{operator}{version}" for operator, version in self.bounds)

    def admits(self, version: str) -> bool:
        """Return whether a version lies within the bounds; only leading numbers are compared."""
        return all(_holds(version, operator, bound) for operator, bound in self.bounds)


def requirements_of(distribution: str, extra: str = "") -> list[Requirement]:
    """Return what a distribution requires, by itself or for an extra. Empty if it is not installed."""
    return [found for found in _all_of(distribution) if found.extra == extra]


def extras_of(distribution: str) -> list[str]:
    """Return the names of the extras of an installed distribution, or an empty list."""
    return sorted({found.extra for found in _all_of(distribution)} - {""})


def version_of(distribution: str) -> str | None:
    """Return the installed version of a distribution, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def parse_version(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: `4.3.0.dev1` is (4, 3, 0)."""
    leading = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in leading[0].split(".")) if leading else ()


def _all_of(distribution: str) -> Iterator[Requirement]:
    try:
        texts = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return
    for text in texts:
        found = _REQUIREMENT.match(text)
        if found is None:
            continue
        extra = _EXTRA.search(found["marker"] or "")
        yield Requirement(
            name=found["name"],
            extras=tuple(part.strip() for part in (found["extras"] or "").split(",") if part.strip()),
            bounds=tuple(sorted(_BOUND.findall(found["bounds"]), reverse=True)),  # the lower bound first
            extra=extra[1] if extra else "",
        )


def _holds(version: str, operator: str, bound: str) -> bool:
    found, limit = parse_version(version), parse_version(bound)
    length = max(len(found), len(limit))
    left, right = found + (0,) * (length - len(found)), limit + (0,) * (length - len(limit))
    return {
        ">=": left >= right,
        "<=": left <= right,
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        ">": left > right,
    }[operator]
