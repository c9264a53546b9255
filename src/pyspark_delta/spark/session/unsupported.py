"""Statements of delta-spark that a session cannot run: each is refused by name, with an alternative.

Such sessions are those of Spark Connect, for what only the server could run, and classic ones into which SQL cannot be
installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyspark_delta.errors import DeltaError, InvalidOperationError
from pyspark_delta.spark.conf.conditions import condition_of
from pyspark_delta.spark.session.identifiers import is_named, path_of_identifier
from pyspark_delta.spark.session.sql_hooks import find_named, has_sql

_BY_PATH = {
    "open": "DeltaTable.forPath(spark, path)",
    "read": 'spark.read.format("delta").load(path)',
    "append": 'df.write.format("delta").mode("append").save(path)',
}
_BY_NAME = {
    "open": "DeltaTable.forName(spark, name)",
    "read": "spark.table(name)",
    "append": 'df.write.mode("append").saveAsTable(name)',
}
_INSTEAD = {
    "VACUUM": "Use {open}.vacuum(retentionHours).",
    "OPTIMIZE": "Use {open}.optimize().executeCompaction().",
    "REORG": "Use {open}.reorg().purge().",
    "RESTORE": "Use {open}.restoreToVersion(version) or {open}.restoreToTimestamp(timestamp).",
    "CLONE": "Use {open}.clone(target).",
    "CONVERT TO DELTA": "Use DeltaTable.convertToDelta(spark, 'parquet.`/path`').",
    "GENERATE": "Use {open}.generate('symlink_format_manifest').",
    "DESCRIBE HISTORY": "Use {open}.history().",
    "DESCRIBE DETAIL": "Use {open}.detail().",
    "DELETE": "Use {open}.delete(condition).",
    "UPDATE": "Use {open}.update(condition, set).",
    "MERGE": "Use {open}.merge(source, condition).",
    "INSERT": "Use {append}; mode('overwrite') replaces the rows.",
    "TRUNCATE": "Use {open}.delete().",
    "ALTER": "Use {open}.alter().",
    "CREATE": "Use DeltaTable.create(spark) or DeltaTable.createOrReplace(spark), or write rows with df.write.",
    "REPLACE": "Use DeltaTable.replace(spark).",
    "DROP": "Drop a table of a catalog through the catalog. To drop a table without a catalog, delete its directory.",
}
_OTHERWISE = "Create a view with {read}.createOrReplaceTempView('t'), and name the view in the statement."

_COMMENTS = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_OWN_STATEMENT = re.compile(
    rf"{_COMMENTS}(OPTIMIZE|VACUUM|RESTORE|REORG|GENERATE|CONVERT\s+TO\s+DELTA|DESC(?:RIBE)?\s+(?:HISTORY|DETAIL))\b",
    re.IGNORECASE | re.DOTALL,
)
_OWN_OBJECTS = "pyspark_delta."  # what the text of every object of this package begins with in the JVM
_TRUNCATE = re.compile(
    rf"{_COMMENTS}TRUNCATE\b{_COMMENTS}TABLE\b{_COMMENTS}((?:`(?:[^`]|``)+`|[^\s`;(])+)", re.IGNORECASE | re.DOTALL
)
_OPERATION = re.compile(
    rf"{_COMMENTS}(CREATE\s+(?:OR\s+REPLACE\s+)?(?:GLOBAL\s+)?(?:TEMP(?:ORARY)?\s+)?VIEW\b|[A-Z]+)",
    re.IGNORECASE | re.DOTALL,
)
_PATH = re.compile(r"\b(?:delta|deltapy)\s*\.\s*`(?:[^`]|``)+`", re.IGNORECASE)


def refusal(operation: str, what: str, *, by_name: bool = False) -> InvalidOperationError:
    """Return the error for an operation, with an alternative. `what` is the operation as the user called it.

    `by_name` says that the table was named, not given by its path.
    """
    instead = _INSTEAD.get(operation, _OTHERWISE)
    return InvalidOperationError(
        f"pyspark-delta does not support {what}. Nothing was changed. "
        f"{instead.format_map(_BY_NAME if by_name else _BY_PATH)}",
        error_class="DELTA_OPERATION_NOT_ALLOWED",
        sqlstate="0AKDC",
        operation=operation,
    )


def refuse_truncate(spark: SparkSession, query: object) -> None:
    """Raise InvalidOperationError if Spark's own parser would truncate a Delta table of Spark's catalog.

    Spark would delete the whole directory of a table that it manages, with the log. A parser of this package does not
    let it.
    """
    match = _TRUNCATE.match(query) if isinstance(query, str) else None
    if match is None or not has_sql(spark):
        return
    if str(spark._jsparkSession.sessionState().sqlParser().toString()).startswith(_OWN_OBJECTS):
        return
    if find_named(spark, match[1], create=False) is not None:
        raise refusal("TRUNCATE", f"the SQL statement TRUNCATE for {match[1]}", by_name=True)


@contextmanager
def explaining_sql(spark: SparkSession, query: object) -> Iterator[None]:
    """Raise InvalidOperationError, with an alternative, if Spark refuses a query in the block because of Delta.

    The query is then one of Delta's own statements, or it names a table by its path or by its name in a connected
    catalog. It is inspected only after Spark has refused it, and only in a session without SQL (`has_sql`).
    """
    try:
        yield
    except PySparkException as error:
        is_of_spark = isinstance(query, str) and not isinstance(error, DeltaError)
        explained = _explain(spark, str(query), error) if is_of_spark else None
        if explained is None:
            raise
        raise explained from error


def _explain(spark: SparkSession, query: str, error: PySparkException) -> InvalidOperationError | None:
    condition, facts = condition_of(error), error.getMessageParameters() or {}
    if has_sql(spark):
        return None  # Spark has looked the table up in a catalog of this package, so its own error is right
    statement = _own_statement(query, condition, facts)
    if statement is not None:
        return refusal(statement, f"the SQL statement {statement}")
    table = _delta_table(spark, query, condition, facts)
    if table is None:
        return None
    match = _OPERATION.match(query)
    operation = " ".join(match[1].upper().split()) if match is not None else "SQL"
    return refusal(operation, f"the SQL statement {operation} for {table}", by_name=path_of_identifier(table) is None)


def _own_statement(query: str, condition: str, facts: Mapping[str, str]) -> str | None:
    """Return the name of a statement of Delta's own that Spark did not parse."""
    match = _OWN_STATEMENT.match(query)
    statement = "" if match is None else " ".join(match[1].upper().split()).replace("DESC ", "DESCRIBE ")
    if condition == "PARSE_SYNTAX_ERROR":
        if facts.get("error", "").upper() in ("'CLONE'", "'SHALLOW'", "'DEEP'"):
            return "CLONE"
        return statement or None
    # Spark parses DESCRIBE HISTORY t as the description of a column of a table `HISTORY`.
    described = facts.get("relationName", "").strip("`").upper()
    return statement if described and statement == f"DESCRIBE {described}" else None


def _delta_table(spark: SparkSession, query: str, condition: str, facts: Mapping[str, str]) -> str | None:
    """Return the table that Spark did not find, if it is a path or a name in a connected catalog."""
    if condition in ("UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY", "INVALID_SCHEMA_OR_RELATION_NAME"):
        source = facts.get("dataSourceType", "") or f"delta.{facts.get('name', '')}"
        return next((path for path in _PATH.findall(query) if path.lower().startswith(source.lower())), None)
    name = facts.get("relationName") or facts.get("identifier") or ""
    name = re.sub(r"^`(delta|deltapy)`\.", r"\1.", name.removeprefix("`spark_catalog`."), flags=re.IGNORECASE)
    return name if name and is_named(spark, name) else None
