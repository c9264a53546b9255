"""Refuses to write other file formats into the directory of a Delta table, which would corrupt or delete the table.

Spark's own file formats ignore the transaction log: an overwrite deletes it with all files of the table, and an append
leaves files that no version contains. delta-spark allows both; the error and the setting that turns the check off have
the names that Databricks gives them. Reads are not checked, as in delta-spark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import wraps
from inspect import signature
from itertools import pairwise
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.readwriter import DataFrameWriter

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.log.names import LOG_DIRECTORY
from pyspark_delta.spark.conf.probing import probing
from pyspark_delta.spark.conf.sessions import is_delta
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of
from pyspark_delta.spark.session.mixins import ClusteringMixin, FormatMixin, OptionsMixin

SETTING = "spark.databricks.delta.formatCheck.enabled"
_FILE_FORMATS = frozenset(("parquet", "orc", "csv", "json", "text", "xml", "avro"))
_FILE_FORMAT_CLASSES = ("org.apache.spark.sql.execution.datasources.", "org.apache.spark.sql.avro.")
_FILE_SCHEME = re.compile(r"file:(?://[^/]*)?(?=/)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")

# The relevant tokens of SQL: quoted text, comments, words and dots.
_TOKENS = re.compile(
    r"""--[^\n]*|/\*.*?\*/|r'[^']*'|r"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`|\w+|\.""",
    re.DOTALL | re.IGNORECASE,
)
_WRITES = re.compile(r"\b(?:INSERT|CREATE|REPLACE)\b", re.IGNORECASE)


# -------------------------------------------------------------------------------------------------------- DataFrames
def _checking(name: str) -> Any:
    """Return a method of the writer for a file format, such as `parquet`, that first checks its path."""
    method = getattr(DataFrameWriter, name)
    parameters = signature(method)

    @wraps(method)
    def write(self: FormatCheckedWriter, *args: Any, **options: Any) -> None:
        given = parameters.bind(self, *args, **options).arguments
        self._check_target(name, given.get("path"), given.get("mode"), {})
        getattr(super(FormatCheckedWriter, self), name)(*args, **options)

    return write


class FormatCheckedWriter(ClusteringMixin, FormatMixin, OptionsMixin):
    """PySpark's DataFrameWriter, which refuses other formats in the directory of a Delta table."""

    _delta_mode: str | None = None

    def save(self, path: Any = None, format: Any = None, mode: Any = None, *args: Any, **options: Any) -> None:  # noqa: A002
        self._check_target(format or self._delta_source, path, mode, options)
        super().save(path, format, mode, *args, **options)

    def saveAsTable(self, name: str, format: Any = None, mode: Any = None, *args: Any, **options: Any) -> None:  # noqa: A002
        self._check_target(format or self._delta_source, None, mode, options)
        if (mode or self._delta_mode or "").lower() == "append":
            check_table(self._delta_session, name)
        super().saveAsTable(name, format, mode, *args, **options)

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:
        self._delta_check_clustering()
        check_table(self._delta_session, tableName)
        super().insertInto(tableName, overwrite)

    parquet = _checking("parquet")
    orc = _checking("orc")
    csv = _checking("csv")
    json = _checking("json")
    if hasattr(DataFrameWriter, "xml"):  # since PySpark 4.0
        xml = _checking("xml")
    text = _checking("text")

    def _check_target(self, source: str | None, path: Any, mode: Any, options: Mapping[str, Any]) -> None:
        self._delta_check_clustering()
        given = {key.lower(): value for key, value in self._delta_options.items(options).items()}
        chosen = (mode or self._delta_mode or "error").lower()
        if chosen in ("append", "overwrite"):  # the modes error and ignore never write into a directory that exists
            check_target(self._delta_session, source, path or given.get("path"))


class FormatCheckedStreamWriter(ClusteringMixin, FormatMixin, OptionsMixin):
    """PySpark's DataStreamWriter, which refuses other formats in the directory of a Delta table."""

    _delta_has_function = False

    def start(self, path: Any = None, format: Any = None, *args: Any, **options: Any) -> Any:  # noqa: A002
        if not self._delta_has_function:
            self._delta_check_clustering()
            given = {key.lower(): value for key, value in self._delta_options.items(options).items()}
            check_target(self._delta_session, format or self._delta_source, path or given.get("path"))
        return super().start(path, format, *args, **options)

    def toTable(self, tableName: str, *args: Any, **options: Any) -> Any:
        self._delta_check_clustering()
        check_table(self._delta_session, tableName)
        return super().toTable(tableName, *args, **options)


def check_target(spark: SparkSession, source: str | None, path: object) -> None:
    """Raise InvalidOperationError if a file format is about to write to `path`, which is in a Delta table.

    `source` is None for the default format of the session. The check raises no other error. It makes one request to the
    storage for the path, and one for each of its parent directories.
    """
    if not isinstance(path, str) or not _is_file_format(source):
        return
    table = _table_with(spark, path)
    if table is not None:
        _refuse(spark, f"format '{source}'" if source else "the default format of the session", path, table)


def check_table(spark: SparkSession, name: str) -> None:
    """Raise InvalidOperationError if the files of a table or view in Spark's catalog are in a Delta table's directory.

    Only classic sessions know where a table is, so nothing is checked on Spark Connect.
    """
    for path in _directories_of(spark, name):
        table = _table_with(spark, path)
        if table is not None:
            _refuse(spark, f"'{name}', a table of another format,", path, table)


# --------------------------------------------------------------------------------------------------------------- SQL
def check_statement(spark: SparkSession, query: object) -> None:
    """Raise InvalidOperationError if SQL would write another format into the directory of a Delta table.

    INSERT is checked, and CREATE or REPLACE TABLE with another format and a location.
    """
    if not isinstance(query, str) or _WRITES.search(query) is None:
        return
    tokens = [token for token in _TOKENS.findall(query) if not token.startswith(("--", "/*"))]
    words = [token.upper() for token in tokens]
    if words[:1] in (["CREATE"], ["REPLACE"]):
        _check_created(spark, tokens, words)
    for start, word in enumerate(words):
        if word != "INSERT" or words[start + 1 : start + 2] not in (["INTO"], ["OVERWRITE"]):
            continue
        at = start + 2 + (words[start + 2 : start + 3] in (["TABLE"], ["LOCAL"]))
        if words[at : at + 1] == ["DIRECTORY"]:
            _check_directory(spark, "INSERT OVERWRITE DIRECTORY", _path(tokens[at + 1 :], None))
        else:
            check_table(spark, _name(tokens[at:]))


def _check_created(spark: SparkSession, tokens: list[str], words: list[str]) -> None:
    """Check CREATE [OR REPLACE] [EXTERNAL] TABLE name USING format LOCATION 'path' or OPTIONS (path 'path')."""
    if "TABLE" not in words[1:4] or _is_clone(words):
        return
    using = words.index("USING") + 1 if "USING" in words else len(words)
    source = _name(tokens[using:]).strip("`") or None
    if _is_file_format(source) and not is_delta(spark, source):
        _check_directory(spark, f"CREATE TABLE USING {source}" if source else "CREATE TABLE", _path(tokens, "location"))


def _is_clone(words: list[str]) -> bool:
    """Return True for CREATE TABLE name SHALLOW CLONE or DEEP CLONE, which makes a Delta table."""
    end = next((at for at, word in enumerate(words) if word in ("AS", "LOCATION", "OPTIONS", "USING")), len(words))
    return any(pair in (("SHALLOW", "CLONE"), ("DEEP", "CLONE")) for pair in pairwise(words[:end]))


def _check_directory(spark: SparkSession, what: str, path: str | None) -> None:
    table = None if path is None else _table_with(spark, path)
    if path is not None and table is not None:
        _refuse(spark, what, path, table)


def _path(tokens: list[str], keyword: str | None) -> str | None:
    """Return the quoted text after the keyword or the option `path`; None if there is none.

    If the keyword is None, the text may also be the first token.
    """
    before = keyword
    for token in tokens:
        if token.upper() in ("SELECT", "VALUES", "FROM", "WITH"):
            return None
        text = _literal(token)
        if text is not None and before in (keyword, "path"):
            return text
        before = token.strip("'\"`").lower()
        keyword = keyword or "path"
    return None


def _literal(token: str) -> str | None:
    """Return the text of a string literal; None for another token."""
    if token[:2].lower() in ("r'", 'r"'):
        return token[2:-1]
    quote = token[0]
    if quote not in "'\"":
        return None
    return re.sub(r"\\(.)", r"\1", token[1:-1].replace(quote * 2, quote), flags=re.DOTALL)


def _name(tokens: list[str]) -> str:
    """Return the identifier at the beginning of the tokens, with its dots."""
    name: list[str] = []
    for token in tokens:
        if (token == ".") != (len(name) % 2 == 1):
            break
        name.append(token)
    return "".join(name)


# ----------------------------------------------------------------------------------------------------------- details
def _is_file_format(source: str | None) -> bool:
    return source is None or source.lower() in _FILE_FORMATS or source.startswith(_FILE_FORMAT_CLASSES)


def _table_with(spark: SparkSession, path: str) -> str | None:
    """Return the Delta table that a path is in; None if there is none, or if that cannot be found out."""
    with suppress(Exception):
        java: Any = getattr(spark, "_jsparkSession", None)
        if java is None:  # only the server can access other storage
            return None if _SCHEME.match(path) and not _FILE_SCHEME.match(path) else _local_table(path)
        hadoop_path: Any = spark._jvm.org.apache.hadoop.fs.Path  # type: ignore[union-attr]
        current = hadoop_path(path)
        files = current.getFileSystem(java.sessionState().newHadoopConf())
        current = files.makeQualified(current)
        if _FILE_SCHEME.match(current.toString()):
            return _local_table(current.toString())
        while current is not None:
            if files.exists(hadoop_path(current, LOG_DIRECTORY)):
                return str(current.toString())
            current = current.getParent()
    return None


def _local_table(path: str) -> str | None:
    below = ""
    current = os.path.abspath(_FILE_SCHEME.sub("", path, count=1))
    while current != below:
        if os.path.isdir(os.path.join(current, LOG_DIRECTORY)):
            return current
        below, current = current, os.path.dirname(current)
    return None


def _directories_of(spark: SparkSession, name: str) -> list[str]:
    """Return the directories of a file table, or of the file table behind a view through which Spark writes."""
    java: Any = getattr(spark, "_jsparkSession", None)
    if java is None or not name:
        return []
    with suppress(Exception), probing():
        node = java.table(name).queryExecution().analyzed()
        while kind_of(node) in ("SubqueryAlias", "View"):
            node = node.child()
        if kind_of(node) == "LogicalRelation" and kind_of(node.relation()) == "HadoopFsRelation":
            return [str(root.toString()) for root in elements(node.relation().location().rootPaths())]
    return []


def _refuse(spark: SparkSession, what: str, path: str, table: str) -> None:
    if str(spark.conf.get(SETTING, "true")).lower() == "false":
        return
    inside = "is" if path.rstrip("/").endswith(table.rstrip("/")) else f"is in '{table}',"
    raise InvalidOperationError(
        f"'{path}' {inside} a Delta table, and writing to it with {what} would leave files there that the table does "
        "not contain, or delete its files. Nothing was written. Write with format('delta'), or to another directory. "
        f"To turn this check off, set {SETTING} to false.",
        error_class="DELTA_INVALID_FORMAT",
        sqlstate="22000",
        table=table,
    )
