"""Removal of staging tables that never got a name, because their creators failed."""

from __future__ import annotations

from pyspark_delta.catalog.contract import Access, Catalog, LeftBehind, TableInfo
from pyspark_delta.storage import normalize_location, store_for


def remove_left_behind(catalog: Catalog, before_ms: int) -> list[LeftBehind]:
    """Remove the staging tables that were requested before a time, with their files; return the removed tables.

    `before_ms` is in milliseconds since the epoch. A staging table is dropped first: from then on the catalog refuses
    to name it, so no table in use loses files. An interrupted removal leaves the table among the catalog's dropped
    tables, for a purge. Raises CatalogError, StorageError.
    """
    removed = []
    for table in catalog.left_behind(before_ms):
        if not catalog.drop_staging_table(table.table_id):
            continue  # named meanwhile
        location = normalize_location(table.location)
        info = TableInfo(table_id=table.table_id, name=table.name, location=location)
        options = catalog.storage_options(info, Access.READ_WRITE)
        store_for(location, options).delete_directory(location)
        catalog.forget_dropped(table.table_id)
        removed.append(table)
    return removed
