"""The grammar of statements that define tables: CREATE, DROP, ALTER, COMMENT ON; and ANALYZE and REFRESH TABLE."""

from __future__ import annotations

from dataclasses import replace

from pyspark_delta.parser.clauses import properties, property_key
from pyspark_delta.parser.constraints import take_definitions
from pyspark_delta.parser.reader import Reader
from pyspark_delta.parser.rows import at_query, query
from pyspark_delta.parser.table_statements import (
    AddColumns,
    AlterColumns,
    AnalyzeTable,
    ColumnChange,
    ColumnPosition,
    CommentOnTable,
    CreateTable,
    CreateTableLike,
    DropColumns,
    DropTable,
    NewColumn,
    RefreshTable,
    RenameColumn,
    RenameTable,
    ReplaceColumns,
    SetProperties,
    TableStatement,
    UnsetProperties,
)
from pyspark_delta.parser.tokens import Kind
from pyspark_delta.parser.values import SqlText, TableReference


# ---------------------------------------------------------------------------------------------------------- CREATE
def create(reader: Reader, *, creates: bool = True, replaces: bool = False) -> CreateTable | CreateTableLike:
    """Take what follows `CREATE [OR REPLACE] TABLE` or `REPLACE TABLE`."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    table = reader.table()
    if creates and not replaces and reader.accept("LIKE"):
        return _like(reader, CreateTableLike(table, reader.table_name(), if_not_exists=if_not_exists))
    found = CreateTable(table, if_not_exists=if_not_exists, creates=creates, replaces=replaces)
    if reader.at("(") and not _at_bracketed_query(reader):
        columns, constraints = take_definitions(reader)
        found = replace(found, columns=columns, constraints=constraints)
    while not (reader.ended or reader.at("AS") or at_query(reader)):
        found = _clause(reader, found)
    if reader.accept("AS") or not reader.ended:
        found = replace(found, query=query(reader))
    return found


def _at_bracketed_query(reader: Reader) -> bool:
    """Return True if the brackets hold a query. A column may also have the name of a keyword such as SELECT."""
    inner = reader.peek()
    return inner.text == "(" or (inner.value in ("SELECT", "WITH", "VALUES", "FROM") and reader.peek(2).value != ",")


def _clause(reader: Reader, found: CreateTable) -> CreateTable:
    """Take one clause of CREATE TABLE. A clause may stand there once."""
    if found.using is None and reader.accept("USING"):
        return replace(found, using=".".join(reader.path("a format, such as delta")))
    if not found.options and reader.accept("OPTIONS"):
        return replace(found, options=properties(reader))
    if not (found.partitioned_by or found.partition_columns) and reader.accept("PARTITIONED"):
        return _partitioned(reader, found)
    if not found.cluster_by and reader.accept("CLUSTER"):
        reader.expect("BY")
        return replace(found, cluster_by=reader.bracketed_paths())
    if found.comment is None and reader.accept("COMMENT"):
        return replace(found, comment=reader.string())
    if found.location is None and reader.accept("LOCATION"):
        return replace(found, location=reader.string("a path in quotes"))
    if not found.properties and reader.accept("TBLPROPERTIES"):
        return replace(found, properties=properties(reader))
    raise reader.error("USING, PARTITIONED BY, CLUSTER BY, COMMENT, LOCATION, TBLPROPERTIES, OPTIONS or AS")


def _partitioned(reader: Reader, found: CreateTable) -> CreateTable:
    """Take names of columns, or their definitions."""
    reader.expect("BY")
    start = reader.index
    reader.expect("(")
    reader.path("the name of a column")
    defined = not reader.at_any(",", ")", "(")
    reader.index = start
    if defined:
        return replace(found, partition_columns=reader.bracketed("definitions of columns"))
    return replace(found, partitioned_by=reader.bracketed_paths())


def _like(reader: Reader, found: CreateTableLike) -> CreateTableLike:
    while not reader.ended:
        if found.using is None and reader.accept("USING"):
            found = replace(found, using=reader.name("a format, such as delta"))
        elif found.location is None and reader.accept("LOCATION"):
            found = replace(found, location=reader.string("a path in quotes"))
        elif not found.properties and reader.accept("TBLPROPERTIES"):
            found = replace(found, properties=properties(reader))
        else:
            reader.fail("USING, LOCATION, TBLPROPERTIES or the end of the statement")
    return found


def drop(reader: Reader) -> DropTable:
    """Take what follows `DROP TABLE`."""
    if_exists = reader.accept("IF", "EXISTS")
    return DropTable(reader.table(), if_exists, reader.accept("PURGE"))


def comment(reader: Reader) -> CommentOnTable:
    """Take what follows `COMMENT ON TABLE`."""
    table = reader.table()
    reader.expect("IS")
    return CommentOnTable(table, None if reader.accept("NULL") else reader.string())


def analyze(reader: Reader) -> AnalyzeTable:
    """Take what follows `ANALYZE TABLE`."""
    found = AnalyzeTable(reader.table())
    if reader.accept("PARTITION"):
        found = replace(found, partition=reader.bracketed("columns of the partitioning"))
    reader.expect("COMPUTE", "STATISTICS")
    if reader.accept("NOSCAN"):
        return replace(found, scans=False)
    if not reader.accept("FOR"):
        return found
    if reader.accept("ALL"):
        reader.expect("COLUMNS")
        return found
    reader.expect("COLUMNS")
    names = [reader.name("the name of a column")]
    while reader.accept(","):
        names.append(reader.name("the name of a column"))
    return replace(found, columns=tuple(names))


def refresh(reader: Reader) -> RefreshTable:
    """Take what follows `REFRESH TABLE`."""
    return RefreshTable(reader.table())


# ----------------------------------------------------------------------------------------------------------- ALTER
def alter(reader: Reader) -> TableStatement:
    """Take what follows `ALTER TABLE`."""
    table = reader.table()
    match reader.choose("ADD", "DROP", "RENAME", "ALTER", "CHANGE", "SET", "UNSET", "REPLACE"):
        case "ADD":
            _column_word(reader)
            if_not_exists = reader.accept("IF", "NOT", "EXISTS")
            return AddColumns(table, _new_columns(reader), if_not_exists)
        case "REPLACE":
            reader.expect("COLUMNS")
            return ReplaceColumns(table, _new_columns(reader))
        case "DROP":
            _column_word(reader)
            if_exists = reader.accept("IF", "EXISTS")
            return DropColumns(table, reader.bracketed_paths() if reader.at("(") else reader.paths(), if_exists)
        case "RENAME":
            return _rename(reader, table)
        case "SET":
            reader.expect("TBLPROPERTIES")
            return SetProperties(table, properties(reader))
        case "UNSET":
            return _unset(reader, table)
    reader.accept("COLUMN")
    changes = [_change(reader)]
    while reader.accept(","):
        changes.append(_change(reader))
    return AlterColumns(table, tuple(changes))


def _column_word(reader: Reader) -> None:
    if not (reader.accept("COLUMNS") or reader.accept("COLUMN")):
        reader.fail("COLUMNS")


def _rename(reader: Reader, table: TableReference) -> RenameColumn | RenameTable:
    if reader.accept("TO"):
        return RenameTable(table, reader.table_name())
    reader.expect("COLUMN")
    column = reader.path("the name of a column")
    reader.expect("TO")
    return RenameColumn(table, column, reader.name("the new name of the column"))


def _unset(reader: Reader, table: TableReference) -> UnsetProperties:
    reader.expect("TBLPROPERTIES")
    if_exists = reader.accept("IF", "EXISTS")
    reader.expect("(")
    keys = [property_key(reader)]
    while reader.accept(","):
        keys.append(property_key(reader))
    reader.expect(")")
    return UnsetProperties(table, tuple(keys), if_exists)


def _new_columns(reader: Reader) -> tuple[NewColumn, ...]:
    """Take definitions of columns, which brackets may surround."""
    bracketed = reader.accept("(")
    found = [_new_column(reader)]
    while reader.accept(","):
        found.append(_new_column(reader))
    if bracketed:
        reader.expect(")")
    return tuple(found)


def _new_column(reader: Reader) -> NewColumn:
    found = NewColumn(reader.path("the name of a column"), data_type(reader))
    while not (reader.ended or reader.at_any(",", ")")):
        if reader.accept("NOT"):
            reader.expect("NULL")
            found = replace(found, nullable=False)
        elif found.comment is None and reader.accept("COMMENT"):
            found = replace(found, comment=reader.string())
        elif found.default is None and reader.accept("DEFAULT"):
            found = replace(found, default=_default(reader))
        elif found.position is None and reader.at_any("FIRST", "AFTER"):
            found = replace(found, position=_position(reader))
        else:
            reader.fail("NOT NULL, COMMENT, DEFAULT, FIRST, AFTER or the end of the column")
    return found


def _default(reader: Reader) -> SqlText:
    words = (",", "COMMENT", "FIRST", "AFTER")
    return reader.cut("an expression", lambda at: at.at_any(*words) or at.at("NOT", "NULL"))


def _position(reader: Reader) -> ColumnPosition:
    if reader.accept("FIRST"):
        return ColumnPosition()
    reader.expect("AFTER")
    return ColumnPosition(reader.name("the name of a column"))


def _change(reader: Reader) -> ColumnChange:
    """Take one change of a column, or its new name, type, comment and position as Hive has them."""
    found = ColumnChange(reader.path("the name of a column"))
    if reader.accept("TYPE"):
        return replace(found, data_type=data_type(reader))
    if reader.accept("COMMENT"):
        return replace(found, comment=reader.string())
    if reader.at_any("FIRST", "AFTER") and (reader.at("AFTER") or reader.peek().kind not in (Kind.WORD, Kind.QUOTED)):
        return replace(found, position=_position(reader))
    if reader.accept("SET", "NOT", "NULL"):
        return replace(found, nullable=False)
    if reader.accept("DROP", "NOT", "NULL"):
        return replace(found, nullable=True)
    if reader.accept("SET", "DEFAULT"):
        return replace(found, default=reader.cut("an expression", lambda at: at.at(",")))
    if reader.accept("DROP", "DEFAULT"):
        return replace(found, drop_default=True)
    if reader.ended or not reader.at_name() or reader.at_any("SET", "DROP"):
        reader.fail("TYPE, COMMENT, FIRST, AFTER, SET NOT NULL, DROP NOT NULL, SET DEFAULT or DROP DEFAULT")
    found = replace(found, name=reader.name(), data_type=data_type(reader))
    if reader.accept("COMMENT"):
        found = replace(found, comment=reader.string())
    return replace(found, position=_position(reader)) if reader.at_any("FIRST", "AFTER") else found


def data_type(reader: Reader) -> SqlText:
    """Take a type, such as `decimal(10, 2)` or `struct<a: int, b: array<string>>`."""
    start = reader.index
    reader.name("a type")
    if reader.at("("):
        reader.bracketed("the size of a type")
    elif reader.accept("<"):
        _inner_types(reader)
    return reader.rest(start)


def _inner_types(reader: Reader) -> None:
    depth = 1
    while depth:
        if reader.ended or reader.token.kind is Kind.ERROR:
            reader.fail(">")
        depth += {"<": 1, ">": -1}.get(reader.token.text, 0)
        reader.index += 1
