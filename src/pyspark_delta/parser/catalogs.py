"""The grammar of statements about catalogs and schemas, and of SHOW and DESCRIBE."""

from __future__ import annotations

from pyspark_delta.parser.catalog_statements import (
    CatalogStatement,
    CreateSchema,
    DescribeTable,
    DropSchema,
    ShowCatalogs,
    ShowColumns,
    ShowCreateTable,
    ShowPartitions,
    ShowProperties,
    ShowSchemas,
    ShowTables,
    Use,
)
from pyspark_delta.parser.clauses import properties, property_key
from pyspark_delta.parser.reader import Reader
from pyspark_delta.parser.rows import partition_values
from pyspark_delta.parser.tokens import Kind
from pyspark_delta.parser.values import Path

SCHEMA_WORDS = ("SCHEMA", "DATABASE", "NAMESPACE")
_SCHEMAS_WORDS = ("SCHEMAS", "DATABASES", "NAMESPACES")


def use(reader: Reader) -> Use:
    """Take what follows USE."""
    if reader.at("CATALOG") and reader.peek().kind in (Kind.WORD, Kind.QUOTED, Kind.STRING):
        reader.accept("CATALOG")
        return Use(_catalog(reader), "CATALOG")
    if reader.at_any(*SCHEMA_WORDS) and reader.peek().kind in (Kind.WORD, Kind.QUOTED):
        reader.choose(*SCHEMA_WORDS)
        return Use(reader.table_name().parts, "SCHEMA")
    return Use(reader.table_name().parts)


def set_catalog(reader: Reader) -> Use:
    """Take what follows `SET CATALOG`."""
    return Use(_catalog(reader), "CATALOG")


def _catalog(reader: Reader) -> Path:
    return (reader.string(),) if reader.token.kind is Kind.STRING else (reader.name("the name of a catalog"),)


def show(reader: Reader) -> CatalogStatement | None:
    """Take what follows SHOW; None for what Spark alone shows."""
    if reader.accept("CATALOGS"):
        return ShowCatalogs(_pattern(reader))
    if reader.at_any(*_SCHEMAS_WORDS):
        reader.choose(*_SCHEMAS_WORDS)
        return ShowSchemas(_namespace(reader), _pattern(reader))
    if reader.accept("TABLES"):
        return ShowTables(_namespace(reader), _pattern(reader))
    if reader.accept("COLUMNS"):
        reader.choose("IN", "FROM")
        return ShowColumns(reader.table(), _namespace(reader))
    if reader.accept("PARTITIONS"):
        table = reader.table()
        return ShowPartitions(table, partition_values(reader) if reader.accept("PARTITION") else ())
    if reader.accept("TBLPROPERTIES"):
        return ShowProperties(reader.table(), _key(reader))
    if reader.accept("CREATE", "TABLE"):
        return ShowCreateTable(reader.table())
    return None


def _namespace(reader: Reader) -> Path:
    if reader.accept("IN") or reader.accept("FROM"):
        return reader.table_name().parts
    return ()


def _pattern(reader: Reader) -> str | None:
    if reader.accept("LIKE") or reader.token.kind is Kind.STRING:
        return reader.string("a pattern in quotes")
    return None


def _key(reader: Reader) -> str | None:
    if not reader.accept("("):
        return None
    key = property_key(reader)
    reader.expect(")")
    return key


def describe(reader: Reader) -> DescribeTable | None:
    """Take what follows DESCRIBE; None for what Spark alone describes."""
    others = ("FUNCTION", "QUERY", "CATALOG", "SELECT", "WITH", "VALUES", *SCHEMA_WORDS)
    if reader.at_any(*others) and reader.peek().kind in (Kind.WORD, Kind.QUOTED, Kind.OPERATOR, Kind.NUMBER):
        return None
    if reader.peek().kind in (Kind.WORD, Kind.QUOTED, Kind.STRING):
        reader.accept("TABLE")
    extended = False
    if reader.at_any("EXTENDED", "FORMATTED") and reader.peek().kind in (Kind.WORD, Kind.QUOTED, Kind.STRING):
        reader.index += 1
        extended = True
    table = reader.table()
    return DescribeTable(table, extended, () if reader.ended else reader.path("the name of a column"))


def create_schema(reader: Reader) -> CreateSchema:
    """Take what follows `CREATE SCHEMA`."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name, comment, location = reader.table_name(), None, None
    while not reader.ended:
        if comment is None and reader.accept("COMMENT"):
            comment = reader.string()
        elif location is None and reader.accept("LOCATION"):
            location = reader.string("a path in quotes")
        elif reader.accept("WITH"):
            reader.choose("DBPROPERTIES", "PROPERTIES")
            properties(reader)
        else:
            reader.fail("COMMENT, LOCATION or the end of the statement")
    return CreateSchema(name, if_not_exists, comment, location)


def drop_schema(reader: Reader) -> DropSchema:
    """Take what follows `DROP SCHEMA`."""
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.table_name()
    cascade = reader.accept("CASCADE")
    if not cascade:
        reader.accept("RESTRICT")
    return DropSchema(name, if_exists, cascade)
