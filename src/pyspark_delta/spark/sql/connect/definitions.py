"""Definitions that a Connect session changes or shows in its client, in the open transaction if there is one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.interpreter.session import Session
from pyspark_delta.parser import catalog_statements as cs
from pyspark_delta.parser import table_statements as ts
from pyspark_delta.parser.values import TableName, TableReference, TimeTravel
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.schema.types import StructType
from pyspark_delta.spark.sql import transactions
from pyspark_delta.spark.sql.connect.names import Names
from pyspark_delta.spark.sql.targets import SqlTable
from pyspark_delta.table import Table
from pyspark_delta.table.alter import TableAlter

_ALTER = (
    *(ts.AddColumns, ts.AlterColumns, ts.CommentOnTable, ts.DropColumns, ts.RenameColumn),
    *(ts.ReplaceColumns, ts.SetProperties, ts.UnsetProperties),
)
_SHOWN = (cs.DescribeTable, cs.ShowColumns, cs.ShowCreateTable, cs.ShowPartitions, cs.ShowProperties)
_COMMITS = (ts.AnalyzeTable, ts.CreateTable, ts.CreateTableLike, ts.DropTable, ts.RenameTable)
_BUILTIN = "builtin"  # Spark's own catalog, in the setting that names it
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


@contextmanager
def in_transaction(names: Names, statement: Any) -> Iterator[Session]:
    """Yield the session for a statement. A failure of ALTER TABLE is one of the open transaction.

    DESCRIBE and SHOW see the table as COMMIT would leave it.

    Raises InvalidOperationError for a statement that makes a commit of its own, if a transaction is open.
    """
    if not transactions.is_open(names.spark):
        yield Session(names.namespace)
    elif isinstance(statement, _ALTER):
        with transactions.remembering_failure(names.spark):
            yield _Altering(names.namespace, within=names)
    elif isinstance(statement, _SHOWN):
        yield _Showing(names.namespace, within=names)
    else:
        if isinstance(statement, _COMMITS):
            transactions.check_none(names.spark, _CAPITAL.sub(" ", type(statement).__name__).upper())
        yield Session(names.namespace)


def check_not_on_server(names: Names, statement: ts.CreateTable | ts.CreateTableLike) -> None:
    """Raise InvalidOperationError for a Delta table that the server would create in Spark's own catalog.

    Its entry would have no location that this package reads, so the table could be neither read nor written.
    """
    catalog = names.spark.conf.get("spark.sql.catalog.spark_catalog", None) or _BUILTIN
    if (statement.using or "").lower() not in ("delta", "deltapy") or catalog != _BUILTIN:
        return
    table = statement.table
    shown = column_path_text(table.parts) if isinstance(table, TableName) else table.path
    raise InvalidOperationError(
        f"Cannot create the Delta table {shown}: Spark's catalog on the Spark Connect server does not keep its "
        "location. Nothing was created. Create it at a path, as in CREATE TABLE delta.`/path/to/table`; or connect to "
        "a catalog with pyspark_delta.connect_catalog(url), and give the table a name in it, such as "
        "main.sales.orders.",
        error_class="DELTA_TABLE_LOCATION_UNKNOWN",
        sqlstate="42000",
    )


@dataclass(kw_only=True)
class _Altering(Session):
    """A session whose changes of definitions are part of the open transaction."""

    within: Names

    def alter(self, reference: TableReference) -> TableAlter:
        table = self._table(reference)
        return TableAlter(table.location, transactions.alteration_of(self._spark, table.snapshot, table.name), _nothing)

    def schema(self, reference: TableReference) -> StructType:
        return transactions.snapshot_of(self._spark, self._table(reference)).schema

    @property
    def _spark(self) -> Any:
        return self.within.spark

    def _table(self, reference: TableReference) -> SqlTable:
        found = self.within.find(reference)
        if found is None:
            raise InvalidOperationError("Only the server knows the table, so its definition cannot be changed here.")
        return found


@dataclass(kw_only=True)
class _Showing(Session):
    """A session that shows what the open transaction has done."""

    within: Names

    def open(self, reference: TableReference, time: TimeTravel | None = None) -> Table:
        table = self.within.find(reference)
        own = None if table is None or time is not None else transactions.staged(self.within.spark, table.location)
        return super().open(reference, time) if own is None else Table(own)


def _nothing() -> None:
    """Leave the table as it was read."""
