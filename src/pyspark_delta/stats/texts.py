"""Statistics as JSON text: written from typed columns (C053), or split into members without parsing the values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.encode_files import quote

_SPACE = " \t\n\r"


def members_of(text: str | None) -> dict[str, str] | None:
    """Return the members of a JSON object by name, each with its name and value exactly as in `text`.

    Changing one member this way preserves all others: no number is converted, so decimals and integers of any length
    stay exact. If a name occurs twice, the last member counts. None if the text is not a JSON object.
    """
    if not text:
        return None
    try:
        return _members_of(text)
    except (ValueError, IndexError, RecursionError):
        return None


def object_of(*members: str) -> str:
    """Return the JSON object with these members, each the text of a name and a value."""
    return "{" + ",".join(members) + "}"


def with_member(text: str | None, path: Sequence[str], value: str | None) -> str:
    """Return the JSON object with the member at a path of nested objects set to the JSON text `value`; None removes it.

    All other members keep their text. A text that is not an object counts as an empty one.
    """
    members = members_of(text) or {}
    name, rest = path[0], path[1:]
    if rest:
        value = with_member(_value_of(members[name]) if name in members else None, rest, value)
    if value is None:
        members.pop(name, None)
    else:
        members[name] = f"{orjson.dumps(name).decode()}:{value}"
    return object_of(*members.values())


def _value_of(member: str) -> str:
    """Return the text of the value of a member."""
    _, end = _DECODER.raw_decode(member)
    return member[_after(member, _skipped(member, end), ":") :]


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


# Values are scanned only for their end: numbers stay texts, with any number of digits.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_not_json)


def _members_of(text: str) -> dict[str, str]:
    text = text.strip(_SPACE)
    found: dict[str, str] = {}
    position = _after(text, 0, "{")
    while text[position] != "}" or found:
        name, end = _DECODER.raw_decode(text, position)
        if text[position] != '"':
            raise ValueError("the name is not a string")
        _, end = _DECODER.raw_decode(text, _after(text, _skipped(text, end), ":"))
        found.pop(name, None)
        found[name] = text[position:end]
        position = _skipped(text, end)
        if text[position] == "}":
            break
        position = _after(text, position, ",")
    if position + 1 != len(text):
        raise ValueError("characters after the object")
    return found


def _after(text: str, position: int, character: str) -> int:
    if text[position] != character:
        raise ValueError(f"no {character} at {position}")
    return _skipped(text, position + 1)


def _skipped(text: str, position: int) -> int:
    while text[position] in _SPACE:
        position += 1
    return position


def stats_texts(parsed: pa.StructArray) -> pa.StringArray:
    """Return the text of each row of `stats_parsed`, null if the row is; members without a value are left out."""
    return _object(parsed).cast(pa.string())


def _object(struct: pa.StructArray) -> pa.Array:
    names = [field.name for field in struct.type]
    members: list[Any] = [_member(name, child) for name, child in zip(names, struct.flatten(), strict=True)]
    if not members:
        return _where(struct, pa.scalar("{}"))
    body = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*members, ""), 1)
    return _where(struct, pc.binary_join_element_wise("{", body, "}", ""))


def _where(struct: pa.StructArray, text: Any) -> pa.Array:
    return pc.if_else(struct.is_valid(), text, pa.scalar(None, pa.string()))


def _member(name: str, values: pa.Array) -> pa.Array:
    # The specification's sample misspells the name (C057).
    key = quote(pa.array(["nullCount" if name == "nullCounts" else name]))[0].as_py()
    text = _object(values) if pa.types.is_struct(values.type) else _value(values)
    return pc.fill_null(pc.binary_join_element_wise(f",{key}:", text, ""), "")


def _value(values: pa.Array) -> pa.Array:
    """Return one JSON value for each row, null for null."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        text = pc.strftime(values.cast(pa.timestamp("us")), "%Y-%m-%dT%H:%M:%S")
        return quote(pc.binary_join_element_wise(text, "" if kind.tz is None else "Z", ""))
    if pa.types.is_floating(kind):
        text = values.cast(pa.string())
        finite = pc.is_finite(values)
        if pc.all(finite).as_py() is not False:
            return text
        named = pc.if_else(pc.is_nan(values), "NaN", pc.if_else(pc.greater(values, 0), "Infinity", "-Infinity"))
        return pc.if_else(finite, text, quote(named))
    text = values.cast(pa.string())
    bare = pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind)
    return text if bare else quote(text)
