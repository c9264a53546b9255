"""The base class for the parts of a catalog in a database, and the settings of a catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark_delta.catalog.clock import now_ms
from pyspark_delta.catalog.sql.database import Database
from pyspark_delta.storage import store_for
from pyspark_delta.storage.confined import ConfinedStore
from pyspark_delta.storage.contract import TableFiles
from pyspark_delta.storage.paths import parent, split


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a catalog.

    New tables are created below `storage_root`. A table has at most `max_unpublished` unpublished commits. The catalog
    remembers a commit, and recognizes its replay, until it is `kept_commits` versions behind the newest published one.
    With `verify_files` the catalog checks that the files in requests exist. Without `follow_links` it follows no
    symbolic links at or below the location of a local table. `principal` is the caller. `clock` returns the time in
    milliseconds since the epoch.
    """

    storage_root: str
    storage_options: Mapping[str, str] = field(repr=False, default_factory=dict)
    max_unpublished: int = 10
    kept_commits: int = 1000
    verify_files: bool = True
    follow_links: bool = True
    principal: str = ""
    clock: Callable[[], int] = now_ms


class CatalogPart:
    """A part of a catalog in a database."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings

    def table_store(self, location: str) -> TableFiles:
        """Return the store for the files of the table at a location."""
        if not self._settings.follow_links and split(location)[0] == "file":
            return ConfinedStore(parent(location))
        return store_for(location, self._settings.storage_options)
