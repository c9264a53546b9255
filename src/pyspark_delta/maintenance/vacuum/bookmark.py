"""The file `_last_vacuum_info` of the log: up to which version removed files have been deleted.

Its form is that of delta-spark. Members that are not known are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from pyspark_delta.errors import FileNotFoundInStoreError
from pyspark_delta.log.listing import log_location
from pyspark_delta.storage import ObjectStore
from pyspark_delta.storage.paths import join

FILE = "_last_vacuum_info"
_VERSION = "latestCommitVersionOutsideOfRetentionWindow"
_LAST_FULL = "lastFullVacuumTimestamp"


@dataclass(frozen=True, slots=True)
class Bookmark:
    """The last version whose removed files have been deleted, and the time of the last full vacuum in ms."""

    version: int | None = None
    last_full: int | None = None
    others: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def advanced(self, version: int | None, full_at: int | None) -> Bookmark:
        """Return the bookmark after a vacuum; the version never goes back."""
        versions = [known for known in (self.version, version) if known is not None]
        return replace(
            self,
            version=max(versions, default=None),
            last_full=self.last_full if full_at is None else full_at,
        )


def read_bookmark(store: ObjectStore, table_location: str) -> Bookmark:
    """Return the bookmark of a table; an empty one if there is none, or if it cannot be parsed."""
    try:
        found = orjson.loads(store.read(join(log_location(table_location), FILE)))
    except (FileNotFoundInStoreError, orjson.JSONDecodeError):
        return Bookmark()
    if not isinstance(found, dict):
        return Bookmark()
    version, last_full = (_number(found.pop(name, None)) for name in (_VERSION, _LAST_FULL))
    return Bookmark(version, last_full, found)


def write_bookmark(store: ObjectStore, table_location: str, bookmark: Bookmark) -> None:
    """Replace the bookmark of a table. Raises StorageError."""
    members = {_VERSION: bookmark.version, _LAST_FULL: bookmark.last_full}
    known = {name: value for name, value in members.items() if value is not None}
    store.write(join(log_location(table_location), FILE), orjson.dumps({**bookmark.others, **known}))


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
