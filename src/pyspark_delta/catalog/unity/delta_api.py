"""The Delta API v1 of Unity Catalog: table operations under `/delta/v1`, addressed by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark_delta.catalog.contract import (
    Access,
    MetadataChange,
    NewTable,
    Proposal,
    StagingTable,
    TableInfo,
    TableName,
)
from pyspark_delta.catalog.unity.connection import Connection, segment
from pyspark_delta.catalog.unity.credentials import credentials_of
from pyspark_delta.catalog.unity.legacy_api import REPLAYED_HEADER, LegacyApi
from pyspark_delta.catalog.unity.property_sync import change_to_updates, new_table_to_json, snapshot_update
from pyspark_delta.catalog.unity.responses import (
    commit_of_proposal,
    commit_to_json,
    staging_of,
    table_of,
    wire_location,
)
from pyspark_delta.storage.credentials import Credentials

PREFIX = "/delta/v1"
PROTOCOL_VERSIONS = "1.0"
TRANSACTION_IDS_HEADER = "x-transaction-ids"
"""A header of this package's server: it accepts transaction ids of commits, and so recognizes replays for longer."""


class DeltaApi:
    """The requests of the Delta API.

    Every method raises Refusal if the server refuses the request, CatalogUnavailableError if there is no response.
    """

    def __init__(self, connection: Connection, *, sends_transaction_ids: bool = False) -> None:
        self._connection = connection
        self._sends_transaction_ids = sends_transaction_ids

    @property
    def is_own_server(self) -> bool:
        """True if the server is this package's."""
        return self._sends_transaction_ids

    def create_staging_table(self, name: TableName) -> StagingTable:
        answer = self._connection.call("POST", f"{_schema(name)}/staging-tables", {"name": name.name})
        return staging_of(name, answer.value)

    def create_table(self, staging: StagingTable, new: NewTable) -> TableInfo:
        request = new_table_to_json(staging.name.name, wire_location(staging.location), new)
        answer = self._connection.call("POST", f"{_schema(staging.name)}/tables", request)
        return table_of(staging.name, answer.value)

    def register_table(self, name: TableName, location: str, described: NewTable | None) -> None:
        """Register a table at a path. Without a description this uses the legacy API; the Delta API needs one."""
        if described is None:
            LegacyApi(self._connection).register_table(name, location, None)
            return
        request = new_table_to_json(name.name, wire_location(location), described, table_type="EXTERNAL")
        self._connection.call("POST", f"{_schema(name)}/tables", request)

    def report_change(
        self, table: TableInfo, version: int, timestamp: int, change: MetadataChange, known: Mapping[str, str]
    ) -> None:
        self._update(table, [*change_to_updates(change, known), snapshot_update(version, timestamp)], None)

    def load_table(self, name: TableName) -> TableInfo:
        return table_of(name, self._connection.call("GET", _table(name)).value)

    def ratify(self, table: TableInfo, proposal: Proposal, known: Mapping[str, str]) -> bool:
        """Propose a staged commit; return True if the server reports that it was ratified before."""
        commit = commit_to_json(commit_of_proposal(proposal), "-")
        if self._sends_transaction_ids:
            commit["transaction-id"] = proposal.transaction_id
        updates: list[dict[str, Any]] = [{"action": "add-commit", "commit": commit}]
        if proposal.published_version is not None and proposal.published_version > 0:
            updates.append(_published(proposal.published_version))
        if proposal.change is not None:
            updates += change_to_updates(proposal.change, known)
        return self._update(table, updates, proposal.expected_etag)

    def report_published(self, table: TableInfo, version: int) -> None:
        self._update(table, [_published(version)], None)

    def rename_table(self, name: TableName, new: TableName) -> None:
        self._connection.call("POST", f"{_table(name)}/rename", {"new-name": new.name})

    def drop_table(self, name: TableName) -> None:
        self._connection.call("DELETE", _table(name))

    def credentials(self, table: TableInfo | StagingTable, access: Access) -> Credentials:
        if isinstance(table, StagingTable):
            path, query = f"{PREFIX}/staging-tables/{segment(table.table_id)}/credentials", None
        else:
            path, query = f"{_table(table.name)}/credentials", {"operation": access.value}
        return credentials_of(self._connection.call("GET", path, query=query).value, table.location)

    def _update(self, table: TableInfo, updates: list[dict[str, Any]], etag: str | None) -> bool:
        requirements = [{"type": "assert-table-uuid", "uuid": table.table_id}]
        if etag is not None:
            requirements.append({"type": "assert-etag", "etag": etag})
        body = {"requirements": requirements, "updates": updates}
        answer = self._connection.call("POST", _table(table.name), body)
        return answer.headers.get(REPLAYED_HEADER) == "true"


def _published(version: int) -> dict[str, Any]:
    return {"action": "set-latest-backfilled-version", "latest-published-version": version}


def _schema(name: TableName) -> str:
    return f"{PREFIX}/catalogs/{segment(name.catalog)}/schemas/{segment(name.schema)}"


def _table(name: TableName) -> str:
    return f"{_schema(name)}/tables/{segment(name.name)}"
