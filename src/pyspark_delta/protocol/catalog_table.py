"""A table of a catalog as a value, which travels beside location and storage options."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CatalogReference:
    """The name under which a process is connected to a catalog, and how another process can open the same catalog.

    `url` and `storage_root` are arguments of `connect_catalog`. `url` is None for a catalog that cannot be opened from
    this value alone: one that needs a token, a password or storage options, or an object of the user. So the value
    holds no secret.
    """

    name: str
    url: str | None = None
    storage_root: str | None = None


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table in a catalog: the id by which the catalog knows it, and the name by which it was opened."""

    catalog: CatalogReference
    table_id: str
    schema: str
    name: str
