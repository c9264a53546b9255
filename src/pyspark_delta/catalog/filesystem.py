"""A catalog of files, on any store with put-if-absent: it ratifies and publishes in one step (Commit Protocol; C456).

Below its root are `_names` (`name_log`), `_dropped` with a file for each table that was dropped, and `tables`.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark_delta.catalog.clock import now_ms
from pyspark_delta.catalog.contract import (
    Access,
    Capability,
    DroppedTable,
    LeftBehind,
    LogTail,
    MetadataChange,
    NewTable,
    Proposal,
    Ratification,
    StagingTable,
    TableInfo,
    TableName,
)
from pyspark_delta.catalog.failures import storage_failures
from pyspark_delta.catalog.file_commits import FileCommits
from pyspark_delta.catalog.file_names import FileNames, Pointer
from pyspark_delta.catalog.identifiers import name_key, shown
from pyspark_delta.catalog.log_tail import published_path
from pyspark_delta.catalog.proposals import check_new_table
from pyspark_delta.errors import (
    FileNotFoundInStoreError,
    InvalidOperationError,
    InvalidProposalError,
    TableReplacedError,
    UnsupportedTableError,
)
from pyspark_delta.features import Feature
from pyspark_delta.log.names import LOG_DIRECTORY
from pyspark_delta.protocol.properties import ENABLE_IN_COMMIT_TIMESTAMPS
from pyspark_delta.storage import ObjectStore, normalize_location, store_for
from pyspark_delta.storage.credentials import Credentials
from pyspark_delta.storage.paths import file_name, join, parent
from pyspark_delta.storage.temporary import LEFTOVER_AGE, LeavesTemporaryFiles

_ID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FEATURES = frozenset({Feature.CATALOG_MANAGED.value, Feature.IN_COMMIT_TIMESTAMP.value})
_PROPERTIES = {ENABLE_IN_COMMIT_TIMESTAMPS.name: "true"}


class FilesystemCatalog:
    """A `Catalog` in a directory. It keeps no metadata of tables, and remembers no commits: all are published."""

    def __init__(
        self,
        url: str,
        storage_root: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        """Open the catalog at `url`, a directory or its URL. New tables are created below `storage_root`.

        By default this is `tables` below the catalog. `storage_options` give access to both. `clock` returns the time
        in milliseconds since the epoch.
        """
        self._root = normalize_location(url)
        self._options = dict(storage_options or {})
        self._tables = join(self._root, "tables") if storage_root is None else normalize_location(storage_root)
        self._clock = clock
        self._names = FileNames(self._store(self._root), self._root)

    def __repr__(self) -> str:
        return f"FilesystemCatalog({self._root!r})"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Commits by put-if-absent, registering of tables, soft drops."""
        return frozenset({Capability.PUT_IF_ABSENT, Capability.REGISTER, Capability.SOFT_DROP})

    # -------------------------------------------------------------------------------------------------- schemas
    def create_schema(self, catalog: str, schema: str) -> None:
        """Create a schema. Raises CatalogNameExistsError."""
        with storage_failures():
            self._names.create_schema(catalog, schema)

    def list_schemas(self, catalog: str) -> list[str]:
        """Return the names of the schemas, sorted."""
        with storage_failures():
            return self._names.list_schemas(catalog)

    def drop_schema(self, catalog: str, schema: str) -> None:
        """Drop a schema. Raises CatalogNameNotFoundError, and InvalidProposalError for a schema with tables."""
        with storage_failures():
            self._names.drop_schema(catalog, schema)

    # --------------------------------------------------------------------------------------------------- tables
    def create_staging_table(self, name: TableName) -> StagingTable:
        """Return the location for a new table. The name stays free until `create_table`.

        Raises CatalogNameNotFoundError for the schema, CatalogNameExistsError for the table.
        """
        with storage_failures():
            self._names.require_free(name)
        table_id = str(uuid.uuid4())
        return StagingTable(
            table_id=table_id,
            name=name,
            location=join(self._tables, table_id),
            required_features=_FEATURES,
            required_properties=dict(_PROPERTIES),
        )

    def create_table(self, staging: StagingTable, new: NewTable) -> TableInfo:
        """Give the table at a staging location its name. This ratifies its version 0, which is published there.

        A repeated request with the same staging table has the same result. Raises CatalogNameExistsError,
        InvalidProposalError, and TableReplacedError if the table was dropped meanwhile.
        """
        check_new_table(staging.name, new)
        if not self._is_own(staging.table_id, staging.location):
            raise InvalidProposalError(
                f"The table {staging.name} cannot be created: its staging table does not belong to this catalog.",
                table=str(staging.name),
            )
        with storage_failures():
            self._require_first_commit(staging)
            self._require_present(staging.table_id, staging.name)
            return self._info(self._names.point(staging.name, staging.table_id, staging.location, managed=True))

    def register_table(self, name: TableName, location: str, described: NewTable | None = None) -> TableInfo:
        """Give a name to a table at a path; no catalog manages this table. The catalog keeps no copy of `described`.

        Raises CatalogNameExistsError, CatalogNameNotFoundError for the schema, InvalidProposalError for a location
        without a Delta table, or of a table that this catalog manages.
        """
        with storage_failures():
            place = self._table_location(location)
            return self._info(self._names.point(name, str(uuid.uuid4()), place, managed=False))

    def report_change(self, table: TableInfo, version: int, timestamp: int, change: MetadataChange) -> None:
        """Do nothing: the catalog keeps no copy of metadata."""

    def load_table(self, name: TableName) -> TableInfo:
        """Resolve a name, with the latest version, by a listing. Raises CatalogNameNotFoundError."""
        with storage_failures():
            return self._info(self._names.require(name))

    def list_tables(self, catalog: str, schema: str) -> list[TableName]:
        """Return the tables of a schema, sorted. Raises CatalogNameNotFoundError for the schema."""
        with storage_failures():
            return self._names.list_tables(catalog, schema)

    def rename_table(self, name: TableName, new: TableName) -> None:
        """Rename a table.

        Raises CatalogNameNotFoundError, CatalogNameExistsError, and InvalidProposalError for another catalog.
        """
        if name_key(name.catalog) != name_key(new.catalog):
            raise InvalidProposalError(
                f"The table {name} cannot be renamed to {new}: a table cannot move to another catalog.", table=str(name)
            )
        with storage_failures():
            self._names.rename(name, new)

    def drop_table(self, name: TableName) -> None:
        """Remove the name of a table without a commit (C481). The files stay until they are purged.

        Raises CatalogNameNotFoundError.
        """
        with storage_failures():
            self._names.drop(name, self._clock())

    def dropped_tables(self, before_ms: int) -> list[DroppedTable]:
        """Return the managed tables dropped before a time and not yet purged; oldest first.

        Only tables below the catalog's storage root are listed: a purge deletes their directories, and a file of the
        catalog that another client wrote may name any directory.
        """
        with storage_failures():
            found = self._names.dropped(before_ms)
        return [table for table in found if self._is_own(table.table_id, table.location)]

    def forget_dropped(self, table_id: str) -> None:
        """Forget a dropped table whose files are deleted. Its id is never used again.

        Raises InvalidProposalError for a table that is not dropped.
        """
        if not _ID.fullmatch(table_id):
            raise InvalidProposalError(f"{shown(table_id)} is not the id of a table.", table_id=table_id)
        with storage_failures():
            self._names.forget(table_id)

    def remove_leftovers(self) -> None:
        """Remove temporary files that killed processes left in a local catalog, if they are at least a week old."""
        store = self._store(self._root)
        if isinstance(store, LeavesTemporaryFiles):
            for directory in ("_names", "_dropped"):
                store.remove_leftovers(join(self._root, directory), self._clock() - LEFTOVER_AGE, recursive=True)

    def left_behind(self, before_ms: int) -> list[LeftBehind]:
        """Return an empty list: the catalog does not remember staging tables."""
        return []

    def drop_staging_table(self, table_id: str) -> bool:
        """Return False: the catalog does not remember staging tables."""
        return False

    # -------------------------------------------------------------------------------------------------- commits
    def ratify(self, table: TableInfo, proposal: Proposal) -> Ratification:
        """Make a proposal the commit of its version, and publish it, by put-if-absent (C456, C469).

        The proposal must have its content. The same transaction again is a replay, and changes nothing. Raises
        RatificationConflictError with the log tail if the version has another commit, TableReplacedError,
        InvalidProposalError, NotAuthorizedError, and CatalogUnavailableError if the outcome is unknown.
        """
        with storage_failures():
            self._require_present(table.table_id, table.name)
            return self._commits(table).ratify(proposal)

    def log_tail(self, table: TableInfo, start: int | None = None, end: int | None = None) -> LogTail:
        """Return the latest version, searched from `start`; all commits are published.

        Raises TableReplacedError if the table no longer exists.
        """
        with storage_failures():
            self._require_present(table.table_id, table.name)
            return self._commits(table).tail(start or 0)

    def report_published(self, table: TableInfo, version: int) -> None:
        """Check that a version is published; the catalog has no commits to forget.

        Raises InvalidProposalError if it is not.
        """
        with storage_failures():
            self._require_present(table.table_id, table.name)
            self._commits(table).require_published(version)

    def storage_options(self, table: TableInfo, access: Access) -> Mapping[str, str]:
        """Return the options that the catalog was connected with."""
        return dict(self._options)

    def credentials(self, table: TableInfo | StagingTable, access: Access) -> Credentials:
        """Return the same options; they do not expire."""
        return Credentials(dict(self._options))

    # ------------------------------------------------------------------------------------------------- private
    def _is_own(self, table_id: str, location: str) -> bool:
        """Return True if the catalog chose the location for the table of an id."""
        return _ID.fullmatch(table_id) is not None and location == join(self._tables, table_id)

    def _info(self, pointer: Pointer) -> TableInfo:
        info = TableInfo(table_id=pointer.table_id, name=pointer.name, location=pointer.location)
        return replace(info, tail=self._commits(info).tail()) if pointer.managed else info

    def _require_present(self, table_id: str, name: TableName) -> None:
        if self._names.is_dropped(table_id):
            raise TableReplacedError(
                f"The catalog no longer has the table {name} that was opened: it was dropped.", table=str(name)
            )

    def _require_first_commit(self, staging: StagingTable) -> None:
        path = published_path(staging.location, 0)
        try:
            self._store(path).status(path)
        except FileNotFoundInStoreError:
            raise InvalidProposalError(
                f"The table {staging.name} cannot be created: there is no '{path}'. Write its version 0 first.",
                table=str(staging.name),
            ) from None

    def _table_location(self, location: str) -> str:
        try:
            place = normalize_location(location)
            store = self._store(place)
        except (InvalidOperationError, UnsupportedTableError) as error:
            raise InvalidProposalError(error.message, location=location) from error
        if parent(place) == self._tables and _ID.fullmatch(file_name(place)):
            raise InvalidProposalError(f"The catalog already has a table at '{place}'.", location=place)
        if next(iter(store.list_from(join(place, LOG_DIRECTORY, "0"))), None) is None:
            raise InvalidProposalError(f"There is no Delta table at '{place}'.", location=place)
        return place

    def _commits(self, table: TableInfo) -> FileCommits:
        return FileCommits(self._store(table.location), table)

    def _store(self, location: str) -> ObjectStore:
        return store_for(location, self._options)
