"""The JSON checksum of `_last_checkpoint`: an MD5 over a canonical string of the object (C085-C095)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from pyspark_delta.errors import CorruptLogError

_CHECKSUM = "checksum"


class NumberText(str):
    """A number with its spelling in the JSON text (C087)."""

    __slots__ = ()


def parse_exactly(text: str | bytes) -> Any:
    """Parse JSON with numbers kept as text; duplicate keys are an error (C092). Raises CorruptLogError."""
    try:
        return json.loads(
            text,
            parse_int=NumberText,
            parse_float=NumberText,
            parse_constant=NumberText,
            object_pairs_hook=_object,
        )
    except (ValueError, RecursionError) as error:
        raise CorruptLogError(f"The file is not valid JSON: {error}.") from None


def canonical_string(value: Any) -> str:
    """Return the canonical string, pairs sorted by path as the specification requires."""
    return ",".join(f"{path}={leaf}" for path, leaf in sorted(_pairs(value), key=lambda pair: pair[0].encode()))


def canonical_string_by_pair(value: Any) -> str:
    """Return the canonical string in the order of the reference implementation: by the whole `path=value` (C095)."""
    return ",".join(sorted((f"{path}={leaf}" for path, leaf in _pairs(value)), key=str.encode))


def json_checksum(text: str | bytes) -> str:
    """Return the checksum that the object in `text` should have, as 32 lower-case hexadecimal digits."""
    return _md5(canonical_string_by_pair(parse_exactly(text)))


def checksum_matches(text: str | bytes) -> bool:
    """True if the object in `text` has no checksum, or one that matches in either order. Raises CorruptLogError."""
    value = parse_exactly(text)
    if not isinstance(value, dict):
        raise CorruptLogError("The file is not a JSON object.")
    found = value.get(_CHECKSUM)
    if found is None:
        return True
    try:
        return found in (_md5(canonical_string(value)), _md5(canonical_string_by_pair(value)))
    except RecursionError:
        raise CorruptLogError("The JSON object is nested too deeply for a checksum.") from None


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("an object contains a key twice")
    return value


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the flattened `(path, leaf)` pairs, without the checksum member at the top (C091)."""
    members = ((k, v) for k, v in value.items() if k != _CHECKSUM) if isinstance(value, dict) else enumerate(value)
    for key, member in members:
        yield from _flatten(_segment(key), member)


def _flatten(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _flatten(f"{path}+{_segment(key)}", member)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _flatten(f"{path}+{index}", member)
    else:
        yield path, _leaf(value)


def _segment(key: str | int) -> str:
    return str(key) if isinstance(key, int) else _encoded(key)


def _leaf(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, NumberText) else _encoded(value)


def _encoded(text: str) -> str:
    return f'"{quote(text, safe="-._~", errors="surrogatepass")}"'
