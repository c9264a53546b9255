"""A DuckDB relation over rows of a table: columns and conditions of queries reach the plan of the read.

DuckDB asks a PyArrow dataset for a scanner of columns and of a condition, and does not check the condition again. The
dataset here has no data of its own; its scanner plans a read. Variants are variants of DuckDB too, by the extension
type that Arrow has for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.schema.arrow import ARROW_VARIANT, is_variant_storage, schema_to_arrow
from pyspark_delta.schema.types import StructType
from pyspark_delta.table.arrow_conditions import split_condition

Read: TypeAlias = Callable[[Sequence[str] | None, Expression | None, int | None], pa.RecordBatchReader]


def relation(schema: StructType, read: Read, connection: duckdb.DuckDBPyConnection | None) -> duckdb.DuckDBPyRelation:
    """Return a relation of the rows that `read` gives for columns and a condition."""
    rows = _Rows(schema, read)
    return duckdb.from_arrow(rows) if connection is None else connection.from_arrow(rows)


_VARIANT = pa.struct([pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary())])


class _Scanner:
    """What DuckDB uses of a PyArrow scanner."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader = reader

    @property
    def projected_schema(self) -> pa.Schema:
        return self._reader.schema

    def to_reader(self) -> pa.RecordBatchReader:
        return self._reader


class _Rows(ds.Dataset):  # type: ignore[misc]
    """A dataset for DuckDB, which uses its schema and its scanner."""

    def __init__(self, schema: StructType, read: Read) -> None:  # the dataset below it stays empty
        self._schema = schema
        self._read = read

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([_with_variants(f) for f in schema_to_arrow(self._schema, all_nullable=True)])

    def scanner(self, columns: list[str] | None = None, **options: Any) -> _Scanner:
        condition: pc.Expression | None = options.get("filter")
        pushed, is_complete = (None, True) if condition is None else split_condition(condition, self._schema)
        if is_complete:
            return _Scanner(_prepared(self._read(columns, pushed, None), None, columns))
        return _Scanner(_prepared(self._read(None, pushed, None), condition, columns))

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise InvalidOperationError("This dataset is for DuckDB. Use to_reader() for other libraries.")

    # Those of PyArrow would use the dataset that is not there.
    get_fragments = replace_schema = join = join_asof = sort_by = filter = head = take = count_rows = _refused
    to_batches = to_table = __reduce__ = _refused


def _prepared(
    reader: pa.RecordBatchReader, condition: pc.Expression | None, columns: Sequence[str] | None
) -> pa.RecordBatchReader:
    """Return some columns of the rows that meet a condition of PyArrow, with variants in the types of DuckDB."""
    names = reader.schema.names if columns is None else list(columns)
    read = pa.schema([reader.schema.field(name) for name in names])
    schema = pa.schema([_with_variants(f) for f in read])
    if condition is None and schema.equals(read, check_metadata=True):
        return reader

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            found = batch if condition is None else batch.filter(condition)
            yield found.select(names).cast(schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _with_variants(field: pa.Field) -> pa.Field:
    """Return a field with each variant in it marked as Arrow's extension type for variants."""
    if is_variant_storage(field.type):
        return pa.field(field.name, _VARIANT, field.nullable, metadata={"ARROW:extension:name": ARROW_VARIANT})
    data_type = field.type
    if pa.types.is_struct(data_type):
        data_type = pa.struct([_with_variants(member) for member in data_type])
    elif pa.types.is_list(data_type):
        data_type = pa.list_(_with_variants(data_type.value_field))
    elif pa.types.is_map(data_type):
        data_type = pa.map_(data_type.key_field, _with_variants(data_type.item_field))
    return field.with_type(data_type)
