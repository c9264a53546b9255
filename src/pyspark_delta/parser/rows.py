"""The grammar of statements that change rows: INSERT, DELETE, UPDATE, MERGE, TRUNCATE."""

from __future__ import annotations

from dataclasses import replace

from pyspark_delta.errors import SqlSyntaxError
from pyspark_delta.parser.clauses import at_time_travel, time_travel
from pyspark_delta.parser.reader import Reader
from pyspark_delta.parser.row_statements import (
    Assignment,
    DeleteFrom,
    InsertInto,
    MergeAction,
    MergeClause,
    MergeInto,
    MergeRows,
    PartitionValue,
    TruncateTable,
    UpdateTable,
)
from pyspark_delta.parser.tokens import Kind
from pyspark_delta.parser.values import Path, SqlText

QUERY_WORDS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")


def at_query(reader: Reader) -> bool:
    """Return True if the next tokens begin a query, which brackets may surround."""
    ahead = 0
    while reader.peek(ahead).text == "(":
        ahead += 1
    return reader.peek(ahead).value in QUERY_WORDS


def query(reader: Reader) -> SqlText:
    """Take a query, up to the end of the statement or an outer bracket."""
    if not at_query(reader):
        reader.fail("a query")
    return reader.cut("a query")


def common_table_expressions(reader: Reader) -> SqlText:
    """Take `WITH name AS (query), ...`, whose WITH was taken already."""
    start = reader.index - 1
    reader.accept("RECURSIVE")
    while True:
        reader.name("the name of a common table expression")
        if reader.at("("):
            reader.bracketed_paths()
        if reader.accept("MAX"):
            reader.expect("RECURSION", "LEVEL")
            reader.integer()
        reader.accept("AS")
        reader.bracketed("a query")
        if not reader.accept(","):
            return reader.rest(start)


def alias(reader: Reader, *ends: str) -> str | None:
    """Take `[AS] name`; the words `ends` are not names of their own."""
    if reader.accept("AS"):
        return reader.name("an alias")
    if reader.at_name() and not reader.at_any(*ends):
        return reader.name()
    return None


# ---------------------------------------------------------------------------------------------------------- INSERT
def insert(reader: Reader) -> InsertInto:
    """Take what follows INSERT."""
    evolves = reader.accept("WITH", "SCHEMA", "EVOLUTION")
    overwrite = reader.choose("INTO", "OVERWRITE") == "OVERWRITE"
    reader.accept("TABLE")
    found = InsertInto(reader.table(), SqlText(""), overwrite=overwrite, evolves=evolves)
    ends = ("PARTITION", "REPLACE", "BY", "IF", *QUERY_WORDS)
    found = replace(found, alias=alias(reader, *ends))
    if reader.accept("PARTITION"):
        found = replace(found, partition=partition_values(reader), if_not_exists=reader.accept("IF", "NOT", "EXISTS"))
    found = _replaced(reader, found)
    if reader.accept("BY", "NAME"):
        found = replace(found, by_name=True)
    elif (columns := _columns(reader)) is not None:
        found = replace(found, columns=columns)
    named = _named_query(reader) if found.replace_on is not None else None
    return replace(found, query=named or query(reader))


def _named_query(reader: Reader) -> SqlText | None:
    """Take `(query) [AS] name`, whose name the condition of REPLACE ON uses; None for a query without a name."""
    start = reader.index
    if reader.at("(") and at_query(reader):
        found = reader.bracketed("a query")
        if alias(reader, *_AFTER_QUERY) is not None:
            return found
    reader.index = start
    return None


def _replaced(reader: Reader, found: InsertInto) -> InsertInto:
    """Take `REPLACE WHERE condition`, `REPLACE ON condition` or `REPLACE USING (columns)`."""
    if found.overwrite or not reader.accept("REPLACE"):
        return found
    match reader.choose("WHERE", "ON", "USING"):
        case "WHERE":
            return replace(found, replace_where=reader.cut("a condition", _at_inserted))
        case "ON":
            return replace(found, replace_on=reader.cut("a condition", _at_inserted))
    return replace(found, replace_using=reader.bracketed_paths())


def _at_inserted(reader: Reader) -> bool:
    """Return True where a condition ends: at a query, or at `BY NAME`."""
    if reader.at("BY", "NAME"):
        return True
    if reader.at("("):
        return at_query(reader) and _after_operand(reader)
    if reader.at("FROM"):  # a IS DISTINCT FROM b
        return reader.peek(-1).value != "DISTINCT"
    return reader.at_any("SELECT", "WITH", "VALUES", "TABLE")


def _after_operand(reader: Reader) -> bool:
    """Return True if a value or a column precedes the next token, so that no subquery of a condition begins there."""
    before = reader.peek(-1)
    if before.kind is Kind.WORD:
        return before.value not in _BEFORE_SUBQUERIES or reader.peek(-2).text == "."
    return before.kind in (Kind.QUOTED, Kind.STRING, Kind.NUMBER) or before.text in (")", "]")


_BEFORE_SUBQUERIES = (
    *("ALL", "AND", "ANY", "BETWEEN", "CASE", "DIV", "ELSE", "EXISTS", "FROM", "ILIKE", "IN", "LIKE", "NOT", "OR"),
    *("REGEXP", "RLIKE", "SOME", "THEN", "WHEN"),
)
_AFTER_QUERY = ("UNION", "EXCEPT", "MINUS", "INTERSECT", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET")


def partition_values(reader: Reader) -> tuple[PartitionValue, ...]:
    """Take `(column = value, ...)`, which follows PARTITION."""
    reader.expect("(")
    found = []
    while True:
        column = reader.path("the name of a column")
        found.append(PartitionValue(column, _until(reader, ",") if reader.accept("=") else None))
        if not reader.accept(","):
            reader.expect(")")
            return tuple(found)


def _columns(reader: Reader) -> tuple[Path, ...] | None:
    """Take a list of columns in brackets; None if there is none, or the brackets are those of a query."""
    start = reader.index
    if reader.at("("):
        try:
            found = reader.bracketed_paths()
        except SqlSyntaxError:
            found = None
        if found is not None and not reader.ended:
            return found
    reader.index = start
    return None


def _until(reader: Reader, *words: str) -> SqlText:
    """Take an expression that ends where one of these words or operators follows outside of brackets."""
    return reader.cut("an expression", lambda at: at.at_any(*words))


# -------------------------------------------------------------------------------------- DELETE, UPDATE, TRUNCATE
def delete(reader: Reader) -> DeleteFrom:
    """Take what follows DELETE."""
    reader.expect("FROM")
    table = reader.table()
    name = alias(reader, "WHERE")
    return DeleteFrom(table, _where(reader), name)


def update(reader: Reader) -> UpdateTable:
    """Take what follows UPDATE."""
    table = reader.table()
    name = alias(reader, "SET")
    reader.expect("SET")
    return UpdateTable(table, _assignments(reader, "WHERE"), _where(reader), name)


def truncate(reader: Reader) -> TruncateTable:
    """Take what follows TRUNCATE."""
    reader.expect("TABLE")
    return TruncateTable(reader.table())


def _where(reader: Reader) -> SqlText | None:
    return reader.cut("a condition") if reader.accept("WHERE") else None


def _assignments(reader: Reader, end: str) -> tuple[Assignment, ...]:
    found = []
    while True:
        column = reader.path("the name of a column")
        reader.expect("=")
        found.append(Assignment(column, _until(reader, ",", end)))
        if not reader.accept(","):
            return tuple(found)


# ----------------------------------------------------------------------------------------------------------- MERGE
def merge(reader: Reader) -> MergeInto:
    """Take what follows MERGE."""
    evolves = reader.accept("WITH", "SCHEMA", "EVOLUTION")
    reader.expect("INTO")
    target = reader.table()
    target_alias = alias(reader, "USING")
    reader.expect("USING")
    source = reader.bracketed("a query") if reader.at("(") else reader.table()
    time = time_travel(reader) if at_time_travel(reader) else None
    source_alias = alias(reader, "ON")
    reader.expect("ON")
    condition = _until(reader, "WHEN")
    clauses = []
    while reader.accept("WHEN"):
        clauses.append(_clause(reader))
    if not clauses:
        reader.fail("WHEN")
    return MergeInto(target, source, condition, tuple(clauses), target_alias, source_alias, time, evolves)


def _clause(reader: Reader) -> MergeClause:
    rows = MergeRows.MATCHED
    if reader.accept("NOT"):
        reader.expect("MATCHED")
        rows = MergeRows.NOT_MATCHED
        if reader.accept("BY") and reader.choose("SOURCE", "TARGET") == "SOURCE":
            rows = MergeRows.NOT_MATCHED_BY_SOURCE
    else:
        reader.expect("MATCHED")
    condition = _until(reader, "THEN") if reader.accept("AND") else None
    reader.expect("THEN")
    if rows is MergeRows.NOT_MATCHED:
        reader.expect("INSERT")
        return MergeClause(rows, MergeAction.INSERT, condition, _inserted(reader))
    if reader.choose("UPDATE", "DELETE") == "DELETE":
        return MergeClause(rows, MergeAction.DELETE, condition)
    reader.expect("SET")
    has_values = rows is MergeRows.MATCHED  # rows that the source lacks have none in it
    values = None if has_values and reader.accept("*") else _assignments(reader, "WHEN")
    return MergeClause(rows, MergeAction.UPDATE, condition, values)


def _inserted(reader: Reader) -> tuple[Assignment, ...] | None:
    if reader.accept("*"):
        return None
    columns = reader.bracketed_paths()
    reader.expect("VALUES")
    opened = reader.token
    reader.expect("(")
    values = [_until(reader, ",")]
    while reader.accept(","):
        values.append(_until(reader, ","))
    reader.expect(")")
    if len(values) != len(columns):
        reader.fail(f"{len(columns)} values for {len(columns)} columns", opened)
    return tuple(Assignment(column, value) for column, value in zip(columns, values, strict=True))
