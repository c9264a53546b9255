"""Temporary views and cached queries of a Connect session, whose queries have Delta tables."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from pyspark_delta.errors import InvalidOperationError, SqlSyntaxError
from pyspark_delta.parser import parse_any
from pyspark_delta.parser import row_statements as rs
from pyspark_delta.parser.arguments import Arguments
from pyspark_delta.parser.clauses import properties
from pyspark_delta.parser.reader import Reader
from pyspark_delta.parser.values import TableName
from pyspark_delta.schema.column_paths import column_path_text, quoted
from pyspark_delta.spark.sql.connect.names import Names, only_in_client
from pyspark_delta.spark.sql.connect.rewrite import splice
from pyspark_delta.spark.sql.connect.row_changes import RunQuery


def create_view(names: Names, text: str, args: Arguments, query: RunQuery) -> bool:
    """Make a temporary view over a query with Delta tables; False, and nothing happens, for any other statement.

    Raises InvalidOperationError for a permanent one, which the server could not resolve later.
    """
    reader = Reader(text)
    reader.bind(args)
    if not reader.accept("CREATE"):
        return False
    replaces = reader.accept("OR", "REPLACE")
    is_global = reader.accept("GLOBAL")
    temporary = reader.accept("TEMPORARY") or reader.accept("TEMP")
    if not reader.accept("VIEW"):
        return False
    reader.accept("IF", "NOT", "EXISTS")
    if not reader.at_name():
        return False
    view = reader.path()
    try:
        columns = _view_columns(reader)
    except SqlSyntaxError:  # columns with types belong to a view of a file format
        return False
    if not reader.accept("AS"):
        return False
    inner = reader.cut("a query").text
    spliced = splice(names, inner)  # once: a point in time may be computed, as by now()
    if not spliced.frames:
        return False
    if not temporary:
        raise InvalidOperationError(
            f"The view {column_path_text(view)} would be permanent, and the Spark Connect server does not know the "
            "Delta tables that it reads. Nothing was created. Use CREATE TEMPORARY VIEW.",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
            sqlstate="0AKDC",
        )
    frame = query(spliced)
    if columns:
        frame = _with_columns(frame, columns)
    make = {
        (False, False): frame.createTempView,
        (False, True): frame.createOrReplaceTempView,
        (True, False): frame.createGlobalTempView,
        (True, True): frame.createOrReplaceGlobalTempView,
    }[is_global, replaces]
    make(view[-1])
    return True


def cache_query(
    names: Names, before: Callable[..., DataFrame], text: str, args: Arguments, query: RunQuery
) -> DataFrame | None:
    """Cache a query with Delta tables under a name; None for any other statement.

    Raises InvalidOperationError for CACHE TABLE of a Delta table, which the server does not know.
    """
    reader = Reader(text)
    reader.bind(args)
    if not reader.accept("CACHE"):
        return None
    lazy = reader.accept("LAZY")
    if not reader.accept("TABLE") or not reader.at_name():
        return None
    view = reader.path()
    start = reader.index
    if reader.accept("OPTIONS"):
        properties(reader)
    options = reader.rest(start).text if reader.index > start else ""
    if reader.ended and names.whole(view) is not None:
        raise only_in_client("CACHE TABLE", "Cache a query under a name: CACHE TABLE name AS SELECT * FROM ...")
    if len(view) != 1 or reader.ended:
        return None
    reader.accept("AS")
    inner = reader.cut("a query").text
    spliced = splice(names, inner)
    if not spliced.frames:
        return None
    query(spliced).createTempView(view[0])
    return before(names.spark, f"CACHE {'LAZY ' if lazy else ''}TABLE {quoted(view[0])} {options}")


def refuse_view(names: Names, text: str, args: Arguments, error: Exception) -> None:
    """Raise InvalidOperationError if the server could not change rows because the target is a temporary view."""
    try:
        statement = parse_any(text, args)
    except SqlSyntaxError:
        return
    if not isinstance(statement, rs.DeleteFrom | rs.UpdateTable | rs.InsertInto | rs.TruncateTable | rs.MergeInto):
        return
    target = statement.target if isinstance(statement, rs.MergeInto) else statement.table
    if isinstance(target, TableName) and _is_temporary_view(names, target.parts):
        name = ".".join(target.parts)
        raise InvalidOperationError(
            f"'{name}' is a temporary view, and on Spark Connect rows cannot be changed through a view. Nothing was "
            "changed. Name the table itself, as in delta.`/path/to/table`.",
            error_class="DELTA_CANNOT_WRITE_INTO_VIEW",
            sqlstate="0A000",
            view=name,
        ) from error


def _is_temporary_view(names: Names, parts: tuple[str, ...]) -> bool:
    try:
        return names.spark.catalog.getTable(".".join(map(quoted, parts))).isTemporary
    except AnalysisException:
        return False


def _view_columns(reader: Reader) -> list[tuple[str, str | None]]:
    """Take the names of the columns of a view, with their comments."""
    columns = list[tuple[str, str | None]]()
    if reader.accept("("):
        while not columns or reader.accept(","):
            columns.append((reader.name("the name of a column"), reader.string() if reader.accept("COMMENT") else None))
        reader.expect(")")
    return columns


def _with_columns(frame: DataFrame, columns: list[tuple[str, str | None]]) -> DataFrame:
    """Return the rows under other names. Raises InvalidOperationError for another number of columns."""
    if len(columns) != len(frame.columns):
        raise InvalidOperationError(
            f"The view has {len(columns)} columns, and its query {len(frame.columns)}. Nothing was created. Name every "
            "column of the query.",
            error_class="CREATE_VIEW_COLUMN_ARITY_MISMATCH",
            sqlstate="21S01",
        )
    frame = frame.toDF(*(name for name, _ in columns))
    for name, comment in columns:
        if comment is not None:
            frame = frame.withMetadata(name, {"comment": comment})
    return frame
