"""Parse statistics from the JSON text of the log to typed columns of exactly the requested leaves.

Malformed text, and a value of another type than its column, count as missing: statistics only help to skip files,
and a file without any is read (C414). If only numRecords is requested and begins a text, the rest of the text is not
parsed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Context, Decimal, InvalidOperation
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from pyspark_delta.expressions.tree import Column
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.calendar import CalendarText
from pyspark_delta.schema.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)
from pyspark_delta.stats.uniform_texts import Bytes, Offsets, slice_uniform

Tree: TypeAlias = dict[str, Any]  # path part -> Tree, or the Column at a leaf

_INTEGERS = (BYTE, SHORT, INTEGER, LONG)
_BARE = frozenset({*_INTEGERS, FLOAT, DOUBLE})
_QUOTED = frozenset({STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ})
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "+Infinity": math.inf, "INF": math.inf}
_EXACT = Context(prec=400)
_OPEN, _CLOSE, _COMMA, _ZERO = map(ord, "{},0")
_LEADING, _LEADING_TEXT = Column(("numRecords",), LONG), b'{"numRecords":'
_EXACT_DOUBLES = 2**53  # below, every integer is exact as a double
_MOST_SLICED = 6  # leaves; Arrow parses more of them as fast
_LEADING_DIGITS = 18  # any number of so many digits fits a long


def parse_stats(texts: pa.Array, leaves: Sequence[Column]) -> pa.RecordBatch:
    """Return the statistics at some leaves, one row per text: nested as in the JSON, with the Arrow type of each
    column.

    A leaf is `("numRecords",)`, `("tightBounds",)`, or `minValues`, `maxValues` or `nullCount` and a physical path.
    """
    tree = leaf_tree(leaves)
    parsed = _parse_block(texts, tree)
    if parsed is None:
        parsed = _parse_singly(texts, leaves)
    return assemble(tree, parsed, len(texts))


def leaf_tree(leaves: Sequence[Column]) -> Tree:
    """Return the leaves as a tree by the parts of their paths, in order; a leaf inside another one is left out."""
    tree: Tree = {}
    paths = {leaf.path for leaf in leaves}
    for leaf in leaves:
        if any(leaf.path[:length] in paths for length in range(1, len(leaf.path))):
            continue
        node = tree
        for part in leaf.path[:-1]:
            node = node.setdefault(part, {})
        node.setdefault(leaf.path[-1], leaf)
    return tree


def assemble(tree: Tree, leaves: Mapping[tuple[str, ...], pa.Array], length: int) -> pa.RecordBatch:
    """Return the columns of leaves as one batch, nested as the tree is; leaves without a column are null."""
    arrays = [_nested(node, (name,), leaves, length) for name, node in tree.items()]
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.StructArray.from_arrays([pa.nulls(length)], ["nothing"]))
    return pa.RecordBatch.from_arrays(arrays, names=list(tree))


def _nested(node: Any, path: tuple[str, ...], leaves: Mapping[tuple[str, ...], pa.Array], length: int) -> pa.Array:
    if isinstance(node, Column):
        found = leaves.get(path)
        return pa.nulls(length, to_arrow(node.type)) if found is None else found
    children = [_nested(child, (*path, name), leaves, length) for name, child in node.items()]
    return pa.StructArray.from_arrays(children, names=list(node))


# ------------------------------------------------------------------------------------------- the whole block at once
def _parse_block(texts: pa.Array, tree: Tree) -> dict[tuple[str, ...], pa.Array] | None:
    """Return all texts as one stream of objects, without copying them; None if one of them is unusual."""
    found = _objects(texts)
    if found is None:
        return None
    buffer, present, count = found.buffer, found.present, len(found.starts)
    if count == 0:
        return {}
    if present is None and list(tree) == [*_LEADING.path]:
        leading = _leading_counts(texts)
        if leading is not None:
            return {_LEADING.path: leading}
    columns = _cut_block(found, tree)
    if columns is None:
        columns = _read_block(buffer, count, tree)
    if present is None or columns is None:
        return columns
    rows = np.cumsum(present) - 1
    indices = pa.array(rows, mask=~present)
    return {path: column.take(indices) for path, column in columns.items()}


def _cut_block(objects: _Objects, tree: Tree) -> dict[tuple[str, ...], pa.Array] | None:
    """Return the values of texts with uniform shape, which are sliced out of them; None for others."""
    leaves = {leaf.path: leaf.type for leaf in _leaves(tree)}
    if len(leaves) > _MOST_SLICED or not all(
        data_type in _BARE or data_type in _QUOTED for data_type in leaves.values()
    ):
        return None
    quoted = {path: data_type in _QUOTED for path, data_type in leaves.items()}
    found = slice_uniform(objects.data, objects.starts, objects.ends, quoted)
    if found is None:
        return None
    try:
        return {path: _typed(found[path].cast(_wire_type(leaves[path])), leaves[path]) for path in leaves}
    except pa.ArrowInvalid:  # null, or another kind of number
        return None


def _leaves(tree: Tree) -> Iterator[Column]:
    for node in tree.values():
        if isinstance(node, Column):
            yield node
        else:
            yield from _leaves(node)


def _read_block(data: pa.Buffer, count: int, tree: Tree) -> dict[tuple[str, ...], pa.Array] | None:
    """Return the values of `count` texts, parsed by Arrow as a stream of objects; None if it fails."""
    fields = [_wire_field(name, node) for name, node in tree.items()]
    try:
        table = pj.read_json(
            pa.BufferReader(data),
            # One block and no line ends: Arrow then does not search for the boundaries of rows.
            read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pj.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if table.num_rows != count:
        return None
    columns: dict[tuple[str, ...], pa.Array] = {}
    for name, node in tree.items():
        chunks = table.column(name).chunks
        _collect(node, (name,), chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks), columns)
    return columns


class _Objects(NamedTuple):
    """The texts of a block, one after another in `buffer`, and which rows have one (None: all).

    `starts` and `ends` are those of the texts in `data`, and the buffer is a part of it.
    """

    buffer: pa.Buffer
    present: np.ndarray[Any, Any] | None
    data: Bytes
    starts: Offsets
    ends: Offsets


def _objects(texts: pa.Array) -> _Objects | None:
    """Return all non-null texts; None unless each looks like an object."""
    if not pa.types.is_string(texts.type):
        return None
    buffers = texts.buffers()
    if buffers[2] is None:
        nothing = np.zeros(0, dtype=np.int64)
        return _Objects(pa.py_buffer(b""), None, np.zeros(0, dtype=np.uint8), nothing, nothing)
    offsets = np.frombuffer(buffers[1], dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    present: np.ndarray[Any, Any] | None = offsets[1:] > offsets[:-1]
    if texts.null_count:
        valid = np.asarray(texts.is_valid())
        if (present & ~valid).any():
            return None  # bytes behind a null would become a row
    data = np.frombuffer(buffers[2], dtype=np.uint8)
    starts, ends = offsets[:-1], offsets[1:]
    assert present is not None
    if present.all():
        present = None
    else:
        starts, ends = starts[present], ends[present]
    if not (data[starts] == _OPEN).all() or not (data[ends - 1] == _CLOSE).all():
        return None
    first, last = int(offsets[0]), int(offsets[-1])
    buffer = buffers[2].slice(first, last - first)
    return _Objects(buffer, present, data, starts.astype(np.int64), ends.astype(np.int64))


def _leading_counts(texts: pa.Array) -> pa.Array | None:
    """Return the numbers of records of texts that begin with them, as from nearly all writers; None for any other text.

    The rest of the texts is not parsed.
    """
    _, offsets_buffer, data_buffer = texts.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(data_buffer, dtype=np.uint8)
    starts, lengths = offsets[:-1].astype(np.int64), np.diff(offsets)
    if lengths.min() <= len(_LEADING_TEXT):
        return None
    for position, character in enumerate(_LEADING_TEXT):
        if not (data[starts + position] == character).all():
            return None
    at = starts + len(_LEADING_TEXT)
    numbers = np.zeros(len(texts), dtype=np.int64)
    reading = np.ones(len(texts), dtype=bool)
    for _ in range(_LEADING_DIGITS):  # the closing brace of a text ends its digits at the latest
        digits = data[at] - np.uint8(_ZERO)  # wraps around: a byte that is not a digit is larger than 9
        reading &= digits <= 9
        if not reading.any():
            break
        numbers = np.where(reading, numbers * 10 + digits, numbers)
        at += reading
    ended = (data[at] == _COMMA) | (data[at] == _CLOSE)
    return pa.array(numbers) if (ended & (at > starts + len(_LEADING_TEXT))).all() else None


def _wire_field(name: str, node: Any) -> pa.Field:
    if isinstance(node, Column):
        return pa.field(name, _wire_type(node.type))
    return pa.field(name, pa.struct([_wire_field(n, child) for n, child in node.items()]))


def _wire_type(data_type: DataType) -> pa.DataType:
    """Return the type as which Arrow's JSON reader parses a value, before the cast to the column's type."""
    if data_type in _INTEGERS:
        return pa.int64()
    if data_type in (FLOAT, DOUBLE):
        return pa.float64()
    if data_type == BOOLEAN or isinstance(data_type, DecimalType):
        return to_arrow(data_type)
    return pa.string()


def _collect(node: Any, path: tuple[str, ...], column: pa.Array, columns: dict[tuple[str, ...], pa.Array]) -> None:
    if isinstance(node, Column):
        columns[path] = _typed(column, node.type)
        return
    for position, (name, child) in enumerate(node.items()):
        field = column.field(position)
        if column.null_count:
            field = pc.struct_field(column, [position])
        _collect(child, (*path, name), field, columns)


def _typed(column: pa.Array, data_type: DataType) -> pa.Array:
    target = to_arrow(data_type)
    if column.type == target:
        return column
    if pa.types.is_string(column.type):
        return _calendar(column, data_type, target)
    try:
        return column.cast(target)
    except pa.ArrowInvalid:
        low, high = -(2 ** (target.bit_width - 1)), 2 ** (target.bit_width - 1) - 1
        fits = pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))
        return pc.if_else(fits, column, pa.scalar(None, column.type)).cast(target)


def _calendar(column: pa.Array, data_type: DataType, target: pa.DataType) -> pa.Array:
    if data_type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return pa.nulls(len(column), target)
    try:
        return column.cast(target)  # the usual spelling, in which Arrow is fast
    except pa.ArrowInvalid:
        parsed = CalendarText(column)
    if data_type == DATE:
        fits = parsed.is_date
        days = np.where(fits, parsed.days, 0).astype(np.int32)
        return pa.array(days, mask=~fits).cast(target)
    micros, fits = parsed.local_micros()
    if data_type == TIMESTAMP:  # a zone is required: without one, the writer's zone is unknown
        valid, micros = parsed.valid & fits & parsed.zoned, micros - parsed.offset
    else:
        valid = parsed.valid & fits & (parsed.offset == 0)
    return pa.array(np.where(valid, micros, 0), mask=~valid).cast(pa.timestamp("us")).cast(target)


# -------------------------------------------------------------------------------------------------- one text at a time
def _parse_singly(texts: pa.Array, leaves: Sequence[Column]) -> dict[tuple[str, ...], pa.Array]:
    exact = any(isinstance(leaf.type, DecimalType) for leaf in leaves)
    objects = [_load(text, exact) for text in texts.to_pylist()]
    columns = {}
    for leaf in leaves:
        values = [_value(_at(value, leaf.path), leaf.type) for value in objects]
        wire = pa.string() if leaf.type in (DATE, TIMESTAMP, TIMESTAMP_NTZ) else to_arrow(leaf.type)
        columns[leaf.path] = _typed(pa.array(values, wire), leaf.type)
    return columns


def _load(text: str | None, exact: bool) -> Any:
    if not text:
        return None
    try:
        return json.loads(text, parse_float=Decimal) if exact else orjson.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(text)  # which accepts NaN
    except (ValueError, RecursionError):
        return None


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def _value(value: Any, data_type: DataType) -> Any:
    """Return the value converted to the type; None if it is not a value of the type."""
    if value is None or data_type == BOOLEAN:
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if data_type in _INTEGERS:
        bits = to_arrow(data_type).bit_width
        whole: int | None = int(value) if isinstance(value, (int, float, Decimal)) and _is_integral(value) else None
        return whole if whole is not None and -(1 << bits - 1) <= whole < 1 << bits - 1 else None
    if data_type in (FLOAT, DOUBLE):
        if isinstance(value, str):
            return _NOT_FINITE.get(value)
        return _float(value) if isinstance(value, (int, float, Decimal)) else None
    if isinstance(data_type, DecimalType):
        return _decimal(value, data_type)
    is_text = isinstance(value, str) and data_type in (STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)
    return value if is_text and not _has_surrogates(value) else None


def _has_surrogates(text: str) -> bool:
    """True if a string has an unpaired surrogate, which a JSON escape may produce; UTF-8 cannot encode it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _is_integral(value: int | float | Decimal) -> bool:
    limit = _EXACT_DOUBLES if isinstance(value, float) else 2**64  # larger ones may have been rounded
    try:
        return value == value // 1 and -limit < value < limit
    except (ArithmeticError, ValueError):
        return False


def _float(value: int | float | Decimal) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def _decimal(value: Any, data_type: DecimalType) -> Decimal | None:
    try:
        number = Decimal(str(value)) if not isinstance(value, Decimal) else value
        scaled = _EXACT.scaleb(number, data_type.scale)
        whole = number.is_finite() and scaled == _EXACT.to_integral_value(scaled)
        if not whole or scaled.copy_abs() >= 10**data_type.precision:
            return None
        return _EXACT.quantize(number, _EXACT.scaleb(Decimal(1), -data_type.scale))
    except (InvalidOperation, ValueError, OverflowError):
        return None
