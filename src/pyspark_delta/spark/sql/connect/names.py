"""Names in SQL of a Connect session: paths, connected catalogs, and the catalog that `USE` has made the current one."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from pyspark.sql import DataFrame, SparkSession

from pyspark_delta.errors import CatalogNameNotFoundError, InvalidOperationError
from pyspark_delta.interpreter.names import DEFAULT_SCHEMA, Namespace, travel
from pyspark_delta.parser.change_calls import ChangeCall
from pyspark_delta.parser.values import TableName, TablePath, TableReference, TimeTravel
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.spark.conf.sessions import session_key
from pyspark_delta.spark.session.identifiers import identify, is_in_catalog
from pyspark_delta.spark.sql import transactions
from pyspark_delta.spark.sql.targets import SqlTable, is_path_name
from pyspark_delta.storage import normalize_location

S = TypeVar("S")

_namespaces: dict[str, Namespace] = {}  # by session; what USE has chosen


@dataclass(frozen=True)
class Names:
    """The names of one session."""

    spark: SparkSession
    namespace: Namespace = field(default_factory=Namespace)

    @classmethod
    def of(cls, spark: SparkSession) -> Names:
        """Return the names of a session, with its current catalog and schema."""
        return cls(spark, _namespaces.setdefault(session_key(spark), Namespace()))

    def whole(self, parts: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the parts of a path name, or the three parts of a name in a connected catalog; None for any other."""
        if is_path_name(parts):
            return parts
        catalog = self.namespace.catalog
        if len(parts) < 3 and catalog is not None:
            schema = self.namespace.schema or DEFAULT_SCHEMA
            parts = (catalog, *parts) if len(parts) == 2 else (catalog, schema, *parts)
        return parts if len(parts) == 3 and is_in_catalog(self.spark, identifier(parts)) else None

    def find(self, reference: TableReference) -> SqlTable | None:
        """Return the Delta table of a reference; None for a table that only the server knows.

        Raises CatalogNameNotFoundError, and CatalogError.
        """
        if isinstance(reference, TablePath):
            return SqlTable(("delta", reference.path), normalize_location(reference.path))
        parts = self.whole(reference.parts)
        if parts is None:
            return None
        if is_path_name(parts):
            return SqlTable(parts, normalize_location(parts[1]))
        found = identify(self.spark, identifier(parts))
        assert found is not None
        return SqlTable(parts, normalize_location(found.path), found.storage_options, found.catalog_table)

    def frame(self, reference: TableName, time: TimeTravel | None) -> DataFrame | None:
        """Return the rows of a table; None for a table that only the server knows.

        A short name is the server's if the current catalog has no such table: it may be that of a view.
        """
        parts = self.whole(reference.parts)
        if parts is None:
            return None
        if time is None and transactions.is_open(self.spark) and (own := self._of_transaction(reference)) is not None:
            return own
        reader = self.spark.read.format("delta")
        version, timestamp = travel(time)
        if version is not None:
            reader = reader.option("versionAsOf", version)
        if timestamp is not None:
            reader = reader.option("timestampAsOf", str(timestamp))
        if is_path_name(parts):
            return reader.load(parts[1])
        try:
            return reader.table(identifier(parts))
        except CatalogNameNotFoundError:
            if len(reference.parts) == 3:
                raise
            return None

    def _of_transaction(self, reference: TableName) -> DataFrame | None:
        """Return the rows that the open transaction would leave in its table; None for any other table."""
        try:
            table = self.find(reference)
        except CatalogNameNotFoundError:
            return None
        return None if table is None else transactions.staged_frame(self.spark, table.location)

    def changes(self, call: ChangeCall) -> DataFrame | None:
        """Return the change data feed that a call names; None for a table that only the server knows."""
        table = call.table
        parts = self.whole(table.parts) if isinstance(table, TableName) else ("delta", table.path)
        if parts is None:
            return None
        reader = self.spark.read.format("delta").option("readChangeFeed", "true")
        for name, value in (("starting", call.first), ("ending", call.last)):
            if value is not None:
                reader = reader.option(f"{name}{'Version' if isinstance(value, int) else 'Timestamp'}", str(value))
        return reader.load(parts[1]) if parts[0] == "delta" else reader.table(identifier(parts))

    def qualified(self, statement: S) -> S:
        """Return a statement with whole names in place of short ones.

        Raises InvalidOperationError for a table that only the server knows.
        """
        assert is_dataclass(statement)
        changed: dict[str, Any] = {}
        for one in fields(statement):
            value = getattr(statement, one.name)
            if isinstance(value, TableName) and value.file_format != "parquet":  # the directory of CONVERT TO DELTA
                parts = self.whole(value.parts)
                if parts is None:
                    raise _only_the_server(value)
                changed[one.name] = TableName(parts, value.start, value.end)
        found: Any = statement
        return cast(S, replace(found, **changed))


def forget(spark: SparkSession) -> None:
    """Forget what `USE` has chosen in a session, and roll back its open transaction."""
    transactions.end(spark)
    _namespaces.pop(session_key(spark), None)


def identifier(parts: tuple[str, ...]) -> str:
    """Return a name as methods take it."""
    return f"delta.{quoted(parts[1])}" if is_path_name(parts) else ".".join(map(quoted, parts))


def only_in_client(statement: str, instead: str) -> InvalidOperationError:
    """Return the error of a statement that the server would run, without the Delta tables in it."""
    return InvalidOperationError(
        f"{statement} runs on the Spark Connect server, which does not know the Delta tables of this client. Nothing "
        f"was changed. {instead}",
        error_class="DELTA_OPERATION_NOT_ALLOWED",
        sqlstate="0AKDC",
    )


def _only_the_server(name: TableName) -> InvalidOperationError:
    shown = ".".join(map(quoted, name.parts))
    return InvalidOperationError(
        f"{shown} is not a Delta table that this process knows. Nothing was changed. On Spark Connect, give the path "
        "of a table, as in delta.`/path/to/table`, or its name in a catalog of connect_catalog.",
        error_class="DELTA_MISSING_DELTA_TABLE",
        sqlstate="42P01",
    )
