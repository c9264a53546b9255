"""Create tables without rows, and replace existing ones, from a definition."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.model import DomainMetadata, Metadata
from pyspark_delta.catalog.creation import Creation, creation_of
from pyspark_delta.ddl.change import require_text
from pyspark_delta.ddl.clustering import cluster_by
from pyspark_delta.errors import InvalidOperationError, TableAlreadyExistsError, TableNotFoundError
from pyspark_delta.features import Feature
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.protocol.configuration import TableConfiguration, lasting_properties
from pyspark_delta.protocol.draft import CommitDraft, Operation, ReadSet, no_files
from pyspark_delta.protocol.properties import STATS_COLUMNS, check_property, lookup
from pyspark_delta.protocol.state import TableState
from pyspark_delta.schema.edits import Path
from pyspark_delta.schema.json import dump_json, schema_to_json
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of
from pyspark_delta.transaction.column_rules import resolve_partitioning
from pyspark_delta.transaction.evolution import default_properties, evolve
from pyspark_delta.transaction.statistics_columns import check_statistics_columns
from pyspark_delta.transaction.transaction import REMOVED_COLUMNS


class CreateMode(Enum):
    """The action for an existing or a missing table."""

    CREATE = "create"
    CREATE_IF_NOT_EXISTS = "create if not exists"
    REPLACE = "replace"
    CREATE_OR_REPLACE = "create or replace"

    @property
    def operation(self) -> str:
        """The name of the operation in the history."""
        return "CREATE TABLE" if self is CreateMode.CREATE_IF_NOT_EXISTS else f"{self.value} table".upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """The configuration of a new table. `clustering` are the paths of the clustering columns.

    The table supports `features` in addition to those that it needs. `inherited` are the properties among `properties`
    that are those of another table: they are valid even if this version does not know them. `defaults` are those of the
    session for properties that are not given. `is_managed` says for the history that Spark's catalog owns the files.
    """

    schema: StructType
    partition_columns: tuple[str, ...] = ()
    clustering: tuple[Path, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    description: str | None = None
    features: tuple[str, ...] = ()
    inherited: Mapping[str, str] = field(default_factory=dict, hash=False)
    defaults: Mapping[str, str] = field(default_factory=dict, hash=False)
    is_managed: bool = False


def create_table(
    location: str,
    definition: TableDefinition,
    mode: CreateMode,
    *,
    storage_options: Mapping[str, str] | None = None,
    catalog_table: CatalogTable | None = None,
    engine_info: str = "",
) -> int | None:
    """Create or replace the table at a location; return the committed version, or None if an existing table was kept.

    Raises TableAlreadyExistsError, TableNotFoundError (mode REPLACE), and the errors of an invalid definition.
    """
    try:
        snapshot = Snapshot.load(location, storage_options=storage_options, catalog_table=catalog_table)
    except TableNotFoundError:
        if mode is CreateMode.REPLACE:
            raise
        snapshot = None
    if snapshot is not None and mode is CreateMode.CREATE:
        raise TableAlreadyExistsError(
            location, "Open it with forPath or forName, or define it with createIfNotExists or createOrReplace."
        )
    if snapshot is not None and mode is CreateMode.CREATE_IF_NOT_EXISTS:
        return None
    creation = Creation(properties=definition.properties)
    if snapshot is None:
        creation = creation_of(catalog_table, definition.properties)
        definition = replace(definition, properties=creation.properties)
    draft = draft_table(definition, snapshot, mode, engine_info, creation.features)
    base = TableState(location=location, storage_options=dict(storage_options or {}), catalog_table=catalog_table)
    return commit_draft(draft, base if snapshot is None else state_of(snapshot)).version


def draft_table(
    definition: TableDefinition,
    snapshot: Snapshot | None,
    mode: CreateMode,
    engine_info: str = "",
    features: tuple[str, ...] = (),
) -> CommitDraft:
    """Return the commit that creates a table, or replaces `snapshot`. Raises the errors of an invalid definition."""
    before = None if snapshot is None else snapshot.configuration
    features = (*features, *definition.features)
    features = (*features, Feature.CLUSTERING) if definition.clustering else features
    metadata, inherited = _metadata(definition, before), definition.inherited
    after = evolve(before, metadata, features=features, keeps_files=False, inherited=inherited)
    if lookup(definition.properties, STATS_COLUMNS.name) not in (None, lookup(inherited, STATS_COLUMNS.name)):
        check_statistics_columns(after)
    domains: tuple[DomainMetadata, ...] = ()
    if definition.clustering or (snapshot is not None and snapshot.clustering_columns()):
        domains = cluster_by(after, definition.clustering).domains
    removed = no_files() if snapshot is None else snapshot.files(REMOVED_COLUMNS)
    return CommitDraft(
        operation=Operation(mode.operation, _parameters(definition, after), _metrics(removed)),
        removes=removed,
        protocol=after.protocol if before is None or after.protocol != before.protocol else None,
        metadata=after.metadata,
        domains=domains,
        reads=ReadSet(whole_table=snapshot is not None),
        engine_info=engine_info,
    )


def _metadata(definition: TableDefinition, before: TableConfiguration | None) -> Metadata:
    if not definition.schema.fields:
        raise InvalidOperationError(
            "A table needs at least one column; add columns to its definition.", error_class="DELTA_EMPTY_DATA"
        )
    for name, value in definition.properties.items():
        if definition.inherited.get(name) != value:
            check_property(name, value)
    if definition.partition_columns and definition.clustering:
        raise InvalidOperationError(
            "A table cannot be both partitioned and clustered. Choose one of the two.",
            error_class="DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
        )
    require_text(definition.description, "The description of a table")
    return Metadata(
        id=str(uuid.uuid4()),  # also of a replacement: streams of the table before must not go on with its rows
        schema_string=schema_to_json(definition.schema),
        partition_columns=resolve_partitioning(definition.schema, definition.partition_columns),
        configuration={**lasting_properties(before), **default_properties(definition.properties, definition.defaults)},
        description=definition.description,
        created_time=int(time.time() * 1000),
    )


def _parameters(definition: TableDefinition, after: TableConfiguration) -> dict[str, str | None]:
    return {
        "isManaged": str(definition.is_managed).lower(),
        "partitionBy": dump_json(list(definition.partition_columns)).decode(),
        "clusterBy": dump_json([".".join(path) for path in definition.clustering]).decode(),
        "properties": dump_json(dict(after.metadata.configuration)).decode(),
        "description": definition.description,
    }


def _metrics(removed: pa.Table) -> dict[str, int]:
    if not removed.num_rows:
        return {}
    return {"numRemovedFiles": removed.num_rows, "numRemovedBytes": pc.sum(removed.column("size")).as_py() or 0}
