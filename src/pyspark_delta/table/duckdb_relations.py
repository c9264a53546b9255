"""A DuckDB relation over rows of a table: columns and conditions of queries reach the plan of the read.

DuckDB asks a PyArrow dataset for a scanner of columns and of a condition, and does not check the condition again. The
dataset here has no data of its own; its scanner plans a read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pyspark_delta.expressions.tree import Expression
from pyspark_delta.schema.arrow import schema_to_arrow
from pyspark_delta.schema.types import StructType
from pyspark_delta.table.arrow_conditions import split_condition

Read: TypeAlias = Callable[[Sequence[str] | None, Expression | None, int | None], pa.RecordBatchReader]


def relation(schema: StructType, read: Read, connection: duckdb.DuckDBPyConnection | None) -> duckdb.DuckDBPyRelation:
    """Return a relation of the rows that `read` gives for columns and a condition."""
    rows = _Rows(schema, read)
    return duckdb.from_arrow(rows) if connection is None else connection.from_arrow(rows)


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
        return schema_to_arrow(self._schema, all_nullable=True)

    def scanner(self, columns: list[str] | None = None, **options: Any) -> _Scanner:
        condition: pc.Expression | None = options.get("filter")
        pushed, is_complete = (None, True) if condition is None else split_condition(condition, self._schema)
        if is_complete:
            return _Scanner(self._read(columns, pushed, None))
        return _Scanner(_filtered(self._read(None, pushed, None), condition, columns))

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError("This dataset is for DuckDB. Use to_reader() for other libraries.")

    # Those of PyArrow would use the dataset that is not there.
    get_fragments = replace_schema = join = join_asof = sort_by = filter = head = take = count_rows = _refused
    to_batches = to_table = __reduce__ = _refused


def _filtered(
    reader: pa.RecordBatchReader, condition: pc.Expression, columns: Sequence[str] | None
) -> pa.RecordBatchReader:
    """Return the rows that meet a condition of PyArrow."""
    names = reader.schema.names if columns is None else list(columns)
    schema = pa.schema([reader.schema.field(name) for name in names])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            yield batch.filter(condition).select(names)

    return pa.RecordBatchReader.from_batches(schema, batches())
