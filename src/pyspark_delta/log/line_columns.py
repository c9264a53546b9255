"""Convert lines of file actions to columns: parsed by Arrow as one block, or one by one if a line is unusual."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.json as pj

from pyspark_delta.actions.columns import DELETION_VECTOR, WIRE_NAMES
from pyspark_delta.actions.decode import Fields
from pyspark_delta.errors import CorruptLogError
from pyspark_delta.log.arrays import map_array
from pyspark_delta.log.commits import malformed
from pyspark_delta.parallel import map_ordered

_BLOCK = 8192
_REQUIRED = ("path", "size", "modification_time")
_HEAD = ("path", "partition_values", "size", "modification_time")  # the text before the statistics
_MAPS = ("partition_values", "tags")

Locate = Callable[[bytes], tuple[str, int]]


def parse_lines(
    lines: Sequence[bytes], action: str, fields: Sequence[pa.Field], partition_names: Sequence[str], locate: Locate
) -> Iterator[pa.RecordBatch]:
    """Yield the requested columns of `add` or `remove` lines, in order.

    `partition_names` are the possible keys of partition values; `locate` returns the file and line number of a line for
    messages. Raises CorruptLogError for a line whose fields are missing or of a wrong type.
    """
    blocks = [lines[start : start + _BLOCK] for start in range(0, len(lines), _BLOCK)]

    def parse(block: Sequence[bytes]) -> pa.RecordBatch:
        batch = _parse_block(block, action, fields, partition_names)
        return batch if batch is not None else _parse_singly(block, action, fields, locate)

    yield from map(parse, blocks) if len(blocks) == 1 else map_ordered(parse, blocks)


def _parse_block(
    lines: Sequence[bytes], action: str, fields: Sequence[pa.Field], partition_names: Sequence[str]
) -> pa.RecordBatch | None:
    """Parse all lines with Arrow; return None if it cannot, or if a required value is missing."""
    headed = all(f.name in _HEAD for f in fields)
    blob = b"".join([_without_stats(line) for line in lines] if headed else lines)
    if any(f.name == "tags" for f in fields) and b'"tags"' in blob:
        return None  # the keys are unknown in advance
    known = [f for f in fields if f.name != "tags"]
    wire = pa.schema([(action, pa.struct([_wire_field(f, partition_names) for f in known]))])
    try:
        # Objects without line ends between them, in one block: Arrow then does not search for line ends.
        table = pj.read_json(
            pa.BufferReader(blob),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(blob) + 1),
            parse_options=pj.ParseOptions(explicit_schema=wire, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None  # for example, of a line with another "stats" than that of the action
    if table.num_rows != len(lines):
        return None
    content = table.column(0).combine_chunks() if table.column(0).num_chunks != 1 else table.column(0).chunk(0)
    if content.null_count:
        return None
    columns = []
    for wanted in fields:
        if wanted.name == "tags":
            columns.append(pa.nulls(len(lines), wanted.type))
            continue
        column = content.field(known.index(wanted))
        if wanted.name == "partition_values":
            if headed and column.null_count:
                return None  # it may have followed the statistics
            column = _to_map(column, partition_names)
        elif wanted.name in _REQUIRED and column.null_count and not (action == "remove" and wanted.name == "size"):
            return None
        elif wanted.name == "deletion_vector":
            column = _renamed(column)
            if _lacks_required(column):
                return None
        columns.append(column)
    batch = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        return None  # Arrow's parser does not validate UTF-8
    return batch


def _without_stats(line: bytes) -> bytes:
    """Return a line that ends with its statistics without them: they are most of the text, and not needed here.

    An unescaped `,"stats":"{` can only be a key, and the removed text has a known end.
    """
    position = line.find(b',"stats":"{')
    return line[:position] + b"}}" if position > 0 and line.endswith(b'}"}}') else line


def _wire_field(wanted: pa.Field, partition_names: Sequence[str]) -> pa.Field:
    name = WIRE_NAMES[wanted.name]
    if wanted.name == "partition_values":
        return pa.field(name, pa.struct([pa.field(n, pa.string()) for n in partition_names]))
    if wanted.name == "deletion_vector":
        return pa.field(name, pa.struct([pa.field(WIRE_NAMES[f.name], f.type) for f in DELETION_VECTOR.type]))
    return pa.field(name, wanted.type)


def _to_map(values: pa.StructArray, names: Sequence[str]) -> pa.MapArray:
    return map_array(names, [values.field(i) for i in range(len(names))], len(values))


def _renamed(values: pa.StructArray) -> pa.StructArray:
    children = [values.field(i) for i in range(values.type.num_fields)]
    mask = values.is_null() if values.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(DELETION_VECTOR.type), mask=mask)


def _lacks_required(vectors: pa.StructArray) -> bool:
    return any(
        vectors.field(name).null_count != vectors.null_count
        for name in ("storage_type", "path_or_inline_dv", "size_in_bytes", "cardinality")
    )


def _parse_singly(lines: Sequence[bytes], action: str, fields: Sequence[pa.Field], locate: Locate) -> pa.RecordBatch:
    rows = [_row(line, action, fields, locate) for line in lines]
    return pa.RecordBatch.from_arrays(
        [pa.array([row[i] for row in rows], f.type) for i, f in enumerate(fields)], schema=pa.schema(fields)
    )


def _row(line: bytes, action: str, fields: Sequence[pa.Field], locate: Locate) -> list[Any]:
    try:
        return _read_row(line, action, fields, "", 0)
    except CorruptLogError:
        return _read_row(line, action, fields, *locate(line))  # decoded again, for the error message


def _read_row(line: bytes, action: str, fields: Sequence[pa.Field], path: str, number: int) -> list[Any]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise malformed(path, f"line {number} is not valid JSON ({error})") from None
    reader = Fields(value.get(action), f"line {number}, {action}", path)
    return [_value(reader, f, action) for f in fields]


def _value(reader: Fields, wanted: pa.Field, action: str) -> Any:
    name = WIRE_NAMES[wanted.name]
    if wanted.name in _MAPS:
        values = reader.optional_map(name)
        if values is None:
            return [] if wanted.name == "partition_values" and action == "add" else None
        return list(values.items())
    if wanted.name == "deletion_vector":
        vector = reader.child(name)
        return None if vector is None else _vector(vector)
    if pa.types.is_string(wanted.type):
        return reader.string(name) if wanted.name == "path" else reader.optional_string(name)
    if pa.types.is_boolean(wanted.type):
        return reader.optional_boolean(name)
    required = wanted.name in _REQUIRED and not (action == "remove" and wanted.name == "size")
    return reader.integer(name) if required else reader.optional_integer(name)


def _vector(fields: Fields) -> dict[str, Any]:
    return {
        "storage_type": fields.string("storageType"),
        "path_or_inline_dv": fields.string("pathOrInlineDv"),
        "offset": fields.optional_integer("offset", 2**31 - 1),
        "size_in_bytes": fields.integer("sizeInBytes", 2**31 - 1),
        "cardinality": fields.integer("cardinality"),
    }
