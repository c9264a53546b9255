"""All statements that a session without Spark's parser can run, by one entry: `parse_any`."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from pyspark_delta.parser import catalogs, rows, tables
from pyspark_delta.parser.arguments import Arguments
from pyspark_delta.parser.catalog_statements import CatalogStatement
from pyspark_delta.parser.delta import parse
from pyspark_delta.parser.reader import Reader
from pyspark_delta.parser.row_statements import (
    DeleteFrom,
    InsertInto,
    MergeInto,
    Query,
    RowStatement,
    TruncateTable,
    UpdateTable,
)
from pyspark_delta.parser.statements import DeltaStatement
from pyspark_delta.parser.table_statements import TableStatement
from pyspark_delta.parser.tokens import Kind, tokenize
from pyspark_delta.parser.values import SqlText

Statement: TypeAlias = DeltaStatement | RowStatement | TableStatement | CatalogStatement


def parse_any(text: str, arguments: Arguments = None) -> Statement | None:
    """Return a statement; None for one that only Spark knows, such as `CREATE VIEW` or `SET`.

    Expressions and queries are not parsed: they are kept as text. `arguments` are the values of parameters. Raises as
    `parse`.
    """
    statement = parse(text, arguments)
    if statement is not None:
        return statement
    reader = Reader(text)
    first = reader.token.value
    if reader.ended or not (first in _FIRST_WORDS or reader.at("(")):
        return None
    reader.bind(arguments)
    found = _statement(reader)
    if found is not None:
        reader.end()
    return found


_FIRST_WORDS = frozenset(
    {
        "ALTER",
        "ANALYZE",
        "COMMENT",
        "CREATE",
        "DELETE",
        "DESC",
        "DESCRIBE",
        "DROP",
        "FROM",
        "INSERT",
        "MERGE",
        "REFRESH",
        "REPLACE",
        "SELECT",
        "SET",
        "SHOW",
        "TABLE",
        "TRUNCATE",
        "UPDATE",
        "USE",
        "VALUES",
        "WITH",
    }
)


def _statement(reader: Reader) -> Statement | None:
    if reader.at("WITH"):
        return _with(reader)
    if rows.at_query(reader):
        return Query(rows.query(reader))
    changed = _row_change(reader)
    return _definition(reader) if changed is None else changed


def _with(reader: Reader) -> Statement | None:
    """Take common table expressions, and the query or the statement that uses them."""
    start = reader.index
    reader.accept("WITH")
    ctes = rows.common_table_expressions(reader)
    changed = _row_change(reader)
    match changed:
        case None:
            reader.index = start
            return Query(rows.query(reader))
        case InsertInto():
            return replace(changed, query=SqlText(f"{ctes.text} {changed.query.text}", changed.query.start))
        case TruncateTable():
            raise reader.error("a query")
    return replace(changed, ctes=ctes)


def _row_change(reader: Reader) -> InsertInto | DeleteFrom | UpdateTable | MergeInto | TruncateTable | None:
    if reader.accept("INSERT"):
        return rows.insert(reader)
    if reader.accept("DELETE"):
        return rows.delete(reader)
    if reader.accept("UPDATE"):
        return rows.update(reader)
    if reader.accept("MERGE"):
        return rows.merge(reader)
    if reader.accept("TRUNCATE"):
        return rows.truncate(reader)
    return None


def _definition(reader: Reader) -> TableStatement | CatalogStatement | None:
    word = str(reader.token.value)
    reader.index += 1
    match word:
        case "CREATE" | "REPLACE":
            return _create(reader, word)
        case "DROP":
            return _drop(reader)
        case "ALTER" if reader.accept("TABLE"):
            return tables.alter(reader)
        case "COMMENT" if reader.accept("ON", "TABLE"):
            return tables.comment(reader)
        case "ANALYZE" if reader.accept("TABLE"):
            return tables.analyze(reader)
        case "REFRESH" if reader.accept("TABLE"):
            return tables.refresh(reader)
        case "USE":
            return catalogs.use(reader)
        case "SET" if reader.accept("CATALOG"):
            return catalogs.set_catalog(reader)
        case "SHOW":
            return catalogs.show(reader)
        case "DESC" | "DESCRIBE":
            return catalogs.describe(reader)
    return None


def _create(reader: Reader, word: str) -> TableStatement | CatalogStatement | None:
    replaces = word == "REPLACE" or reader.accept("OR", "REPLACE")
    if reader.accept("TABLE") or reader.accept("EXTERNAL", "TABLE"):
        return tables.create(reader, creates=word == "CREATE", replaces=replaces)
    if not replaces and reader.at_any(*catalogs.SCHEMA_WORDS):
        reader.index += 1
        return catalogs.create_schema(reader)
    return None


def _drop(reader: Reader) -> TableStatement | CatalogStatement | None:
    if reader.accept("TABLE"):
        return tables.drop(reader)
    if reader.at_any(*catalogs.SCHEMA_WORDS):
        reader.index += 1
        return catalogs.drop_schema(reader)
    return None


def split(text: str) -> list[str]:
    """Return the statements of a text that semicolons separate. What holds only comments is no statement."""
    found = list[str]()
    start, is_empty = 0, True
    for token in tokenize(text):
        if token.kind is not Kind.END and token.text != ";":
            is_empty = False
            continue
        if not is_empty:
            found.append(text[start : token.start].strip())
        start, is_empty = token.end, True
    return found
