"""What a clone declares: protocol, metadata and domains of its source, without what belongs to the source alone."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace

import orjson

from pyspark_delta.actions.model import DomainMetadata, Metadata, Protocol
from pyspark_delta.catalog.creation import Creation, creation_of
from pyspark_delta.ddl.change import draft_change
from pyspark_delta.ddl.properties import set_properties
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.features import Feature, is_active, is_supported
from pyspark_delta.maintenance.clone.target import CloneTarget
from pyspark_delta.protocol.clustering import DOMAIN as CLUSTERING
from pyspark_delta.protocol.configuration import (
    CATALOG_MANAGED,
    CLONE_OF,
    OF_ONE_HISTORY,
    TableConfiguration,
    lasting_properties,
)
from pyspark_delta.protocol.identity import move_marks
from pyspark_delta.protocol.properties import (
    CHECKPOINT_PROTECTION_VERSION,
    COLUMN_MAPPING_MAX_ID,
    ENABLE_IN_COMMIT_TIMESTAMPS,
    IN_COMMIT_TIMESTAMP_TIME,
    IN_COMMIT_TIMESTAMP_VERSION,
    MATERIALIZED_ROW_ID,
)
from pyspark_delta.schema.column_mapping import mapping_mode
from pyspark_delta.schema.declaration_keys import IDENTITY_MARK
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.evolution import evolve
from pyspark_delta.transaction.protocol_upgrade import features_of, weakest_protocol

_ROW_IDS = "delta.rowTracking"


@dataclass(frozen=True, slots=True)
class Declaration:
    """The configuration of the clone, and the domains that its commit changes."""

    configuration: TableConfiguration
    domains: tuple[DomainMetadata, ...]


def declare_clone(
    source: Snapshot, target: CloneTarget, properties: Mapping[str, str], *, keeps_row_ids: bool
) -> Declaration:
    """Return what a clone declares; `properties` override those of the source.

    A shallow clone gives its rows new ids; with `keeps_row_ids` they keep those of the source. Commit versions are
    those of the clone. Raises InvalidOptionError for a property that is not valid, and InvalidOperationError for
    another column mapping mode or an unknown feature.
    """
    before = None if target.snapshot is None else target.snapshot.configuration
    left_out = OF_ONE_HISTORY if keeps_row_ids else (*OF_ONE_HISTORY, MATERIALIZED_ROW_ID.name)
    kept = {name: value for name, value in source.properties.items() if name not in left_out}
    chosen = {name: value for name, value in _with_overrides(source, properties).items() if name not in left_out}
    wanted = {**chosen, CLONE_OF: _origin(source), **_own_properties(before)}
    creation = Creation(properties=wanted) if before is not None else creation_of(target.catalog_table, wanted)
    after = evolve(
        before,
        _metadata(source, before, creation.properties),
        _protocol(source),
        features=creation.features,
        keeps_files=False,
        inherited=kept,
    )
    if mapping_mode(after) != mapping_mode(source.configuration):
        raise InvalidOperationError(
            f"A clone keeps the column mapping mode of its source, '{mapping_mode(source.configuration)}', because it "
            f"has the same data files; '{mapping_mode(after)}' was asked for. Leave the property out.",
            error_class="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
        )
    if before is not None:
        after = _with_highest_marks(after, before)
    return Declaration(after, _domains(source, target, after, keeps_row_ids))


def _with_overrides(source: Snapshot, properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties of the source with others, which its files must comply with as if it got them itself."""
    if not properties:
        return source.properties
    change = set_properties(source.configuration, properties)
    draft_change(change, source.configuration, keeps_files=source.num_files() > 0, complying=(Feature.ROW_TRACKING,))
    return change.metadata.configuration


def _own_properties(before: TableConfiguration | None) -> dict[str, str]:
    """Return the properties that a table keeps when a clone replaces it: its history depends on them."""
    if before is None:
        return {}
    names = [CHECKPOINT_PROTECTION_VERSION.name]
    if is_active(before, Feature.IN_COMMIT_TIMESTAMP):
        names += [ENABLE_IN_COMMIT_TIMESTAMPS.name, IN_COMMIT_TIMESTAMP_VERSION.name, IN_COMMIT_TIMESTAMP_TIME.name]
    return {name: before.properties[name] for name in names if name in before.properties} | lasting_properties(before)


def _origin(source: Snapshot) -> str:
    return orjson.dumps({"path": source.location, "id": source.metadata.id, "version": source.version}).decode()


def _protocol(source: Snapshot) -> Protocol:
    """Return the protocol of the source, without the feature by which a catalog manages it."""
    features = features_of(source.protocol)
    return source.protocol if features.isdisjoint(CATALOG_MANAGED) else weakest_protocol(features - {*CATALOG_MANAGED})


def _metadata(source: Snapshot, before: TableConfiguration | None, properties: Mapping[str, str]) -> Metadata:
    own = None if before is None else before.metadata
    highest = {}
    if own is not None and COLUMN_MAPPING_MAX_ID.name in own.configuration:
        known = (own.configuration[COLUMN_MAPPING_MAX_ID.name], properties.get(COLUMN_MAPPING_MAX_ID.name, "0"))
        highest = {COLUMN_MAPPING_MAX_ID.name: max(known, key=int)}
    return replace(
        source.metadata,
        id=str(uuid.uuid4()) if own is None else own.id,
        name=None if own is None else own.name,
        description=None if own is None else own.description,
        configuration={**properties, **highest},
        created_time=int(time.time() * 1000) if own is None else own.created_time,
    )


def _with_highest_marks(after: TableConfiguration, before: TableConfiguration) -> TableConfiguration:
    """Return the configuration with high-water marks of identity columns that are never lower than before."""
    marks = {field.name: field.metadata[IDENTITY_MARK] for field in before.schema if IDENTITY_MARK in field.metadata}
    identities = {field.name for field in after.schema if IDENTITY_MARK in field.metadata}
    moved = move_marks(after, {name: mark for name, mark in marks.items() if name in identities})
    return after if moved is None else replace(after, metadata=moved)


def _domains(
    source: Snapshot, target: CloneTarget, after: TableConfiguration, keeps_row_ids: bool
) -> tuple[DomainMetadata, ...]:
    """Return the changes of the domains: clustering, and the highest row id if the rows keep theirs."""
    theirs = source.domains()
    own = {} if target.snapshot is None else target.snapshot.domains()
    changes = []
    if theirs.get(CLUSTERING) != own.get(CLUSTERING):
        clustering = theirs.get(CLUSTERING) or replace(own[CLUSTERING], removed=True)
        changes.append(clustering)
    if keeps_row_ids and _ROW_IDS in theirs and is_supported(after, Feature.ROW_TRACKING):
        changes.append(theirs[_ROW_IDS])
    return tuple(changes)
