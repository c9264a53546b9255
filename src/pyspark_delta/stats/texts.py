"""Typed statistics back to the JSON text of the log: for files whose text a checkpoint did not keep (C053)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.encode_files import quote


def stats_texts(parsed: pa.StructArray) -> pa.StringArray:
    """The text of each row of `stats_parsed`, null where the row is; members without a value are left out."""
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
    """One JSON value for each row, null for null."""
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
