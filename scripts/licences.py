"""Lists what the package requires, with licences: a software bill of materials, and a page. Fails where one is not fit.

    licences.py [--sbom FILE] [--page]

The packages are those of this environment that `pyspark-delta[all]` requires, directly or not. A licence that is
unknown, or asks for more than notices (copyleft), is a failure, unless EXCEPTIONS names the package with a reason.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import uuid
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "developers" / "licences.md"
OURS = "pyspark-delta"

PERMISSIVE = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "CNRI-Python",
    "ISC",
    "MIT",
    "MIT-0",
    "PSF-2.0",
    "Unlicense",
    "Zlib",
}
EXCEPTIONS = {
    "certifi": "MPL-2.0 binds changes of its own files; it is used as published",
    "orjson": "MPL-2.0 binds changes of its own files; it is used as published",
    "psycopg": "LGPL-3.0 binds changes of the library; an optional extra, used as published",
    "psycopg-binary": "as psycopg",
}
# For metadata without an SPDX expression: classifiers, and texts that packages give instead.
SPELLINGS = {
    "apache software license": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "http://www.apache.org/licenses/license-2.0": "Apache-2.0",
    "bsd license": "BSD-3-Clause",
    "bsd": "BSD-3-Clause",
    "bsd 3-clause": "BSD-3-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "gnu lesser general public license v3 (lgplv3)": "LGPL-3.0-only",
    "gnu lesser general public license v3 only": "LGPL-3.0-only",
    "python software foundation license": "PSF-2.0",
    "dual license": "Apache-2.0 OR BSD-3-Clause",  # python-dateutil
}


@dataclass(frozen=True)
class Package:
    """A required distribution: its licence as an SPDX expression (or as found), and the extras that bring it."""

    name: str
    version: str
    licence: str
    extras: tuple[str, ...]
    requires: tuple[str, ...]

    @property
    def problem(self) -> str:
        """Why the licence is not fit, or an empty text."""
        if self.name in EXCEPTIONS or is_permissive(self.licence):
            return ""
        return f"{self.name} {self.version}: {self.licence or 'unknown licence'}"


def main(arguments: list[str]) -> int:
    """Write what is asked for; 1 if a licence is not fit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sbom", metavar="FILE", type=Path, help="write CycloneDX JSON")
    parser.add_argument("--page", action="store_true", help="write docs/developers/licences.md")
    options = parser.parse_args(arguments)
    packages = required()
    if options.sbom:
        options.sbom.write_text(json.dumps(bill_of_materials(packages), indent=2) + "\n", encoding="utf-8")
    if options.page:
        PAGE.write_text(render(packages), encoding="utf-8")
    problems = [package.problem for package in packages if package.problem]
    if problems:
        sys.stderr.write("Licences that are neither permissive nor in EXCEPTIONS:\n" + "\n".join(problems) + "\n")
        return 1
    sys.stdout.write(f"{len(packages)} packages, all with licences that are fit.\n")
    return 0


def is_permissive(expression: str) -> bool:
    """Return whether permissive licences meet an SPDX expression. False for what is not such an expression."""
    words = {"(": "(", ")": ")", "AND": "and", "OR": "or"}
    tokens = [words.get(token) or str(token in PERMISSIVE) for token in re.findall(r"[()]|[^\s()]+", expression)]
    try:
        return bool(eval(" ".join(tokens), {"__builtins__": {}}))  # of True, False, and, or, and parentheses alone
    except SyntaxError:
        return False


def required() -> list[Package]:
    """Return the installed packages that this one requires, for any of its extras, by name."""
    found: dict[str, set[str]] = {}
    for extra in ("", *(metadata.metadata(OURS).get_all("Provides-Extra") or [])):
        if extra != "all":
            _collect(OURS, frozenset([extra]), extra, found, set())
    names = sorted(name for name in found if name != OURS)
    return [_package(name, tuple(sorted(found[name]))) for name in names]


def _collect(name: str, wanted: frozenset[str], extra: str, found: dict[str, set[str]], seen: set[object]) -> None:
    """Add a distribution and what it requires, with the extra that brings them ("" for the package itself)."""
    if (name, wanted) in seen:
        return
    seen.add((name, wanted))
    found.setdefault(name, set()).add(extra)
    for needed in _requirements(name, wanted):
        _collect(canonical(needed.name), frozenset(["", *needed.extras]), extra, found, seen)


def _requirements(name: str, extras: frozenset[str]) -> list[Requirement]:
    """Return what an installed distribution requires here, for these extras; nothing if it is not installed."""
    try:
        texts = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []
    every = [Requirement(text) for text in texts]
    holds = [
        needed
        for needed in every
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras)
    ]
    return [needed for needed in holds if _installed(needed.name)]


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _package(name: str, extras: tuple[str, ...]) -> Package:
    requires = tuple(sorted({canonical(needed.name) for needed in _requirements(name, frozenset([""]))}))
    return Package(name, metadata.version(name), licence_of(metadata.metadata(name)), extras, requires)


def licence_of(facts: metadata.PackageMetadata) -> str:
    """Return the licence that metadata declares, as an SPDX expression where it is known, else as it is declared."""
    expression = facts.get("License-Expression")
    if expression:
        return str(expression)
    classifiers = [text for text in facts.get_all("Classifier") or [] if text.startswith("License :: ")]
    ends = [text.rpartition(" :: ")[2] for text in classifiers if not text.endswith("OSI Approved")]
    text = str(facts.get("License") or "").strip()
    declared = ends if ends else [text.partition("\n")[0]]
    return " AND ".join(SPELLINGS.get(name.lower(), name) for name in declared)


def canonical(name: str) -> str:
    """Return the normalized name of a distribution."""
    return re.sub(r"[-_.]+", "-", name).lower()


def bill_of_materials(packages: list[Package]) -> dict[str, object]:
    """Return a CycloneDX 1.6 document."""
    version = metadata.version(OURS)
    root = f"pkg:pypi/{OURS}@{version}"
    references = {package.name: f"pkg:pypi/{package.name}@{package.version}" for package in packages}
    direct = {canonical(Requirement(text).name) for text in metadata.requires(OURS) or []} & references.keys()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, root + ''.join(references.values()))}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": root,
                "name": OURS,
                "version": version,
                "purl": root,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": references[package.name],
                "name": package.name,
                "version": package.version,
                "purl": references[package.name],
                "licenses": [_licence_choice(package.licence)],
            }
            for package in packages
        ],
        "dependencies": [
            {"ref": root, "dependsOn": sorted(references[name] for name in direct)},
            *(
                {
                    "ref": references[package.name],
                    "dependsOn": [references[name] for name in package.requires if name in references],
                }
                for package in packages
            ),
        ],
    }


def _licence_choice(licence: str) -> dict[str, object]:
    """Return the form that CycloneDX has for an SPDX id, an SPDX expression, or a name."""
    if licence in PERMISSIVE:
        return {"license": {"id": licence}}
    if re.search(r" (?:AND|OR) ", licence):
        return {"expression": licence}
    return {"license": {"name": licence or "unknown"}}


def render(packages: list[Package]) -> str:
    """Return the page: every package, its licence, and for which extras it is installed."""
    lines = [
        "# Licences of what is required",
        "",
        "pyspark-delta has the Apache License 2.0. It contains no code of others; these packages are installed with",
        "it, or with one of its extras. `make licences` writes this page, and fails for a licence that is neither",
        "permissive nor a stated exception.",
        "",
        "| Package | Licence | For | Exception |",
        "|---|---|---|---|",
    ]
    for package in packages:
        extras = "always" if "" in package.extras else ", ".join(f"`{extra}`" for extra in package.extras)
        lines.append(f"| {package.name} | {package.licence} | {extras} | {EXCEPTIONS.get(package.name, '')} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
