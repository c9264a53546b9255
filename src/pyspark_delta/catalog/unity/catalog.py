"""A catalog on a server with Unity Catalog's API (C458-C460, C469-C472): the Delta API v1, or the legacy API."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from pyspark_delta.actions.model import DomainMetadata, Metadata
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
from pyspark_delta.catalog.proposals import check_new_table
from pyspark_delta.catalog.unity.connection import TIMEOUT, Connection, Token
from pyspark_delta.catalog.unity.delta_api import PREFIX, PROTOCOL_VERSIONS, TRANSACTION_IDS_HEADER, DeltaApi
from pyspark_delta.catalog.unity.errors import Reason, Refusal, error_of, translated
from pyspark_delta.catalog.unity.legacy_api import LegacyApi
from pyspark_delta.catalog.unity.limits import (
    LONGEST_PROPERTY,
    check_domains,
    check_name_part,
    check_new_name,
    check_properties,
    required_properties,
)
from pyspark_delta.catalog.unity.property_sync import own_properties
from pyspark_delta.catalog.unity.responses import commit_of_proposal, within
from pyspark_delta.errors import (
    CatalogError,
    CatalogNameExistsError,
    CatalogNameNotFoundError,
    CatalogUnavailableError,
    InvalidProposalError,
    RatificationConflictError,
    StaleMetadataError,
    TableReplacedError,
)
from pyspark_delta.lru import LruCache
from pyspark_delta.storage.credentials import Credentials

_KNOWN_TABLES = 10_000  # tables whose properties are remembered


class UnityCatalog:
    """One catalog of a server, made by `connect`. It is thread-safe.

    It ratifies staged commits only. The server itself cleans up dropped tables and staging tables.
    """

    def __init__(
        self,
        connection: Connection,
        api: DeltaApi | LegacyApi,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        self._connection = connection
        self._api = api
        self._older = api if isinstance(api, LegacyApi) else LegacyApi(connection)
        self._storage_options = dict(storage_options or {})
        self._is_own_server = isinstance(api, DeltaApi) and api.is_own_server
        # The last known properties of a table: a commit must name the properties that it removes.
        self._properties: LruCache[str, Mapping[str, str]] = LruCache(_KNOWN_TABLES)

    @classmethod
    def connect(
        cls,
        url: str,
        *,
        catalog: str,
        token: Token = None,
        storage_options: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> UnityCatalog:
        """Connect to the server at a URL such as `https://host/api/2.1/unity-catalog`.

        `token` is a bearer token, or a function that returns one and is called again if the server refuses it.
        `storage_options` are for the tables; credentials from the server override them. `timeout` is in seconds.
        Raises CatalogNameNotFoundError if the server has no catalog of this name, NotAuthorizedError,
        CatalogUnavailableError.
        """
        connection = Connection(url, token, TIMEOUT if timeout is None else timeout)
        return cls(connection, _api_of(connection, catalog), storage_options)

    def __repr__(self) -> str:
        return f"UnityCatalog({self._connection.url!r})"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Staged commits, registering of tables; with the Delta API also copies of their metadata."""
        mirror = {Capability.MIRROR} if isinstance(self._api, DeltaApi) else set()
        return frozenset({Capability.STAGED, Capability.REGISTER} | mirror)

    def close(self) -> None:
        """Close the connections to the server."""
        self._connection.close()

    # -------------------------------------------------------------------------------------------------- schemas
    def create_schema(self, catalog: str, schema: str) -> None:
        check_name_part(schema)
        with translated(f"schema '{catalog}.{schema}'"):
            self._older.create_schema(catalog, schema)

    def list_schemas(self, catalog: str) -> list[str]:
        with translated(f"catalog '{catalog}'"):
            return sorted(self._older.schemas(catalog))

    def drop_schema(self, catalog: str, schema: str) -> None:
        with translated(f"schema '{catalog}.{schema}'"):
            self._older.drop_schema(catalog, schema)

    # --------------------------------------------------------------------------------------------------- tables
    def create_staging_table(self, name: TableName) -> StagingTable:
        check_new_name(name)
        with translated(f"table {name}"):
            staging = self._api.create_staging_table(name)
        return staging if self._is_own_server else replace(staging, longest_property=LONGEST_PROPERTY)

    def create_table(self, staging: StagingTable, new: NewTable) -> TableInfo:
        """Name a table, as in `contract.Catalog`.

        If the server refuses a repeated request, the table is loaded and returned.
        """
        check_new_table(staging.name, new)
        check_new_name(staging.name)
        self._check_sizes(staging.name, new.metadata, new.domains, {})
        try:
            return self._heard(self._api.create_table(staging, new))
        except Refusal as refusal:
            if refusal.reason in (Reason.EXISTS, Reason.INVALID, Reason.NOT_FOUND):
                made = self._find(staging.name)
                if made is not None and made.table_id == staging.table_id:
                    return made
                if made is not None:
                    raise CatalogNameExistsError(
                        f"The catalog already has a table {staging.name} ({refusal.message}).", table=str(staging.name)
                    ) from None
            raise error_of(refusal, f"table {staging.name}") from None

    def register_table(self, name: TableName, location: str, described: NewTable | None = None) -> TableInfo:
        check_new_name(name)
        if described is not None:
            self._check_sizes(name, described.metadata, described.domains, {})
        with translated(f"table {name}"):
            self._api.register_table(name, location, described)
        return self.load_table(name)

    def report_change(self, table: TableInfo, version: int, timestamp: int, change: MetadataChange) -> None:
        known = self._known(table)
        self._check_sizes(table.name, change.metadata, change.domains, known)
        try:
            self._api.report_change(table, version, timestamp, change, known)
        except Refusal as refusal:
            if refusal.reason not in (Reason.NOT_FOUND, Reason.REQUIREMENT_FAILED):
                raise error_of(refusal, f"table {table.name}") from None
            found = self._reloaded(table)
            with translated(f"table {found.name}"):
                self._api.report_change(found, version, timestamp, change, known)
        if change.metadata is not None:
            self._properties.put(table.table_id, own_properties(change.metadata.configuration))

    def load_table(self, name: TableName) -> TableInfo:
        """Resolve a name, as in `contract.Catalog`. Raises NotDeltaTableError for another format and for a view."""
        try:
            return self._heard(self._api.load_table(name))
        except Refusal as refusal:
            # The Delta API refuses other formats and fails for views; the legacy API returns their kind.
            if refusal.reason is Reason.OTHER_FORMAT or refusal.status == 500:
                with suppress(Refusal, CatalogUnavailableError):
                    self._older.require_delta(name)
            raise error_of(refusal, f"table {name}") from None

    def list_tables(self, catalog: str, schema: str) -> list[TableName]:
        with translated(f"schema '{catalog}.{schema}'"):
            return sorted(name for name, _ in self._older.tables(catalog, schema))

    def rename_table(self, name: TableName, new: TableName) -> None:
        if (name.catalog.casefold(), name.schema.casefold()) != (new.catalog.casefold(), new.schema.casefold()):
            raise InvalidProposalError(
                f"Unity Catalog renames tables within their schema only: {name} cannot become {new}."
            )
        check_new_name(new)
        try:
            self._api.rename_table(name, new)
        except Refusal as refusal:
            raise error_of(refusal, f"table {new if refusal.reason is Reason.EXISTS else name}") from None

    def drop_table(self, name: TableName) -> None:
        with translated(f"table {name}"):
            self._api.drop_table(name)

    def dropped_tables(self, before_ms: int) -> list[DroppedTable]:
        """Return an empty list: the server cleans up."""
        return []

    def forget_dropped(self, table_id: str) -> None:
        """Do nothing: the server cleans up."""

    def left_behind(self, before_ms: int) -> list[LeftBehind]:
        """Return an empty list: the server cleans up."""
        return []

    def drop_staging_table(self, table_id: str) -> bool:
        """Return False: the server cleans up."""
        return False

    # -------------------------------------------------------------------------------------------------- commits
    def ratify(self, table: TableInfo, proposal: Proposal) -> Ratification:
        if proposal.file is None:
            raise InvalidProposalError("Unity Catalog ratifies staged commits only; write the commit to a file first.")
        if not table.catalog_managed:
            raise InvalidProposalError(
                f"The catalog does not manage the table {table.name}: commit to it by its path.", table=str(table.name)
            )
        if proposal.change is not None:
            self._check_sizes(table.name, proposal.change.metadata, proposal.change.domains, self._known(table))
        try:
            return self._ratify(table, proposal)
        except Refusal as refusal:
            return self._refused(table, proposal, refusal)

    def log_tail(self, table: TableInfo, start: int | None = None, end: int | None = None) -> LogTail:
        tail = self._reloaded(table).tail
        if tail is None:
            raise InvalidProposalError(f"The table {table.name} is not managed by the catalog.", table=str(table.name))
        return within(tail, start, end)

    def report_published(self, table: TableInfo, version: int) -> None:
        if version <= 0:  # published by the creation of the table
            return
        try:
            self._api.report_published(table, version)
        except Refusal as refusal:
            if refusal.reason not in (Reason.NOT_FOUND, Reason.REQUIREMENT_FAILED):
                raise error_of(refusal, f"table {table.name}") from None
            found = self._reloaded(table)
            with translated(f"table {found.name}"):
                self._api.report_published(found, version)

    def storage_options(self, table: TableInfo, access: Access) -> Mapping[str, str]:
        return self.credentials(table, access).options

    def credentials(self, table: TableInfo | StagingTable, access: Access) -> Credentials:
        try:
            given = self._api.credentials(table, access)
        except Refusal as refusal:
            if refusal.reason is not Reason.NOT_FOUND:
                raise error_of(refusal, f"table {table.name}") from None
            if isinstance(table, StagingTable):  # some servers give none before a table has its name
                return Credentials(self._storage_options)
            found = self._reloaded(table)
            with translated(f"table {found.name}"):
                given = self._api.credentials(found, access)
        return replace(given, options={**self._storage_options, **given.options})

    # -------------------------------------------------------------------------------------------------- finding
    def _ratify(self, table: TableInfo, proposal: Proposal) -> Ratification:
        replayed = self._api.ratify(table, proposal, self._known(table))
        if proposal.change is not None and proposal.change.metadata is not None and not replayed:
            self._properties.put(table.table_id, proposal.change.metadata.configuration)
        return Ratification(commit_of_proposal(proposal), replayed)

    def _refused(self, table: TableInfo, proposal: Proposal, refusal: Refusal) -> Ratification:
        """Return or raise the outcome of a refused commit, by the current state of the table on the server."""
        subject = f"table {table.name}"
        if refusal.reason is Reason.VERSION_TAKEN:
            return self._version_taken(table, proposal, refusal)
        if refusal.reason not in (Reason.NOT_FOUND, Reason.REQUIREMENT_FAILED):
            raise error_of(refusal, subject) from None
        found = self._reloaded(table)
        if found.name != table.name:  # renamed: nothing was done under the old name
            try:
                return Ratification(commit_of_proposal(proposal), self._api.ratify(found, proposal, self._known(found)))
            except Refusal as second:
                if second.reason is Reason.VERSION_TAKEN:
                    return self._version_taken(found, proposal, second)
                raise error_of(second, f"table {found.name}") from None
        if proposal.expected_etag is not None and found.etag != proposal.expected_etag:
            raise StaleMetadataError(
                f"The catalog's metadata of the table {table.name} have changed: its etag is '{found.etag}', and "
                f"'{proposal.expected_etag}' was expected. Read the table again.",
                table=str(table.name),
            ) from None
        raise CatalogUnavailableError(
            f"The catalog could not check the table {table.name} ({refusal.message}). Try again.", table=str(table.name)
        ) from None

    def _version_taken(self, table: TableInfo, proposal: Proposal, refusal: Refusal) -> Ratification:
        """Return a replay if the version has the proposed commit, because some servers report a replay as a conflict.

        Raises RatificationConflictError if it has another one.
        """
        try:
            tail = self.log_tail(table)
        except CatalogUnavailableError:
            tail = None
        commits = {commit.version: commit for commit in tail.commits} if tail is not None else {}
        winner = commits.get(proposal.version)
        if winner is not None and proposal.file is not None and winner.file_name == proposal.file.name:
            return Ratification(commit_of_proposal(proposal), replayed=True)
        raise RatificationConflictError(
            f"Version {proposal.version} of the table {table.name} already has another commit ({refusal.message}).",
            version=proposal.version,
            tail=tail,
            table=str(table.name),
        ) from None

    def _reloaded(self, table: TableInfo) -> TableInfo:
        """Return the current state of a table, found by its id if it was renamed. Raises TableReplacedError."""
        found = self._find(table.name)
        if found is None or found.table_id != table.table_id:
            with translated(f"table {table.name}"):
                name = self._name_of(table)
            found = self._find(name) if name is not None else None
        if found is None or found.table_id != table.table_id:
            raise TableReplacedError(
                f"The table {table.name} with the id {table.table_id} is no longer in the catalog.",
                table=str(table.name),
                table_id=table.table_id,
            )
        return found

    def _name_of(self, table: TableInfo) -> TableName | None:
        """Return the current name of a table, by its id; None if its schema has no table with this id."""
        try:
            listed = list(self._older.tables(table.name.catalog, table.name.schema))
        except Refusal as refusal:
            if refusal.reason is Reason.NOT_FOUND:
                return None
            raise
        return next((name for name, table_id in listed if table_id == table.table_id), None)

    def _find(self, name: TableName) -> TableInfo | None:
        try:
            return self.load_table(name)
        except CatalogNameNotFoundError:
            return None

    # ----------------------------------------------------------------------------------------------- properties
    def _heard(self, table: TableInfo) -> TableInfo:
        self._properties.put(table.table_id, table.properties)
        if not table.catalog_managed or self._is_own_server:
            return table
        return replace(table, required_properties=required_properties(table.properties))

    def _check_sizes(
        self,
        name: TableName,
        metadata: Metadata | None,
        domains: tuple[DomainMetadata, ...],
        known: Mapping[str, str],
    ) -> None:
        """Raise InvalidProposalError for properties that the server cannot store."""
        if self._is_own_server:
            return
        if metadata is not None:
            check_properties(name, metadata.configuration, known)
        check_domains(name, domains)

    def _known(self, table: TableInfo) -> Mapping[str, str]:
        known = self._properties.get(table.table_id)
        return table.properties if known is None else known


def _api_of(connection: Connection, catalog: str) -> DeltaApi | LegacyApi:
    """Return the newest API that the server has. Raises CatalogError."""
    query = {"catalog": catalog, "protocol-versions": PROTOCOL_VERSIONS}
    try:
        answer = connection.call("GET", f"{PREFIX}/config", query=query)
    except Refusal as refusal:
        if refusal.name == "NoSuchCatalogException":
            raise error_of(refusal, f"catalog '{catalog}'") from None
        if refusal.status in (404, 405, 501):
            return LegacyApi(connection)
        raise error_of(refusal, f"catalog '{catalog}'") from None
    version = answer.value.get("protocol-version") if isinstance(answer.value, dict) else None
    if isinstance(version, str) and version.partition(".")[0] != "1":
        raise CatalogError(
            f"The catalog at {connection.url} speaks version {version} of the Delta API; this client needs version 1.",
            url=connection.url,
        )
    return DeltaApi(connection, sends_transaction_ids=answer.headers.get(TRANSACTION_IDS_HEADER) == "true")
