"""Unity Catalog's copy of a table's protocol, metadata and domains, and the updates that keep it current.

The log is authoritative. A commit that changes these reports the changes to the catalog in the same request. The
catalog derives some properties from the protocol, the domains and the last commit. Requests of the Delta API never
contain them, and they never belong to the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from pyspark_delta.actions.model import DomainMetadata, Protocol
from pyspark_delta.catalog.contract import MetadataChange, NewTable
from pyspark_delta.catalog.unity.type_json import columns_of
from pyspark_delta.features import Feature, find_feature
from pyspark_delta.protocol.feature import FeatureKind

TABLE_ID_PROPERTY = "io.unitycatalog.tableId"
FEATURE_PREFIX = "delta.feature."
MANAGED_PROPERTY = f"{FEATURE_PREFIX}{Feature.CATALOG_MANAGED}"
SUPPORTED = "supported"
CLUSTERING, ROW_TRACKING = "delta.clustering", "delta.rowTracking"
MIRRORED_DOMAINS = (CLUSTERING, ROW_TRACKING)

MIN_READER_VERSION, MIN_WRITER_VERSION = "delta.minReaderVersion", "delta.minWriterVersion"
CLUSTERING_COLUMNS = "delta.clusteringColumns"
HIGH_WATER_MARK = "delta.rowTracking.rowIdHighWaterMark"
LAST_UPDATE_VERSION, LAST_COMMIT_TIMESTAMP = "delta.lastUpdateVersion", "delta.lastCommitTimestamp"
_SYNTHETIC = frozenset(
    {
        MIN_READER_VERSION,
        MIN_WRITER_VERSION,
        CLUSTERING_COLUMNS,
        HIGH_WATER_MARK,
        LAST_UPDATE_VERSION,
        LAST_COMMIT_TIMESTAMP,
    }
)


def is_synthetic(key: str) -> bool:
    """Return True if the catalog derives the property."""
    return key in _SYNTHETIC or key.startswith(FEATURE_PREFIX)


def own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties without those that the catalog derives."""
    return {key: value for key, value in properties.items() if not is_synthetic(key)}


def features_of(protocol: Protocol) -> frozenset[str]:
    """Return every feature that a protocol lists."""
    return protocol.listed_features


def protocol_properties(protocol: Protocol) -> dict[str, str]:
    """Return the properties that the catalog derives from a protocol."""
    return {
        MIN_READER_VERSION: str(protocol.min_reader_version),
        MIN_WRITER_VERSION: str(protocol.min_writer_version),
        **{f"{FEATURE_PREFIX}{feature}": SUPPORTED for feature in sorted(features_of(protocol))},
    }


def protocol_of_properties(properties: Mapping[str, str]) -> Protocol:
    """Return the protocol that `protocol_properties` describes; versions 1 and 2 without features if there are none.

    The properties do not state which features readers need. These are the features that are known to affect readers.
    """
    features = frozenset(
        key.removeprefix(FEATURE_PREFIX)
        for key, value in properties.items()
        if key.startswith(FEATURE_PREFIX) and value == SUPPORTED
    )
    found = {name: find_feature(name) for name in features}
    readers = frozenset(name for name, known in found.items() if known and known.kind is FeatureKind.READER_WRITER)
    reader, writer = _version(properties.get(MIN_READER_VERSION), 1), _version(properties.get(MIN_WRITER_VERSION), 2)
    return Protocol(
        min_reader_version=reader,
        min_writer_version=writer,
        reader_features=readers if reader >= 3 else None,
        writer_features=features if writer >= 7 else None,
    )


def _version(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 4 else default


def protocol_to_json(protocol: Protocol) -> dict[str, Any]:
    """Return the JSON of a protocol in the Delta API."""
    value: dict[str, Any] = {
        "min-reader-version": protocol.min_reader_version,
        "min-writer-version": protocol.min_writer_version,
    }
    if protocol.reader_features is not None:
        value["reader-features"] = sorted(protocol.reader_features)
    if protocol.writer_features is not None:
        value["writer-features"] = sorted(protocol.writer_features)
    return value


def domains_to_json(domains: Iterable[DomainMetadata]) -> dict[str, Any]:
    """Return the JSON of the metadata domains that the catalog stores."""
    known = {domain.domain: domain for domain in domains if not domain.removed}
    updates: dict[str, Any] = {}
    if CLUSTERING in known:
        columns = _configuration(known[CLUSTERING]).get("clusteringColumns", [])
        updates[CLUSTERING] = {"clusteringColumns": columns}
    if ROW_TRACKING in known:
        mark = _configuration(known[ROW_TRACKING]).get("rowIdHighWaterMark")
        if isinstance(mark, int) and mark >= 0:
            updates[ROW_TRACKING] = {"rowIdHighWaterMark": mark}
    return updates


def new_table_to_json(name: str, location: str, new: NewTable, *, table_type: str = "MANAGED") -> dict[str, Any]:
    """Return the request that names a table: a MANAGED one at a staging location, or an EXTERNAL one at any path."""
    request: dict[str, Any] = {
        "name": name,
        "location": location,
        "table-type": table_type,
        "columns": columns_of(new.metadata.schema_string),
        "partition-columns": list(new.metadata.partition_columns),
        "protocol": protocol_to_json(new.protocol),
        "properties": own_properties(new.metadata.configuration),
        "last-commit-timestamp-ms": new.timestamp,
    }
    if new.metadata.description is not None:
        request["comment"] = new.metadata.description
    if domains := domains_to_json(new.domains):
        request["domain-metadata"] = domains
    return request


def change_to_updates(change: MetadataChange, known: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the updates that report the changes of a commit; `known` are the properties that the catalog has."""
    updates: list[dict[str, Any]] = []
    if change.protocol is not None:
        updates.append({"action": "set-protocol", "protocol": protocol_to_json(change.protocol)})
    if change.metadata is not None:
        properties = own_properties(change.metadata.configuration)
        changed = {key: value for key, value in properties.items() if known.get(key) != value}
        removed = sorted(key for key in own_properties(known) if key not in properties)
        columns = columns_of(change.metadata.schema_string)
        partitions = list(change.metadata.partition_columns)
        if changed:
            updates.append({"action": "set-properties", "updates": changed})
        if removed:
            updates.append({"action": "remove-properties", "removals": removed})
        updates.append({"action": "set-columns", "columns": columns})
        updates.append({"action": "set-partition-columns", "partition-columns": partitions})
        if change.metadata.description is not None:
            updates.append({"action": "set-table-comment", "comment": change.metadata.description})
    if domains := domains_to_json(change.domains):
        updates.append({"action": "set-domain-metadata", "updates": domains})
    gone = [d.domain for d in change.domains if d.removed and d.domain in MIRRORED_DOMAINS]
    if gone:
        updates.append({"action": "remove-domain-metadata", "domains": gone})
    return updates


def snapshot_update(version: int, timestamp: int) -> dict[str, Any]:
    """Return the update that states which version of a registered table the other updates describe."""
    snapshot = {"last-commit-version": version, "last-commit-timestamp-ms": timestamp}
    return {"action": "update-metadata-snapshot-version", **snapshot}


def _configuration(domain: DomainMetadata) -> dict[str, Any]:
    try:
        value = orjson.loads(domain.configuration)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
