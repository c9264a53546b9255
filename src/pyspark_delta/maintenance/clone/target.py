"""Where a clone goes: a new table, or an earlier clone of the same table, which the clone replaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from pyspark_delta.errors import InvalidOperationError, TableAlreadyExistsError, TableNotFoundError
from pyspark_delta.features.support import check_removable, check_writable
from pyspark_delta.maintenance.foreign_files import check_apart, check_empty
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.protocol.configuration import CLONE_OF
from pyspark_delta.protocol.state import TableState
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.credentials import CREDENTIALS_KEY
from pyspark_delta.transaction.base import state_of


@dataclass(frozen=True)
class CloneTarget:
    """The location of a clone, the options of its store, and its table in a catalog if it has one.

    `snapshot` is the table that exists there; None if there is none.
    """

    location: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    catalog_table: CatalogTable | None = None
    snapshot: Snapshot | None = field(default=None, compare=False)

    @classmethod
    def open(
        cls, location: str, storage_options: Mapping[str, str], catalog_table: CatalogTable | None = None
    ) -> CloneTarget:
        """Return the target at a location, with the newest version of the table that exists there."""
        try:
            found = Snapshot.load(location, storage_options=storage_options, catalog_table=catalog_table)
        except TableNotFoundError:
            found = None
        return cls(location, dict(storage_options), catalog_table, found)

    def state(self) -> TableState:
        """Return the state that the first attempt of the commit builds on."""
        if self.snapshot is not None:
            return state_of(self.snapshot)
        return TableState(
            location=self.location, storage_options=self.storage_options, catalog_table=self.catalog_table
        )


def check_target(source: Snapshot, target: CloneTarget, *, shallow: bool, replace: bool) -> None:
    """Check that a clone can be made there.

    Raises TableAlreadyExistsError, and InvalidOperationError for a location that is within the source or has other
    rows or files.
    """
    check_apart(source.location, target.location)
    if shallow and CREDENTIALS_KEY in target.storage_options:
        raise InvalidOperationError(
            f"A shallow clone at '{target.location}' could not be read: its catalog gives access to the files of the "
            "clone only, and the rows are in the files of its source. Make a deep clone.",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
        )
    existing = target.snapshot
    if existing is None:
        if shallow:
            check_empty(target.location, target.storage_options)
        return
    if not replace:
        raise TableAlreadyExistsError(existing.location, "Give replace=True to bring an earlier clone up to date.")
    check_writable(existing.configuration, existing.location)
    if existing.num_files():
        check_removable(existing.configuration, "CLONE")
        if source_id_of(existing) != source.metadata.id:
            raise InvalidOperationError(
                f"The table '{existing.location}' has {existing.num_files()} files and is not a clone of "
                f"'{source.location}', so a clone does not replace it. Delete its rows first, or clone to another "
                "location.",
                error_class="DELTA_UNSUPPORTED_NON_EMPTY_CLONE",
                location=existing.location,
            )


def source_id_of(snapshot: Snapshot) -> str | None:
    """Return the table id of the source of a clone; None for a table that does not name it."""
    try:
        named = orjson.loads(snapshot.properties.get(CLONE_OF, "null"))
    except orjson.JSONDecodeError:
        return None
    found = named.get("id") if isinstance(named, dict) else None
    return found if isinstance(found, str) else None
