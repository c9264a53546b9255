"""Names of tables in catalogs that this process is connected to, such as `main.sales.orders`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from pyspark_delta.catalog.connections import catalog_table, connected_catalog, find_catalog, table_options
from pyspark_delta.catalog.contract import StagingTable, TableInfo, TableName
from pyspark_delta.catalog.log_tail import TailFiles, tail_files
from pyspark_delta.errors import CatalogNameNotFoundError, InvalidOptionError
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.storage import normalize_location

_PART = r"(?:`((?:[^`]|``)+)`|([^`.\s]+))"
_NAME = re.compile(rf"\s*{_PART}\s*\.\s*{_PART}\s*\.\s*{_PART}\s*")


@dataclass(frozen=True, slots=True)
class ResolvedTable:
    """The location of a table, its storage options, and the table in its catalog.

    `tail` is the log tail from the same response, so opening the table at once needs no second request.
    """

    location: str
    storage_options: dict[str, str] = field(repr=False, hash=False)
    catalog_table: CatalogTable
    tail: TailFiles | None = field(default=None, compare=False, repr=False)


def parse_table_name(text: str) -> TableName | None:
    """Return the table name in a text of three parts; None for any other text. Parts with dots are in backticks."""
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    quoted = [(match[i], match[i + 1]) for i in (1, 3, 5)]
    return TableName(*(a.replace("``", "`") if a is not None else b for a, b in quoted))


def catalog_name(text: str) -> TableName | None:
    """Return the table name in a text whose first part is a connected catalog; None for any other text."""
    name = parse_table_name(text)
    return None if name is None or find_catalog(name.catalog) is None else name


def required_name(text: str) -> TableName:
    """Return the table name in a text. Raises InvalidOptionError if the text does not have three parts."""
    name = parse_table_name(text)
    if name is None:
        raise InvalidOptionError(
            f"The name of a table in a catalog has three parts, as in main.sales.orders, found '{text}'.", name=text
        )
    return name


def load_table(name: TableName) -> TableInfo:
    """Return the table of a name from its connected catalog. Raises CatalogError."""
    found = connected_catalog(name.catalog).load_table(name)
    return replace(found, location=normalize_location(found.location))


def resolve(name: TableName) -> ResolvedTable:
    """Resolve the name of a table. Raises CatalogNameNotFoundError, CatalogError."""
    found = load_table(name)
    tail = None if found.tail is None else tail_files(found.location, found.tail)
    return _resolved(name, found, tail)


def resolve_or_create(name: TableName) -> ResolvedTable:
    """Resolve the name of a table; if no table has it, create a staging table for it.

    The name stays free until the first version of the table is committed. Raises CatalogError.
    """
    try:
        return resolve(name)
    except CatalogNameNotFoundError:
        staging: StagingTable = connected_catalog(name.catalog).create_staging_table(name)
        staging = replace(staging, location=normalize_location(staging.location))
        return _resolved(name, staging)


def _resolved(name: TableName, table: TableInfo | StagingTable, tail: TailFiles | None = None) -> ResolvedTable:
    known = catalog_table(name.catalog, table)
    return ResolvedTable(table.location, table_options(known, table.location), known, tail)
