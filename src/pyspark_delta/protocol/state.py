"""The state of a table that a commit builds on: the parts of a snapshot that commits need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark_delta.actions.model import DomainMetadata
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.protocol.configuration import TableConfiguration


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """One version of a table; version -1, without a configuration, if there is no table yet.

    `domains` are the live metadata domains by name. `timestamp` is the time of the version, in ms since the epoch: its
    in-commit timestamp if the table has them, otherwise the time of the store. `catalog_table` is the table in its
    catalog; None for one that is opened by its path.
    """

    location: str
    version: int = -1
    configuration: TableConfiguration | None = None
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict, hash=False)
    timestamp: int = 0
    storage_options: Mapping[str, str] = field(repr=False, default_factory=dict, hash=False)
    catalog_table: CatalogTable | None = None
