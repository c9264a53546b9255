"""What every read hands over: Arrow, pandas, Polars and DuckDB, by the Arrow PyCapsule interface or by a method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa

from pyspark_delta.errors import InvalidOperationError, InvalidOptionError, MissingDependencyError
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.progress import Progress, ShowProgress, operation
from pyspark_delta.schema.arrow import schema_to_arrow
from pyspark_delta.schema.traversal import types_in
from pyspark_delta.schema.types import VARIANT, StructType

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl


Variants: TypeAlias = Literal["struct"] | None


class Readable(ABC):
    """Rows that can be read any number of times, in parts, by other libraries.

    Objects of this class are accepted wherever the Arrow PyCapsule interface is: `pyarrow.table(rows)`,
    `polars.DataFrame(rows)`, `duckdb.sql("SELECT * FROM rows")`. Each use reads the rows again.
    """

    @property
    @abstractmethod
    def schema(self) -> StructType:
        """The logical schema of the rows."""

    @abstractmethod
    def _pinned(self) -> Readable:
        """Return the same rows, unchanged by later changes of this object."""

    @abstractmethod
    def _reader(
        self, columns: Sequence[str] | None = None, where: Expression | None = None, limit: int | None = None
    ) -> pa.RecordBatchReader:
        """Read some columns of the rows that meet a condition, at most `limit` rows; files are skipped by it."""

    def _views(
        self, columns: Sequence[str] | None, where: Expression | None, limit: int | None
    ) -> Iterable[pa.RecordBatch]:
        """Read the same rows as `_reader`. Texts and binaries of a batch may be views, which Polars has too."""
        rows: Iterable[pa.RecordBatch] = self._reader(columns, where, limit)
        return rows

    # ------------------------------------------------------------------------------------------------------ Arrow
    def to_reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows, which are read as they are consumed: memory does not grow with the table."""
        return self._reader()

    def to_batches(self, *, progress: Callable[[Progress], object] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows as Arrow record batches, read as they are consumed: memory does not grow with the table.

        `progress` is called with a `Progress` for every batch.
        """
        with operation(progress or False):
            reader = self._reader()
        yield from reader

    def to_arrow(self, *, progress: ShowProgress = None) -> pa.Table:
        """Return the rows as one Arrow table. `progress` is as for `Table.append`."""
        with operation(progress):
            return self._reader().read_all()

    def head(self, n: int = 10) -> pa.Table:
        """Return the first `n` rows as an Arrow table. Data files that are not needed are not opened."""
        return self._reader(limit=check_limit(n)).read_all()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows as an Arrow C stream, cast to the types of `requested_schema` if there is one."""
        return self._reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Export the Arrow schema of the rows."""
        return schema_to_arrow(self.schema, all_nullable=True).__arrow_c_schema__()

    # ------------------------------------------------------------------------------------------- other libraries
    def to_pandas(self, *, variants: Variants = None, **options: Any) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame; `options` are those of `pyarrow.Table.to_pandas`.

        Raises MissingDependencyError if pandas is not installed. pandas has no variants: they are an
        InvalidOperationError, and with `variants="struct"` the dicts of their two binaries, `value` and `metadata`.
        """
        require("pandas", "to_pandas()")
        _check_variants(self.schema, variants, "pandas")
        return self.to_arrow().to_pandas(**options)

    def to_polars(self, *, variants: Variants = None) -> pl.LazyFrame:
        """Return the rows as a Polars LazyFrame, which reads when it is collected.

        Polars passes on the columns, conditions and limit of a query. Files and row groups that cannot hold its rows
        are not read. Raises MissingDependencyError if Polars is not installed. Polars has no variants: they are an
        InvalidOperationError, and with `variants="struct"` structs of their two binaries, `value` and `metadata`.
        """
        require("polars", "to_polars()")
        _check_variants(self.schema, variants, "Polars")
        from pyspark_delta.table.polars_frames import lazy_frame

        rows = self._pinned()
        return lazy_frame(rows.schema, rows._views)

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return the rows as a DuckDB relation of a connection (DuckDB's default one if None).

        The rows are read whenever DuckDB runs a query on the relation. DuckDB passes on columns and conditions; files
        and row groups that cannot hold rows of the query are not read. Raises MissingDependencyError if DuckDB is not
        installed.
        """
        require("duckdb", "to_duckdb()")
        from pyspark_delta.table.duckdb_relations import relation

        rows = self._pinned()
        return relation(rows.schema, rows._reader, connection)


def _check_variants(schema: StructType, variants: Variants, library: str) -> None:
    """Raise InvalidOperationError for variants in a library that has none, unless the caller asks for structs."""
    if variants not in (None, "struct"):
        raise InvalidOptionError(f"variants is 'struct' or None, found {variants!r}.", option="variants")
    found = [f.name for f in schema if VARIANT in types_in(f.type)]
    if found and variants is None:
        raise InvalidOperationError(
            f"The column '{found[0]}' holds variants, which {library} does not have. Pass variants='struct' to get "
            "their two binaries, or scan other columns."
        )


def filtered(
    reader: pa.RecordBatchReader, where: Expression, columns: Sequence[str] | None, limit: int | None
) -> pa.RecordBatchReader:
    """Return the rows of a reader that meet a condition, some columns of at most `limit` of them."""
    names = reader.schema.names if columns is None else list(columns)
    schema = pa.schema([reader.schema.field(name) for name in names])

    def batches() -> Iterator[pa.RecordBatch]:
        missing = limit
        for batch in reader:
            found = batch.filter(evaluate(where, batch)).select(names).slice(0, missing)
            missing = None if missing is None else missing - found.num_rows
            yield found
            if missing == 0:
                return

    return pa.RecordBatchReader.from_batches(schema, batches())


def check_limit(n: int) -> int:
    """Return a number of rows. Raises InvalidOptionError."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise InvalidOptionError(f"The number of rows is a whole number from 0 on, found {n!r}.")
    return n


def require(package: str, user: str) -> None:
    """Raise MissingDependencyError if an optional package cannot be imported."""
    try:
        __import__(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingDependencyError(
            f"{user} needs {package}, which is not installed: pip install {package}."
        ) from None
