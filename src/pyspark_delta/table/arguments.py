"""Checks of the arguments of public methods, by the annotations of their parameters, before anything is opened."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from os import PathLike
from typing import ParamSpec, TypeVar

from pyspark_delta.errors import InvalidOptionError

P = ParamSpec("P")
R = TypeVar("R")


def check_arguments(method: Callable[P, R]) -> Callable[P, R]:
    """Return a method that raises TypeError for an argument whose type is not that of its annotation.

    Without this, an option such as `merge_schema="no"` would be true. Annotations that are not in `_EXPECTED` are not
    checked.
    """
    signature = inspect.signature(method)
    expected = {name: str(one.annotation) for name, one in signature.parameters.items()}

    @wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in _given(signature, args, kwargs):
            what, accepts = _EXPECTED.get(expected[name], ("", _anything))
            if not accepts(value):
                raise TypeError(f"{name} must be {what}, found {type(value).__name__} {value!r}.")
        return method(*args, **kwargs)

    return checked


def check_version(version: object) -> None:
    """Raise InvalidOptionError for what is not the number of a version."""
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise InvalidOptionError(f"A table version is a whole number from 0 on, found {version!r}.")


def _given(
    signature: inspect.Signature, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> Iterator[tuple[str, object]]:
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            yield from ((name, one) for one in value)
        else:
            yield name, value


def _anything(_: object) -> bool:
    return True


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_texts(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(map(_is_text, value))


def _has_text_keys(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, value))


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_path(value: object) -> bool:
    return isinstance(value, str | PathLike)


def _or_none(accepts: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or accepts(value)


_ONE: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "bool": ("True or False", _is_flag),
    "str": ("a string", _is_text),
    "str | PathLike[str]": ("a path", _is_path),
    "Sequence[str]": ("a list of strings", _are_texts),
    "Mapping[str, str]": ("a dict with strings as keys", _has_text_keys),
    "Mapping[str, object]": ("a dict with strings as keys", _has_text_keys),
    "Values": ("a dict of columns and their values as SQL text", _has_text_keys),
}
_EXPECTED = {
    **_ONE,
    **{f"{name} | None": (f"{what} or None", _or_none(accepts)) for name, (what, accepts) in _ONE.items()},
}
