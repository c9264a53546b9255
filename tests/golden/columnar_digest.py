"""The digest of the golden tables (`digest.py` beside them) for many rows, without a Python object for each."""

from __future__ import annotations

import hashlib
import json

import pyarrow as pa
import pyarrow.compute as pc


def columnar_digest(rows: pa.Table) -> str | None:
    """The digest, or None where a column is neither of integers nor of decimals: other types have longer rules."""
    texts = [_texts(column) for column in rows.columns]
    if not texts or any(text is None for text in texts):
        return None
    parts: list[object] = []
    for name, text in zip(rows.column_names, texts, strict=True):
        parts += ["," if parts else "{", f"{json.dumps(name, ensure_ascii=False)}:", text]
    lines = pc.binary_join_element_wise(*parts, "}", "")
    if isinstance(lines, pa.ChunkedArray):
        lines = lines.combine_chunks()
    ordered = lines.take(pc.array_sort_indices(lines))  # by their bytes
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(ordered)], pa.int32()), ordered), "\n")
    return hashlib.sha256(joined[0].as_buffer()).hexdigest()


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The values as JSON, None for types that are not covered."""
    if pa.types.is_integer(column.type):
        return column.cast(pa.string()).fill_null("null")
    if not pa.types.is_decimal(column.type):
        return None
    digits = column.cast(pa.string())
    if pc.any(pc.match_substring(digits, "E")).as_py():
        return None  # Arrow writes small decimals with an exponent
    return pc.binary_join_element_wise('"', digits, '"', "").fill_null("null")
