"""The table that a write goes to: as the write finds it, and as it leaves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.errors import InvalidOperationError, InvalidOptionError
from pyspark_delta.features.support import check_writable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import ENABLE_TYPE_WIDENING
from pyspark_delta.protocol.state import TableState
from pyspark_delta.schema.column_mapping import mapping_mode
from pyspark_delta.schema.json import schema_to_json
from pyspark_delta.schema.merge import is_same_shape, keep_identities, merge_schemas
from pyspark_delta.schema.store_assignment import check_storable
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.write.options import WriteOptions
from pyspark_delta.transaction.base import state_of
from pyspark_delta.transaction.new_table import check_columns, new_table, nullable_type, resolve_partitioning


@dataclass(frozen=True)
class Target:
    """`snapshot` is None where there is no table yet; `configuration` is what holds once the write is committed."""

    location: str
    configuration: TableConfiguration
    snapshot: Snapshot | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def base(self) -> TableState:
        """What the commit builds on."""
        if self.snapshot is not None:
            return state_of(self.snapshot)
        return TableState(location=self.location, storage_options=dict(self.storage_options))

    @property
    def protocol(self) -> Protocol | None:
        """The protocol, where the write changes it."""
        before = None if self.snapshot is None else self.snapshot.protocol
        return None if self.configuration.protocol == before else self.configuration.protocol

    @property
    def metadata(self) -> Metadata | None:
        """The metadata, where the write changes it."""
        unchanged = self.snapshot is not None and self.snapshot.configuration is self.configuration
        return None if unchanged else self.configuration.metadata


def new_target(location: str, data: StructType, options: WriteOptions, defaults: Mapping[str, str]) -> Target:
    """A table that is not there yet; `defaults` are the properties that new tables begin with."""
    properties = {**defaults, **options.properties}
    configuration = new_table(data, options.partition_by or (), properties)
    return Target(location, configuration, storage_options=dict(options.files.storage_options))


def existing_target(snapshot: Snapshot, data: StructType, mode: str, options: WriteOptions) -> Target:
    """A table that rows of the schema `data` are written to, with the schema changes that the options allow.

    Raises SchemaMismatchError that names every column that does not fit, UnsupportedFeatureError, InvalidOptionError.
    """
    check_writable(snapshot.configuration, snapshot.location)
    _check_properties(snapshot.configuration, options)
    if mode == "overwrite" and options.overwrite_schema:
        configuration = _replaced(snapshot.configuration, data, options)
    else:
        _check_partitioning(snapshot.configuration, options.partition_by or (), mode)
        configuration = _merged(snapshot.configuration, data, mode, options)
    return Target(snapshot.location, configuration, snapshot)


def _merged(before: TableConfiguration, data: StructType, mode: str, options: WriteOptions) -> TableConfiguration:
    if not options.merge_schema:
        check_storable(data, before.schema, can_overwrite=mode == "overwrite")
        return before
    widen = before.supports("typeWidening") and ENABLE_TYPE_WIDENING.of(before.properties)
    schema = merge_schemas(before.schema, _stored(data), widen=widen)
    check_storable(data, schema, can_overwrite=mode == "overwrite", merging=True)
    return before if schema == before.schema else changed(before, schema, before.partition_columns)


def _replaced(before: TableConfiguration, data: StructType, options: WriteOptions) -> TableConfiguration:
    schema = _stored(data)
    partitioning = resolve_partitioning(schema, options.partition_by or ())
    if is_same_shape(schema, before.schema) and partitioning == before.partition_columns:
        return before
    partial = {
        "replaceWhere": options.replace_where is not None,
        "replaceUsing": bool(options.replace_using),
        "replaceOn": options.replace_on is not None,
        "partitionOverwriteMode=dynamic": bool(options.dynamic_partitions),
    }
    asked = next((name for name, given in partial.items() if given), None)
    if asked is not None:
        raise InvalidOptionError(
            f"overwriteSchema would change the schema or the partitioning of the table, but {asked} keeps some of its "
            "files, which have the old ones. Use mergeSchema to add columns, or overwrite the whole table.",
            error_class="DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        )
    return changed(before, keep_identities(schema, before.schema), partitioning)


def _stored(data: StructType) -> StructType:
    stored = nullable_type(data)
    assert isinstance(stored, StructType)
    return stored


def changed(before: TableConfiguration, schema: StructType, partitioning: Sequence[str]) -> TableConfiguration:
    """The configuration with another schema and partitioning."""
    if mapping_mode(before) == "none":
        check_columns(schema)
    metadata = replace(before.metadata, schema_string=schema_to_json(schema), partition_columns=tuple(partitioning))
    return TableConfiguration(before.protocol, metadata, before.location)


def _check_partitioning(configuration: TableConfiguration, asked: Sequence[str], mode: str) -> None:
    folded = [name.casefold() for name in asked]
    if not asked or folded == [name.casefold() for name in configuration.partition_columns]:
        return
    advice = (
        "to partition the table anew, set the option overwriteSchema to true."
        if mode == "overwrite"
        else "to partition the table anew, overwrite it with the option overwriteSchema."
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
                f"The option '{name}' is a table property: it counts when a table is created, and this one exists.",
                option=name,
            )


def resolve_columns(schema: StructType, names: Sequence[str], option: str) -> tuple[str, ...]:
    """Top-level columns as the schema spells them. Raises InvalidOperationError naming one that is not there."""
    found = []
    for name in names:
        column = schema.find(name)
        if column is None:
            raise InvalidOperationError(
                f"The option '{option}' names '{name}', which is not among the columns {', '.join(schema.names)}.",
                error_class="DELTA_COLUMN_NOT_FOUND",
                column=name,
            )
        found.append(column.name)
    return tuple(dict.fromkeys(found))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "no column"
