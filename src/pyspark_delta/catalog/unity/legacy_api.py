"""Unity Catalog's endpoints from before the Delta API: commits by table id, tables by full name.

They have no etags and cannot rename tables. The client uses them for schemas and lists, and for everything if the
server has no Delta API.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark_delta.catalog.contract import (
    Access,
    LogTail,
    MetadataChange,
    NewTable,
    Proposal,
    RatifiedCommit,
    StagingTable,
    TableInfo,
    TableName,
)
from pyspark_delta.catalog.unity.column_info import columns_to_json
from pyspark_delta.catalog.unity.connection import Connection, segment
from pyspark_delta.catalog.unity.credentials import legacy_credentials_of
from pyspark_delta.catalog.unity.errors import Refusal
from pyspark_delta.catalog.unity.property_sync import (
    MANAGED_PROPERTY,
    SUPPORTED,
    TABLE_ID_PROPERTY,
    is_synthetic,
    own_properties,
    protocol_properties,
)
from pyspark_delta.catalog.unity.responses import (
    commit_of_proposal,
    commit_to_json,
    commits_of,
    number,
    tail_of,
    texts,
    wire_location,
)
from pyspark_delta.errors import NotDeltaTableError
from pyspark_delta.features import Feature
from pyspark_delta.protocol.properties import ENABLE_IN_COMMIT_TIMESTAMPS
from pyspark_delta.storage.credentials import Credentials
from pyspark_delta.storage.paths import normalize_location

COMMITS = "/delta/preview/commits"
REPLAYED_HEADER = "x-commit-replayed"
"""A header of this package's server: it had ratified the commit before."""
_PAGE = 50
_FEATURES = frozenset(
    feature.value for feature in (Feature.CATALOG_MANAGED, Feature.IN_COMMIT_TIMESTAMP, Feature.VACUUM_PROTOCOL_CHECK)
)


class LegacyApi:
    """The requests of the legacy endpoints.

    Every method raises Refusal if the server refuses the request, CatalogUnavailableError if there is no response.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # -------------------------------------------------------------------------------------------------- schemas
    def create_schema(self, catalog: str, schema: str) -> None:
        self._connection.call("POST", "/schemas", {"name": schema, "catalog_name": catalog})

    def schemas(self, catalog: str) -> Iterator[str]:
        """Yield the names of the schemas of a catalog."""
        for value in self._listed("/schemas", "schemas", {"catalog_name": catalog}):
            yield str(value.get("name"))

    def drop_schema(self, catalog: str, schema: str) -> None:
        self._connection.call("DELETE", f"/schemas/{segment(f'{catalog}.{schema}')}")

    # --------------------------------------------------------------------------------------------------- tables
    def tables(self, catalog: str, schema: str) -> Iterator[tuple[TableName, str]]:
        """Yield the tables of a schema, with their ids."""
        query = {"catalog_name": catalog, "schema_name": schema}
        for value in self._listed("/tables", "tables", query):
            yield TableName(catalog, schema, str(value.get("name"))), str(value.get("table_id"))

    def register_table(self, name: TableName, location: str, described: NewTable | None) -> None:
        """Register a table at a path. These endpoints cannot report later changes."""
        request = {**_named(name), "table_type": "EXTERNAL", "storage_location": wire_location(location)}
        self._connection.call("POST", "/tables", {**request, **_described(described)})

    def create_staging_table(self, name: TableName) -> StagingTable:
        answer = self._connection.call("POST", "/staging-tables", _named(name)).value
        answer = answer if isinstance(answer, dict) else {}
        return StagingTable(
            table_id=str(answer.get("id") or ""),
            name=name,
            location=normalize_location(str(answer.get("staging_location") or "")),
            required_features=_FEATURES,
            required_properties={
                ENABLE_IN_COMMIT_TIMESTAMPS.name: "true",
                TABLE_ID_PROPERTY: str(answer.get("id") or ""),
            },
        )

    def create_table(self, staging: StagingTable, new: NewTable) -> TableInfo:
        request = {**_named(staging.name), "table_type": "MANAGED", "storage_location": wire_location(staging.location)}
        request |= _described(new)
        return self._table(staging.name, self._connection.call("POST", "/tables", request).value)

    def load_table(self, name: TableName) -> TableInfo:
        return self._table(name, self._connection.call("GET", f"/tables/{segment(_full(name))}").value)

    def require_delta(self, name: TableName) -> None:
        """Raise NotDeltaTableError for a table of another format and for a view."""
        _require_delta(name, self._connection.call("GET", f"/tables/{segment(_full(name))}").value)

    def report_change(
        self, table: TableInfo, version: int, timestamp: int, change: MetadataChange, known: Mapping[str, str]
    ) -> None:
        """Do nothing: these endpoints have no request for it."""

    def rename_table(self, name: TableName, new: TableName) -> None:
        raise Refusal(501, "NotImplementedException", "the server's API is too old to rename tables")

    def drop_table(self, name: TableName) -> None:
        self._connection.call("DELETE", f"/tables/{segment(_full(name))}")

    # -------------------------------------------------------------------------------------------------- commits
    def ratify(self, table: TableInfo, proposal: Proposal, known: Mapping[str, str]) -> bool:
        """Propose a staged commit; return True if the server reports that it was ratified before."""
        request = _addressed(table.table_id, table.location)
        request["commit_info"] = commit_to_json(commit_of_proposal(proposal), "_")
        if proposal.published_version is not None and proposal.published_version > 0:
            request["latest_backfilled_version"] = proposal.published_version
        if proposal.change is not None and (metadata := self._metadata(table, proposal.change)):
            request["metadata"] = metadata
        answer = self._connection.call("POST", COMMITS, request)
        return answer.headers.get(REPLAYED_HEADER) == "true"

    def report_published(self, table: TableInfo, version: int) -> None:
        request = _addressed(table.table_id, table.location)
        self._connection.call("POST", COMMITS, {**request, "latest_backfilled_version": version})

    def credentials(self, table: TableInfo | StagingTable, access: Access) -> Credentials:
        request = {"table_id": table.table_id, "operation": access.value}
        return legacy_credentials_of(self._connection.call("POST", "/temporary-table-credentials", request).value)

    def _metadata(self, table: TableInfo, change: MetadataChange) -> dict[str, Any]:
        """Return a commit's changes of metadata, with all properties, also derived ones: they replace the catalog's."""
        if change.metadata is None and change.protocol is None:
            return {}
        answer = self._connection.call("GET", f"/tables/{segment(_full(table.name))}").value
        known = texts(answer.get("properties")) if isinstance(answer, dict) else {}
        made = {key: value for key, value in known.items() if is_synthetic(key)}
        if change.protocol is not None:
            made = protocol_properties(change.protocol)
        own = own_properties(change.metadata.configuration if change.metadata is not None else known)
        metadata: dict[str, Any] = {"properties": {"properties": {**made, TABLE_ID_PROPERTY: table.table_id, **own}}}
        if change.metadata is not None:
            columns = columns_to_json(change.metadata.schema_string, change.metadata.partition_columns)
            metadata["schema"] = {"columns": columns}
            if change.metadata.description is not None:
                metadata["description"] = change.metadata.description
        return metadata

    # ------------------------------------------------------------------------------------------------- answers
    def _table(self, name: TableName, answer: Any) -> TableInfo:
        _require_delta(name, answer)
        properties = texts(answer.get("properties"))
        location = normalize_location(str(answer.get("storage_location") or ""))
        table_id = str(answer.get("table_id") or "")
        managed = properties.get(MANAGED_PROPERTY) == SUPPORTED
        return TableInfo(
            table_id=table_id,
            name=name,
            location=location,
            tail=self._tail(table_id, location, str(name)) if managed else None,
            properties=own_properties(properties),
        )

    def _tail(self, table_id: str, location: str, table: str) -> LogTail:
        """Return the whole log tail. A response holds the earliest commits, so requests continue up to the latest."""
        commits: dict[int, RatifiedCommit] = {}
        start = 0
        while True:
            request = {**_addressed(table_id, location), "start_version": start}
            answer = self._connection.call("GET", COMMITS, request).value
            answer = answer if isinstance(answer, dict) else {}
            page = commits_of(answer.get("commits"))
            commits |= {commit.version: commit for commit in page}
            latest = answer.get("latest_table_version")
            newest = max((commit.version for commit in page), default=None)
            if newest is None or newest < start or newest >= number(latest):
                return tail_of(commits.values(), latest, table)
            start = newest + 1

    def _listed(self, path: str, key: str, query: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        token: str | None = None
        while True:
            page: dict[str, str | int] = {**query, "max_results": _PAGE, **({"page_token": token} if token else {})}
            answer = self._connection.call("GET", path, query=page).value
            answer = answer if isinstance(answer, dict) else {}
            yield from (value for value in answer.get(key) or () if isinstance(value, dict))
            found = answer.get("next_page_token")
            if not found or found == token:
                return
            token = str(found)


def _addressed(table_id: str, location: str) -> dict[str, Any]:
    return {"table_id": table_id, "table_uri": wire_location(location)}


def _require_delta(name: TableName, answer: Any) -> None:
    """Raise NotDeltaTableError for a table of another format and for a view; these endpoints return both."""
    answer = answer if isinstance(answer, dict) else {}
    kind, data_format = answer.get("table_type"), answer.get("data_source_format")
    if kind in ("MANAGED", "EXTERNAL") and data_format == "DELTA":
        return
    found = f"is {kind}" if kind not in ("MANAGED", "EXTERNAL") else f"has {data_format or 'no format'}"
    raise NotDeltaTableError(
        f"{name} is not a Delta table: the catalog says that it {found}. Read it with the engine that made it.",
        table=str(name),
        table_type=kind,
        format=data_format,
    )


def _described(new: NewTable | None) -> dict[str, Any]:
    """Return the columns, the protocol and the properties of a Delta table for a request."""
    request: dict[str, Any] = {"data_source_format": "DELTA", "columns": [], "properties": {}}
    if new is not None:
        request["columns"] = columns_to_json(new.metadata.schema_string, new.metadata.partition_columns)
        request["properties"] = {**protocol_properties(new.protocol), **own_properties(new.metadata.configuration)}
        if new.metadata.description is not None:
            request["comment"] = new.metadata.description
    return request


def _named(name: TableName) -> dict[str, Any]:
    return {"name": name.name, "catalog_name": name.catalog, "schema_name": name.schema}


def _full(name: TableName) -> str:
    return f"{name.catalog}.{name.schema}.{name.name}"
