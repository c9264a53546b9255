"""`spark.sql` of enabled Spark Connect sessions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pyspark_delta.catalog.connections import connected_names, find_catalog
from pyspark_delta.errors import InvalidOperationError, SqlSyntaxError, TableAlreadyExistsError, TableNotFoundError
from pyspark_delta.interpreter.definitions import check_query_definition, partitioning, query_operation
from pyspark_delta.interpreter.execute import run
from pyspark_delta.interpreter.session import Session
from pyspark_delta.parser import catalog_statements as cs
from pyspark_delta.parser import parse, parse_any
from pyspark_delta.parser import row_statements as rs
from pyspark_delta.parser import table_statements as ts
from pyspark_delta.parser.reader import Reader
from pyspark_delta.parser.rows import at_query
from pyspark_delta.parser.scripts import is_script
from pyspark_delta.parser.statements import DeltaStatement
from pyspark_delta.parser.values import TableName, TablePath
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.spark.conf.arrow import frame_of_arrow
from pyspark_delta.spark.engine.dml.engines import truncate_statement
from pyspark_delta.spark.engine.write.save import write_table
from pyspark_delta.spark.session.identifiers import identify_or_create
from pyspark_delta.spark.sql import execute, transactions
from pyspark_delta.spark.sql.connect import row_changes
from pyspark_delta.spark.sql.connect.definitions import check_not_on_server, in_transaction
from pyspark_delta.spark.sql.connect.inserts import insert
from pyspark_delta.spark.sql.connect.names import Names, identifier, only_in_client
from pyspark_delta.spark.sql.connect.rewrite import Spliced, check_one_query, splice
from pyspark_delta.spark.sql.connect.views import cache_query, create_view, refuse_view
from pyspark_delta.spark.sql.targets import SqlTable, is_path_name
from pyspark_delta.storage import normalize_location
from pyspark_delta.write.engine import WriteRequest
from pyspark_delta.write.options import parse_options

Before: TypeAlias = Callable[..., DataFrame]
"""PySpark's own `sql`."""

_OWN_WORDS = ("delta", "table_changes", "identifier(")  # an argument may be a name
_CATALOG_WORDS = re.compile(r"\s*(?:USE|SHOW|SET\s+CATALOG)\b", re.IGNORECASE)


def sql(spark: SparkSession, before: Before, text: str, args: Any, frames: Mapping[str, Any]) -> DataFrame:
    """Run a statement: one about Delta tables in this process, any other on the server.

    Raises SqlSyntaxError, and the errors of the method that carries a statement out.
    """
    names = Names.of(spark)

    def on_server() -> DataFrame:
        try:
            return before(spark, text, args, **frames)
        except PySparkException as error:
            refuse_view(names, text, args, error)
            raise

    own = parse(text, args)
    if own is not None:
        return _own(names, own, on_server)
    if not _may_concern(names, text):
        return on_server()
    _refuse_script(names, text)
    try:
        statement = parse_any(text, args)
    except SqlSyntaxError:
        return on_server()  # its grammar is larger, and its message names the place as well
    if isinstance(statement, rs.Query):
        check_one_query(statement.query.text)
        return _query(names, before, text, args, frames)

    def query(inner: str | Spliced) -> DataFrame:
        return _run_spliced(names, before, splice(names, inner) if isinstance(inner, str) else inner, frames)

    found = None if statement is None else _Statements(names, query, on_server).run(statement)
    if found is None and create_view(names, text, args, query):
        return nothing(spark)
    found = cache_query(names, before, text, args, query) if found is None else found
    found = _described(names, before, text, args) if found is None else found
    found = _explained(names, before, text, args) if found is None else found
    return on_server() if found is None else found


def _may_concern(names: Names, text: str) -> bool:
    """Return True if a text may be about Delta tables that this process knows. Other texts are not parsed."""
    folded = text.casefold()
    if any(word in folded for word in _OWN_WORDS) or names.namespace.catalog is not None:
        return True
    connected = connected_names()
    if any(name.casefold() in folded for name in connected):
        return True
    return bool(connected) and _CATALOG_WORDS.match(text) is not None


def _query(names: Names, before: Before, text: str, args: Any, frames: Mapping[str, Any]) -> DataFrame:
    """Run a query; its Delta tables are frames, and the server does the rest."""
    spliced = splice(names, text, args)
    if not spliced.frames:
        return before(names.spark, text, args, **frames)
    return _run_spliced(names, before, spliced, frames)


def _run_spliced(names: Names, before: Before, spliced: Spliced, frames: Mapping[str, Any]) -> DataFrame:
    written, own = spliced.formatted(escapes=not frames)
    return before(names.spark, written, spliced.arguments, **frames, **own)


def _described(names: Names, before: Before, text: str, args: Any) -> DataFrame | None:
    """Describe the columns of a query with Delta tables; None for any other statement."""
    reader = Reader(text)
    if not (reader.accept("DESCRIBE") or reader.accept("DESC")):
        return None
    reader.accept("QUERY")
    if not at_query(reader):
        return None
    spliced = splice(names, text[reader.token.start :], args)
    written, frames = spliced.formatted(escapes=True)
    return before(names.spark, f"DESCRIBE QUERY {written}", spliced.arguments, **frames) if frames else None


def _explained(names: Names, before: Before, text: str, args: Any) -> DataFrame | None:
    """Explain a query with Delta tables; None for any other statement.

    Raises InvalidOperationError for a statement that changes a Delta table, which the server does not know.
    """
    reader = Reader(text)
    if not reader.accept("EXPLAIN"):
        return None
    mode = next((f" {word}" for word in ("EXTENDED", "CODEGEN", "COST", "FORMATTED") if reader.accept(word)), "")
    if reader.ended:
        return None
    inner = text[reader.token.start :]
    if not at_query(reader):
        _refuse_explained_change(names, inner, args)
        return None
    spliced = splice(names, inner, args)
    written, frames = spliced.formatted(escapes=True)
    return before(names.spark, f"EXPLAIN{mode} {written}", spliced.arguments, **frames) if frames else None


def _refuse_explained_change(names: Names, text: str, args: Any) -> None:
    try:
        statement = parse(text, args) or parse_any(text, args)
    except SqlSyntaxError:
        return
    target = getattr(statement, "target", None) or getattr(statement, "table", None)
    if isinstance(target, TableName | TablePath) and names.find(target) is not None:
        raise InvalidOperationError(
            "EXPLAIN of a statement that is not a query needs a classic session. Nothing was changed. The methods of "
            "DeltaTable return a plan with plan=True, as in table.delete(condition, plan=True).",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
            sqlstate="0AKDC",
        )


def _own(names: Names, statement: DeltaStatement, on_server: Callable[[], DataFrame]) -> DataFrame:
    """Carry out a statement of Delta's own grammar."""
    target = getattr(statement, "table", None)
    if isinstance(target, TableName) and names.whole(target.parts) is None and execute.is_of_spark_too(statement):
        return on_server()
    found = execute.execute(names.spark, names.qualified(statement))
    return nothing(names.spark) if found is None else found


def _refuse_script(names: Names, text: str) -> None:
    """Raise InvalidOperationError for a script, and for EXECUTE IMMEDIATE, that name Delta tables of this process."""
    named = rf"\b(?:{'|'.join(map(re.escape, ('delta', 'deltapy', *connected_names())))})`?\s*\."
    if names.namespace.catalog is None and re.search(named, text, re.IGNORECASE) is None:
        return
    reader = Reader(text)
    if is_script(text):
        raise only_in_client("A script", "Run its statements one by one, with loops and conditions in Python.")
    if reader.at("EXECUTE", "IMMEDIATE"):
        raise only_in_client("EXECUTE IMMEDIATE", "Run the statement itself by spark.sql(text, args).")


def nothing(spark: SparkSession) -> DataFrame:
    """Return the result of a statement without rows."""
    return spark.createDataFrame([], StructType())


class _Statements:
    """Carries out statements on tables that this process knows. Statements on others return None."""

    def __init__(self, names: Names, query: row_changes.RunQuery, on_server: Callable[[], DataFrame]) -> None:
        self._names, self._query, self._on_server = names, query, on_server
        self._spark = names.spark

    def run(self, statement: Any) -> DataFrame | None:
        """Carry out a statement; None if it is the server's."""
        match statement:
            case rs.DeleteFrom() | rs.UpdateTable() | rs.InsertInto() | rs.TruncateTable() | rs.MergeInto():
                return self._rows(statement)
            case ts.CreateTable():
                return self._create(statement)
            case cs.Use():
                return self._use(statement)
            case cs.ShowCatalogs():
                mine = self._in_client(statement)
                return self._on_server().union(mine).distinct().sort("catalog")
            case cs.ShowSchemas() | cs.ShowTables():
                return self._in_client(statement) if self._is_mine(statement.namespace) else None
            case cs.CreateSchema() | cs.DropSchema():
                return self._in_client(statement) if self._is_mine(statement.name.parts[:-1]) else None
        table = statement.table
        if isinstance(table, TableName) and self._names.whole(table.parts) is None:
            if isinstance(statement, ts.CreateTableLike):
                check_not_on_server(self._names, statement)
            return None
        return self._in_client(self._names.qualified(statement))

    def _rows(self, statement: Any) -> DataFrame | None:
        table = self._names.find(statement.target if isinstance(statement, rs.MergeInto) else statement.table)
        if table is None:
            return None if not isinstance(statement, rs.InsertInto) else self._insert_on_server(statement)
        with transactions.remembering_failure(self._spark):
            found = self._changed(statement, table)
        return nothing(self._spark) if found is None else found

    def _changed(self, statement: Any, table: SqlTable) -> DataFrame | None:
        match statement:
            case rs.DeleteFrom():
                return row_changes.delete(self._names, statement, table)
            case rs.UpdateTable():
                return row_changes.update(self._names, statement, table)
            case rs.MergeInto():
                return row_changes.merge(self._names, statement, table, self._query)
            case rs.InsertInto():
                insert(self._names, statement, table, self._query)
            case _:
                transactions.run(self._spark, table, truncate_statement(self._spark))
        return None

    def _insert_on_server(self, statement: rs.InsertInto) -> DataFrame | None:
        """Insert rows of Delta tables into a table of the server; None if no Delta table is read."""
        plain = rs.InsertInto(statement.table, statement.query, overwrite=statement.overwrite)
        if statement != plain or not isinstance(statement.table, TableName):
            return None  # the server says that it does not know the table that is read
        spliced = splice(self._names, statement.query.text)
        if not spliced.frames:
            return None
        frame = self._query(spliced)
        frame.write.insertInto(identifier(statement.table.parts), overwrite=statement.overwrite)
        return nothing(self._spark)

    # ------------------------------------------------------------------------------------------------- definitions
    def _create(self, statement: ts.CreateTable) -> DataFrame | None:
        table = statement.table
        parts = self._names.whole(table.parts) if isinstance(table, TableName) else ("delta", table.path)
        if parts is None:
            check_not_on_server(self._names, statement)
            return None
        if statement.query is None:
            return self._in_client(self._names.qualified(statement))
        self._create_as_query(statement, parts)
        return nothing(self._spark)

    def _create_as_query(self, statement: ts.CreateTable, parts: tuple[str, ...]) -> None:
        check_query_definition(statement)
        transactions.check_none(self._spark, "CREATE TABLE AS SELECT")
        name = TableName(parts)
        target = Session(self._names.namespace).names.resolve(name)
        exists = target.exists()
        if exists and statement.if_not_exists:
            return
        if exists and not statement.replaces:
            raise TableAlreadyExistsError(target.shown, "Use CREATE OR REPLACE TABLE, or INSERT INTO.")
        if not exists and not statement.creates:
            raise TableNotFoundError(target.shown, "REPLACE TABLE replaces a table that exists")
        assert statement.query is not None
        frame = self._query(statement.query.text)
        if is_path_name(parts):
            location, options = normalize_location(parts[1]), parse_options({})
        else:
            found = identify_or_create(self._spark, identifier(parts))
            assert found is not None
            location = normalize_location(found.path)
            options = replace(parse_options(found.storage_options), catalog_table=found.catalog_table)
        options = replace(
            options,
            partition_by=tuple(partitioning(statement)) or None,
            cluster_by=tuple(column_path_text(path) for path in statement.cluster_by),
            properties=dict(statement.properties),
            description=statement.comment,
        )
        mode = "replace" if statement.replaces else "error"
        write_table(frame, WriteRequest(location, mode, options, False, query_operation(statement)))

    # ---------------------------------------------------------------------------------------------------- catalogs
    def _use(self, statement: cs.Use) -> DataFrame | None:
        namespace = self._names.namespace
        if not self._is_mine(statement.name[:1] if statement.kind != "SCHEMA" or len(statement.name) > 1 else ()):
            namespace.catalog = namespace.schema = None
            return None
        return self._in_client(statement)

    def _is_mine(self, namespace: tuple[str, ...]) -> bool:
        """Return True if a namespace begins with a connected catalog, or if one is the current catalog."""
        if namespace and find_catalog(namespace[0]) is not None:
            return True
        return self._names.namespace.catalog is not None and len(namespace) < 2 and not self._is_of_server(namespace)

    def _is_of_server(self, namespace: tuple[str, ...]) -> bool:
        return bool(namespace) and namespace[0].lower() == "spark_catalog"

    def _in_client(self, statement: Any) -> DataFrame:
        """Carry out a statement without Spark, and return its result as a frame."""
        with in_transaction(self._names, statement) as session:
            result: pa.Table = run(statement, session)
        return frame_of_arrow(self._spark, result) if result.num_columns else nothing(self._spark)
