"""Rows to write, from whatever holds Arrow data or Python values, as one stream of batches.

Accepted are objects with `__arrow_c_stream__` or `__arrow_c_array__` (PyArrow, Polars, pandas, DuckDB, scans of this
package), PyArrow datasets and scanners, lists of dicts, dicts of columns, and iterators of batches or of dicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from pyspark_delta.errors import InvalidOperationError, SchemaMismatchError
from pyspark_delta.protocol.draft import IsolationLevel, ReadSet
from pyspark_delta.schema.arrow import schema_from_arrow, to_arrow
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.table.foreign_types import ForeignTypes
from pyspark_delta.table.reading import ReadableTable
from pyspark_delta.table.scan import Scan
from pyspark_delta.table.source_errors import batches_of, opened
from pyspark_delta.transaction.stale_reads import check_unchanged

_BATCH_ROWS = 64_000
_NOT_IN_ARROW = {"Int128": "Decimal(38, 0)", "UInt128": "Decimal(38, 0)", "Object": "String or Binary"}  # of Polars
_NOT_TYPED = (pa.ArrowException, TypeError, ValueError, OverflowError)
_ACCEPTED = (
    "Give a PyArrow table or reader, a DataFrame of Polars or pandas, a DuckDB relation, another object with "
    "__arrow_c_stream__, a list of dicts, a dict of columns, or an iterator of record batches."
)


@dataclass(frozen=True)
class RowStream:
    """Rows to write: their Arrow schema, and batches of it, which can be read once. `scan` is where they are from."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    scan: Scan | None = None
    total: int | None = None

    @property
    def types(self) -> StructType:
        """The schema as Delta types. Raises SchemaMismatchError for a column without a Delta type."""
        return schema_from_arrow(self.schema)

    def reads(self, snapshot: Snapshot, isolation: IsolationLevel | None) -> ReadSet:
        """Return what the rows are read from, if it is the latest version of the table itself.

        Raises ConcurrentAppendError and ConcurrentDeleteReadError if a commit after the scan changed it.
        """
        scan = self.scan
        if scan is None or not scan.is_latest or scan.snapshot.location != snapshot.location:
            return ReadSet()
        reads = ReadSet(whole_table=True, paths=frozenset(scan.plan.files["path"].to_pylist()))
        read = scan.snapshot
        if read.version < snapshot.version:
            check_unchanged(reads, read.configuration, read.version, snapshot, "WRITE", isolation)
        return reads


def open_rows(data: Any, table: StructType | None = None) -> RowStream:
    """Open rows to write. `table` is the schema of the table, which gives Python values their types.

    Raises TypeError for an object that holds no rows, InvalidOperationError for an iterator without any batch, and
    SchemaMismatchError for Python values that no Arrow type holds.
    """
    if isinstance(data, str | bytes | type):
        raise TypeError(f"{type(data).__name__} holds no rows. {_ACCEPTED}")
    if isinstance(data, RowStream):
        return data
    if isinstance(data, ReadableTable):
        data = data.scan()
    if isinstance(data, Scan):
        reader = data.to_reader()
        return RowStream(reader.schema, iter(reader), data)
    rows = _open(data, table)
    types = ForeignTypes.of(rows.schema, table)
    return replace(rows, schema=types.schema, batches=types.converted(rows.batches))


def _open(data: Any, table: StructType | None) -> RowStream:
    if _is_of(data, "pandas") and hasattr(data, "columns"):
        return _of_pandas(data)
    if _is_of(data, "polars") and hasattr(data, "collect_schema"):
        return _of_polars(data)
    if isinstance(data, pa.Table):
        return _of_table(data)
    if isinstance(data, pa.RecordBatchReader):  # its own exceptions would be lost in a stream
        return _of_reader(data, lambda: data)
    if hasattr(data, "__arrow_c_stream__"):
        return _of_reader(data, lambda: pa.RecordBatchReader.from_stream(data))
    if hasattr(data, "__arrow_c_array__"):
        return _of_table(opened(data, lambda: pa.Table.from_batches([pa.record_batch(data)])))
    if hasattr(data, "to_reader"):  # scanners of PyArrow
        return _of_reader(data, data.to_reader)
    if hasattr(data, "scanner"):  # datasets of PyArrow
        return _of_reader(data, lambda: data.scanner().to_reader())
    if isinstance(data, Mapping):
        return _of_table(_columns({str(name): _listed_values(name, values) for name, values in data.items()}, table))
    if not isinstance(data, Iterable):
        raise TypeError(f"{type(data).__name__} holds no rows. {_ACCEPTED}")
    return _of_items(iter(data), table, is_empty_known=isinstance(data, Sequence))


def _of_table(table: pa.Table) -> RowStream:
    return RowStream(table.schema, iter(table.to_batches()), total=table.num_rows)


def _of_pandas(data: Any) -> RowStream:
    """Return the rows of a DataFrame. An index with names becomes columns; an index without is dropped."""
    names = [name for name in data.index.names if name is not None]
    if names and (len(names) < data.index.nlevels or set(map(str, names)) & set(map(str, data.columns))):
        raise SchemaMismatchError(
            f"The index of the DataFrame has the names {list(data.index.names)}, which are not the names of columns of "
            "their own. Call reset_index() or rename_axis() first, or reset_index(drop=True) to write no index."
        )
    try:
        return _of_table(pa.Table.from_pandas(data, preserve_index=bool(names)))
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = ". ".join(str(argument) for argument in error.args)
        raise SchemaMismatchError(
            f"The DataFrame of pandas cannot be converted to Arrow: {reason}. Give each column a name and a type of "
            "its own, for example with astype(). Nothing was written."
        ) from None


def _of_polars(data: Any) -> RowStream:
    """Return the rows of a DataFrame, or of a LazyFrame, which is collected."""
    for name, data_type in opened(data, data.collect_schema).items():
        if str(data_type) in _NOT_IN_ARROW:
            raise SchemaMismatchError(
                f"The column '{name}' has the Polars type {data_type}, which Arrow does not have. Cast it to another "
                f"type, such as {_NOT_IN_ARROW[str(data_type)]}. Nothing was written.",
                column=name,
            )
    frame = opened(data, data.collect) if hasattr(data, "collect") else data
    return _of_reader(data, lambda: pa.RecordBatchReader.from_stream(frame))


def _of_reader(data: Any, open_reader: Callable[[], pa.RecordBatchReader]) -> RowStream:
    reader = opened(data, open_reader)
    return RowStream(reader.schema, batches_of(reader, data))


def _of_items(items: Iterator[Any], table: StructType | None, *, is_empty_known: bool) -> RowStream:
    """Return the rows of an iterator of record batches, of tables, or of dicts."""
    first = next(items, None)
    if first is None:
        if is_empty_known and table is not None:
            return RowStream(pa.schema([]), iter(()))
        raise InvalidOperationError(
            "The data has no batch and no row, so its columns are not known. An iterator can be read only once. Give "
            "an Arrow table or reader, which has a schema without rows too. Nothing was written."
        )
    if isinstance(first, pa.RecordBatch | pa.Table):
        return RowStream(first.schema, _same_schema(chain([first], items), first.schema))
    if isinstance(first, Mapping):
        chunk = _of_dicts([first, *islice(items, _BATCH_ROWS - 1)], table)
        rest = _dict_batches(items, table, chunk.schema)
        return RowStream(chunk.schema, chain(chunk.to_batches(), rest))
    raise TypeError(f"The data holds {type(first).__name__}, not rows. {_ACCEPTED}")


def _same_schema(batches: Iterator[Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if not isinstance(batch, pa.RecordBatch | pa.Table):
            raise TypeError(f"The data holds {type(batch).__name__} after a record batch. {_ACCEPTED}")
        if not batch.schema.equals(schema):
            raise SchemaMismatchError(
                f"The batches of the data have different schemas: first ({_listed(schema)}), then "
                f"({_listed(batch.schema)}). Give all batches the same columns and types. Nothing was written."
            )
        yield from [batch] if isinstance(batch, pa.RecordBatch) else batch.to_batches()


def _dict_batches(items: Iterator[Any], table: StructType | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    while rows := list(islice(items, _BATCH_ROWS)):
        chunk = _of_dicts(rows, table)
        if set(chunk.schema.names) - set(schema.names):
            raise SchemaMismatchError(
                f"Later rows of the data have the columns ({_listed(chunk.schema)}), the first ones "
                f"({_listed(schema)}). Give the first row all columns. Nothing was written."
            )
        columns = {name: chunk[name] if name in chunk.schema.names else pa.nulls(len(rows)) for name in schema.names}
        yield from pa.table(columns).cast(schema).to_batches()


# ------------------------------------------------------------------------------------------------- Python values
def _of_dicts(rows: Sequence[Any], table: StructType | None) -> pa.Table:
    wrong = next((row for row in rows if not isinstance(row, Mapping)), None)
    if wrong is not None:
        raise TypeError(f"The data holds {type(wrong).__name__} among dicts. {_ACCEPTED}")
    names = dict.fromkeys(name for row in rows for name in row)
    if not names:
        raise SchemaMismatchError("The rows of the data have no columns. Nothing was written. Name their columns.")
    return _columns({str(name): [row.get(name) for row in rows] for name in names}, table)


def _columns(columns: Mapping[str, list[Any]], table: StructType | None) -> pa.Table:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise SchemaMismatchError(f"The columns of the data have different lengths: {lengths}. Nothing was written.")
    return pa.table({name: _values(name, values, table) for name, values in columns.items()})


def _values(name: str, values: list[Any], table: StructType | None) -> pa.Array:
    """Return Python values in the type of the column, or in the type that they have."""
    field = None if table is None else table.find(name)
    wanted = None if field is None else to_arrow(field.type, all_nullable=True)
    try:
        return pa.array(values, wanted)
    except _NOT_TYPED as error:
        kind = "one type" if field is None else f"the type {field.type}"
        shown = "" if wanted is None else f" {_first_unfit(values, wanted)!r} is not:"
        raise SchemaMismatchError(
            f"The values of the column '{name}' are not of {kind}:{shown} {str(error).rstrip('.')}. Nothing was "
            "written. Correct or cast the values.",
            column=name,
        ) from None


def _first_unfit(values: list[Any], data_type: pa.DataType) -> Any:
    """Return the first value that is not of a type, if one of the values is not."""
    while len(values) > 1:
        first, rest = values[: len(values) // 2], values[len(values) // 2 :]
        values = rest if _is_typed(first, data_type) else first
    return values[0]


def _is_typed(values: list[Any], data_type: pa.DataType) -> bool:
    try:
        pa.array(values, data_type)
    except _NOT_TYPED:
        return False
    return True


def _listed_values(name: object, values: object) -> list[Any]:
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        raise TypeError(
            f"The column '{name}' of the data must be a list of values, found {type(values).__name__} {values!r}."
        )
    return list(values)


def _is_of(data: object, package: str) -> bool:
    return type(data).__module__.split(".")[0] == package


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
