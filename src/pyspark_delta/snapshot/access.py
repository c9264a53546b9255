"""How a table may be accessed: by its path, or through the catalog that manages it (C451, C462, C482, C484)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark_delta.catalog.connections import known_table, managed_table
from pyspark_delta.catalog.contract import TableInfo
from pyspark_delta.catalog.log_tail import TailFiles
from pyspark_delta.errors import CatalogError, InvalidTableError, PathAccessError
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.protocol.configuration import CATALOG_MANAGED, TableConfiguration, managed_names
from pyspark_delta.storage import ACCESS_PREFIX

PUBLISHED_ONLY = f"{ACCESS_PREFIX}published_only"
"""The storage option that, if 'true', reads a managed table by its path up to its last published commit."""


def reads_published_only(options: Mapping[str, str] | None) -> bool:
    """True if the user requests the published state, which may be older than the table."""
    return bool(options) and str((options or {}).get(PUBLISHED_ONLY, "")).lower() == "true"


def catalog_tail(location: str, table: CatalogTable | None) -> TailFiles | None:
    """Return the current state of the log in the catalog; None for a table that is accessed by its path.

    Read before the log is listed: a commit that is published and removed from the catalog in between is then in the
    listing. Raises CatalogError.
    """
    known = known_table(table)
    if known is None:
        return None
    if not isinstance(known[1], TableInfo):
        return None  # not created yet
    managed = managed_table(table)
    if managed is None:
        return None  # named by a catalog that does not manage it
    if managed.location != location:
        raise CatalogError(
            f"'{location}' is not the location of {managed.info.name}, which is '{managed.location}'. Leave the "
            "location to "
            "the catalog.",
            location=location,
        )
    return managed.tail_files()


def require_catalog(configuration: TableConfiguration, location: str, table: CatalogTable | None) -> None:
    """Check that a managed table is changed only through its catalog (C480). Raises PathAccessError."""
    if configuration.is_catalog_managed and managed_table(table) is None:
        raise PathAccessError(managed_names(configuration.protocol), "write", location)


def check_access(
    configuration: TableConfiguration, location: str, table: CatalogTable | None, options: Mapping[str, str] | None
) -> None:
    """Check that a table is accessed as its protocol requires.

    Raises PathAccessError for a managed table that is opened by its path, InvalidTableError for a table that its
    catalog manages but whose protocol does not support it.
    """
    through_catalog = managed_table(table) is not None
    if configuration.is_catalog_managed and not through_catalog and not reads_published_only(options):
        raise PathAccessError(managed_names(configuration.protocol), "read", location)
    if through_catalog and not configuration.is_catalog_managed:
        raise InvalidTableError(
            f"The catalog manages the table at '{location}', and its protocol does not list the feature "
            f"{CATALOG_MANAGED[0]}: writers that bypass the catalog could damage it. The table was not read; ask its "
            "owner to register it again.",
            error_class="DELTA_INVALID_PROTOCOL",
            location=location,
        )
