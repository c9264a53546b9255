"""The table that a write goes to, before and after the write."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark_delta.actions.model import DomainMetadata, Metadata, Protocol
from pyspark_delta.catalog.creation import creation_of
from pyspark_delta.ddl.clustering import cluster_by
from pyspark_delta.errors import InvalidOperationError, InvalidOptionError
from pyspark_delta.features import Feature, is_active, is_supported
from pyspark_delta.features.support import check_removable, check_writable
from pyspark_delta.protocol.clustering import clustering_paths
from pyspark_delta.protocol.configuration import TableConfiguration, lasting_properties
from pyspark_delta.schema.column_paths import parse_column_path
from pyspark_delta.schema.json import schema_to_json
from pyspark_delta.schema.merge import is_same_shape, keep_identities, merge_schemas
from pyspark_delta.schema.store_assignment import check_storable
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.column_rules import resolve_partitioning
from pyspark_delta.transaction.evolution import default_properties, evolve
from pyspark_delta.transaction.new_table import new_table, stored_columns
from pyspark_delta.write.options import WriteOptions


@dataclass(frozen=True)
class Target:
    """`before` is None if the table does not exist; `configuration` holds once the write is committed."""

    location: str
    configuration: TableConfiguration
    before: TableConfiguration | None = None
    domains: tuple[DomainMetadata, ...] = ()

    @property
    def protocol(self) -> Protocol | None:
        """The protocol, if the write changes it."""
        unchanged = self.before is not None and self.before.protocol == self.configuration.protocol
        return None if unchanged else self.configuration.protocol

    @property
    def metadata(self) -> Metadata | None:
        """The metadata, if the write changes it."""
        unchanged = self.before is not None and self.before.metadata == self.configuration.metadata
        return None if unchanged else self.configuration.metadata


def new_target(location: str, data: StructType, options: WriteOptions, defaults: Mapping[str, str]) -> Target:
    """Return a table that does not exist yet; `defaults` are the session's properties for new tables."""
    creation = creation_of(options.catalog_table, options.properties)
    features = (*creation.features, Feature.CLUSTERING) if options.cluster_by else creation.features
    configuration = new_table(
        data,
        options.partition_by or (),
        creation.properties,
        defaults=defaults,
        features=features,
        description=options.description,
    )
    return Target(location, configuration, domains=_clustering(configuration, options.cluster_by))


def existing_target(
    snapshot: Snapshot,
    before: TableConfiguration,
    data: StructType,
    mode: str,
    options: WriteOptions,
    defaults: Mapping[str, str],
) -> Target:
    """Return a table for rows of the schema `data`, with the schema changes that the options allow.

    `before` is what it declares, in the version of the snapshot or a later one.

    Raises SchemaMismatchError that names every column that does not fit, UnsupportedFeatureError, InvalidOptionError,
    and AppendOnlyTableError for an overwrite that the table does not allow.
    """
    check_writable(before, snapshot.location)
    if mode == "replace":
        return _replacing(snapshot, before, data, options, defaults)
    if mode == "overwrite":
        check_removable(before, "The overwrite")
    _check_properties(before, options)
    if mode == "overwrite" and options.overwrite_schema:
        configuration = _replaced(before, data, options)
        if _partial(options) is not None:
            _check_clustering(snapshot, options.cluster_by)
        elif options.cluster_by or snapshot.clustering_columns():
            configuration = evolve(before, configuration.metadata, features=(Feature.CLUSTERING,), keeps_files=False)
            return Target(snapshot.location, configuration, before, _clustering(configuration, options.cluster_by))
    else:
        _check_clustering(snapshot, options.cluster_by)
        _check_partitioning(before, options.partition_by or (), mode)
        configuration = _merged(before, data, mode, options)
    return Target(snapshot.location, configuration, before)


def target_clustering(target: Target, snapshot: Snapshot | None) -> tuple[tuple[str, ...], ...]:
    """Return the physical paths of the clustering columns after the write; `snapshot` is before it."""
    return clustering_paths({} if snapshot is None else snapshot.domains(), target.domains)


def _clustering(configuration: TableConfiguration, names: Sequence[str]) -> tuple[DomainMetadata, ...]:
    """Return the metadata domain for clustering by these columns; empty if there are and were none."""
    if not names and not is_supported(configuration, Feature.CLUSTERING):
        return ()
    return cluster_by(configuration, [parse_column_path(name) for name in names]).domains


def _check_clustering(snapshot: Snapshot, asked: Sequence[str]) -> None:
    present = snapshot.clustering_columns()
    if asked and [name.casefold() for name in asked] != [name.casefold() for name in present]:
        raise InvalidOptionError(
            f"The table is clustered by {_listed(present)}, but clusterBy asks for {_listed(asked)}. Leave clusterBy "
            "out; to change the clustering, use DeltaTable.alter(), or overwrite it with the option overwriteSchema.",
            error_class="DELTA_CLUSTERING_COLUMNS_MISMATCH",
        )


def _replacing(
    snapshot: Snapshot,
    before: TableConfiguration,
    data: StructType,
    options: WriteOptions,
    defaults: Mapping[str, str],
) -> Target:
    """Return a table that keeps only its history. Its new id stops streams of the table before."""
    schema = keep_identities(stored_columns(data), before.schema)
    metadata = replace(
        before.metadata,
        id=str(uuid.uuid4()),
        schema_string=schema_to_json(schema),
        partition_columns=resolve_partitioning(schema, options.partition_by or ()),
        configuration=default_properties({**lasting_properties(before), **options.properties}, defaults),
        name=None,
        description=options.description,
        created_time=int(time.time() * 1000),
    )
    features = (Feature.CLUSTERING,) if options.cluster_by else ()
    configuration = evolve(before, metadata, features=features, keeps_files=False)
    domains: tuple[DomainMetadata, ...] = ()
    if options.cluster_by or snapshot.clustering_columns():
        domains = _clustering(configuration, options.cluster_by)
    return Target(snapshot.location, configuration, before, domains)


def _merged(before: TableConfiguration, data: StructType, mode: str, options: WriteOptions) -> TableConfiguration:
    if not options.merge_schema:
        check_storable(data, before.schema, can_overwrite=mode == "overwrite")
        return before
    widen = is_active(before, Feature.TYPE_WIDENING)
    schema = merge_schemas(before.schema, stored_columns(data), widen=widen)
    check_storable(data, schema, can_overwrite=mode == "overwrite", merging=True)
    if schema == before.schema:
        return before
    return _changed(before, schema, before.partition_columns, keeps_files=True)


def _replaced(before: TableConfiguration, data: StructType, options: WriteOptions) -> TableConfiguration:
    schema = stored_columns(data)
    partitioning = resolve_partitioning(schema, options.partition_by or ())
    if is_same_shape(schema, before.schema) and partitioning == before.partition_columns:
        return before
    asked = _partial(options)
    if asked is not None:
        raise InvalidOptionError(
            f"overwriteSchema would change the schema or the partitioning of the table, but {asked} keeps some of its "
            "files, which have the old ones. Use mergeSchema to add columns, or overwrite the whole table.",
            error_class="DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        )
    return _changed(before, keep_identities(schema, before.schema), partitioning, keeps_files=False)


def _partial(options: WriteOptions) -> str | None:
    """Return the option by which an overwrite keeps some of the files; None if it replaces all."""
    partial = {
        "replaceWhere": options.replace_where is not None,
        "replaceUsing": bool(options.replace_using),
        "replaceOn": options.replace_on is not None,
        "partitionOverwriteMode=dynamic": bool(options.dynamic_partitions),
    }
    return next((name for name, given in partial.items() if given), None)


def _changed(
    before: TableConfiguration, schema: StructType, partitioning: Sequence[str], *, keeps_files: bool
) -> TableConfiguration:
    """Return the configuration with another schema and partitioning."""
    metadata = replace(before.metadata, schema_string=schema_to_json(schema), partition_columns=tuple(partitioning))
    return evolve(before, metadata, keeps_files=keeps_files)


def _check_partitioning(configuration: TableConfiguration, asked: Sequence[str], mode: str) -> None:
    folded = [name.casefold() for name in asked]
    if not asked or folded == [name.casefold() for name in configuration.partition_columns]:
        return
    advice = (
        "to change the partitioning, set the option overwriteSchema to true."
        if mode == "overwrite"
        else "to change the partitioning, overwrite the table with the option overwriteSchema."
    )
    raise InvalidOptionError(
        f"The table is partitioned by {_listed(configuration.partition_columns)}, but partitionBy asks for "
        f"{_listed(asked)}. Leave partitionBy out; {advice}",
        error_class="DELTA_PARTITION_COLUMNS_MISMATCH",
    )


def _check_properties(configuration: TableConfiguration, options: WriteOptions) -> None:
    for name, value in options.properties.items():
        if configuration.properties.get(name) != value:
            raise InvalidOptionError(
                f"The option '{name}' is a table property: it applies only when a table is created, and this table "
                "exists.",
                option=name,
            )


def resolve_columns(schema: StructType, names: Sequence[str], option: str) -> tuple[str, ...]:
    """Return top-level columns as the schema spells them. Raises InvalidOperationError for an unknown one."""
    found = []
    for name in names:
        column = schema.find(name)
        if column is None:
            raise InvalidOperationError(
                f"The option '{option}' names '{name}', which is not one of the columns {', '.join(schema.names)}.",
                error_class="DELTA_COLUMN_NOT_FOUND",
                column=name,
            )
        found.append(column.name)
    return tuple(dict.fromkeys(found))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "no column"
