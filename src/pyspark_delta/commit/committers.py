"""The committer of a table: its catalog, or put-if-absent if no catalog manages it."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark_delta.catalog.connections import known_table, managed_table, remember_table
from pyspark_delta.catalog.contract import StagingTable
from pyspark_delta.commit.catalog import CatalogCommitter, CreatingCommitter
from pyspark_delta.commit.contract import Committer
from pyspark_delta.commit.filesystem import FilesystemCommitter
from pyspark_delta.errors import InvalidOperationError, PathAccessError
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.protocol.configuration import TableConfiguration, managed_names
from pyspark_delta.storage import ObjectStore


def committer_for(store: ObjectStore, table: CatalogTable | None) -> Committer:
    """Return the committer of a table; None is one that is opened by its path. Raises CatalogError as `known_table`."""
    known = known_table(table)
    if table is not None and known is not None and isinstance(known[1], StagingTable):
        name = table.catalog.name
        return CreatingCommitter(known[0], known[1], store, lambda made: remember_table(name, made))
    managed = managed_table(table)
    return FilesystemCommitter(store) if managed is None else CatalogCommitter(managed, store)


def check_committer(
    configuration: TableConfiguration, before: TableConfiguration | None, committer: Committer, location: str
) -> None:
    """Check that a managed table is not committed to without its catalog (C480), and is created as its catalog
    requires.

    Raises PathAccessError, InvalidOperationError.
    """
    if configuration.is_catalog_managed and isinstance(committer, FilesystemCommitter):
        raise PathAccessError(managed_names(configuration.protocol), "write", location)
    if isinstance(committer, CatalogCommitter) and before is not None:
        _check_required(configuration, before, committer.required_properties)


def _check_required(configuration: TableConfiguration, before: TableConfiguration, required: Mapping[str, str]) -> None:
    for key, value in required.items():
        found = configuration.properties.get(key)
        if before.properties.get(key) == value and found != value:
            change = "removed" if found is None else f"set to '{found}'"
            raise InvalidOperationError(
                f"The catalog of the table '{before.location}' requires the property {key} to be '{value}'; it cannot "
                f"be {change}. Leave it unchanged.",
                error_class="DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
                property=key,
                value=found,
            )
