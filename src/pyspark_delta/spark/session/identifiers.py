"""From an identifier to a table: a path such as ``delta.`/path` ``, or a name in a connected catalog (C482).

Session settings can connect catalogs, for example in the configuration of a cluster. `spark.pyspark_delta.catalog.NAME`
is the URL of a catalog; the same setting with the suffix `.token` or `.storageRoot` is the argument `token` or
`storage_root` of `connect_catalog`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from pyspark_delta.catalog.connections import find_catalog
from pyspark_delta.catalog.contract import TableName
from pyspark_delta.catalog.log_tail import TailFiles
from pyspark_delta.catalog.names import ResolvedTable, parse_table_name, resolve, resolve_or_create
from pyspark_delta.catalogs import connect_catalog
from pyspark_delta.errors import CatalogNameNotFoundError, InvalidOptionError
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.spark.session.sql_hooks import find_named
from pyspark_delta.storage import normalize_location

_IDENTIFIER = re.compile(r"\s*(?:delta|deltapy)\s*\.\s*`((?:[^`]|``)+)`\s*", re.IGNORECASE)
CATALOG_SETTING = "spark.pyspark_delta.catalog."
"""The prefix of the session settings that connect catalogs."""


@dataclass(frozen=True)
class Identified:
    """The table of an identifier: a path as the user gave it, or a location from a catalog.

    `name` is the name of the table in its catalog, and `catalog_table` the table there; both are None for a path, and
    for a table of Spark's catalog. `whole_name` is the name in either catalog, without quotes; None for a path. `tail`
    is the log tail that the catalog returned. `register` gives a new table its name in Spark's catalog; None if it
    needs none.
    """

    path: str
    storage_options: Mapping[str, str] = field(repr=False, default_factory=dict, hash=False)
    name: TableName | None = None
    whole_name: str | None = None
    catalog_table: CatalogTable | None = None
    tail: TailFiles | None = field(default=None, compare=False, repr=False)
    register: Callable[[str, bool], None] | None = field(default=None, compare=False, repr=False)


def path_of_identifier(identifier: str) -> str | None:
    """Return the path of a table identifier such as ``delta.`/path` ``; None for any other identifier."""
    match = _IDENTIFIER.fullmatch(identifier)
    return None if match is None else match[1].replace("``", "`")


def identify(spark: SparkSession, identifier: str) -> Identified | None:
    """Return the table of an identifier: a path, a name in a connected catalog, or a Delta table of Spark's catalog.

    Return None for any other identifier.

    Raises CatalogNameNotFoundError if the catalog has no table of the name, and CatalogError.
    """
    return _identify(spark, identifier, create=False)


def identify_or_create(spark: SparkSession, identifier: str) -> Identified | None:
    """Return the table as `identify` does; for a new table, the location that its catalog chooses for it."""
    return _identify(spark, identifier, create=True)


def is_named(spark: SparkSession, identifier: str) -> bool:
    """Return True if an identifier is a path identifier or a name in a connected catalog. The table need not exist."""
    return path_of_identifier(identifier) is not None or _catalog_name(spark, identifier) is not None


def is_in_catalog(spark: SparkSession, identifier: str) -> bool:
    """Return True if an identifier is a name in a connected catalog. The table need not exist."""
    return path_of_identifier(identifier) is None and _catalog_name(spark, identifier) is not None


def exists(spark: SparkSession, identifier: str) -> bool:
    """Return True for a path identifier, and for a name if its catalog has the table. Raises CatalogError."""
    try:
        return identify(spark, identifier) is not None
    except CatalogNameNotFoundError:
        return False


def check_path_option(spark: SparkSession, identifier: str, options: Mapping[str, str]) -> None:
    """Raise InvalidOptionError if the option `path` is given with the name of a table and is not its location."""
    path = next((value for key, value in options.items() if key.lower() == "path"), None)
    if path is None or not is_named(spark, identifier):
        return
    given = normalize_location(path)
    try:
        found = identify(spark, identifier)
    except CatalogNameNotFoundError:
        raise InvalidOptionError(
            f"The table {identifier} cannot be created at '{given}': its catalog chooses the location of new tables. "
            "Leave the option 'path' out; or write to the path with df.write.format(\"delta\").save(path), and give "
            "the table its name with register(name, path) of the catalog.",
            error_class="DELTA_TABLE_LOCATION_MISMATCH",
            table=identifier,
            path=given,
        ) from None
    if found is not None and normalize_location(found.path) != given:
        raise InvalidOptionError(
            f"The table {identifier} is at '{found.path}', not at '{given}'. Leave the option 'path' out.",
            error_class="DELTA_TABLE_LOCATION_MISMATCH",
            table=identifier,
            path=given,
        )


def of_catalog(name: TableName, found: ResolvedTable) -> Identified:
    """Return a table of a connected catalog."""
    return Identified(found.location, found.storage_options, name, name.unquoted, found.catalog_table, found.tail)


def _identify(spark: SparkSession, identifier: str, *, create: bool) -> Identified | None:
    path = path_of_identifier(identifier)
    if path is not None:
        return Identified(path)
    name = _catalog_name(spark, identifier)
    if name is None:
        named: Identified | None = find_named(spark, identifier, create=create)
        return named
    found: ResolvedTable = resolve_or_create(name) if create else resolve(name)
    return of_catalog(name, found)


def _catalog_name(spark: SparkSession, identifier: str) -> TableName | None:
    name = parse_table_name(identifier)
    return name if name is not None and is_connected(spark, name.catalog) else None


def is_connected(spark: SparkSession, catalog: str) -> bool:
    """Return True if this process is connected to a catalog. If the session's settings name it, connect to it first."""
    if find_catalog(catalog) is None:
        url = spark.conf.get(CATALOG_SETTING + catalog, None)
        if url is None:
            return False
        _connect(spark, catalog, url)
    return True


def _connect(spark: SparkSession, catalog: str, url: str) -> None:
    token = spark.conf.get(f"{CATALOG_SETTING}{catalog}.token", None)
    root = spark.conf.get(f"{CATALOG_SETTING}{catalog}.storageRoot", None)
    connect_catalog(url, catalog, token=token, storage_root=root)
