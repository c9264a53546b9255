"""The columns of the checkpoints of a table, a struct for each kind of action (C044-C062).

Optional fields always exist, null if they have no value, so that readers find every column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from pyspark_delta.expressions.tree import Column
from pyspark_delta.features import Feature, is_supported
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import WRITE_STATS_AS_JSON, WRITE_STATS_AS_STRUCT
from pyspark_delta.protocol.statistics import physical_partition_schema, table_stats_columns
from pyspark_delta.schema.arrow import field_to_arrow, to_arrow
from pyspark_delta.schema.types import BOOLEAN, LONG, VOID, StructType

_STRINGS = pa.map_(pa.string(), pa.string())
DELETION_VECTOR_TYPE = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_FILE: tuple[tuple[str, pa.DataType], ...] = (
    ("path", pa.string()),
    ("partitionValues", _STRINGS),
    ("size", pa.int64()),
    ("modificationTime", pa.int64()),
    ("dataChange", pa.bool_()),
    ("tags", _STRINGS),
    ("deletionVector", DELETION_VECTOR_TYPE),
    ("baseRowId", pa.int64()),
    ("defaultRowCommitVersion", pa.int64()),
    ("clusteringProvider", pa.string()),
)
REMOVE_TYPE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", _STRINGS),
        ("size", pa.int64()),
        ("deletionVector", DELETION_VECTOR_TYPE),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
    ]
)
_SMALL = {
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _STRINGS)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", _STRINGS),
            ("createdTime", pa.int64()),
        ]
    ),
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
    "domainMetadata": pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
}
_V2_ONLY = {
    "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", _STRINGS)]),
    "sidecar": pa.struct(
        [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", _STRINGS)]
    ),
}


@dataclass(frozen=True)
class CheckpointLayout:
    """The forms of statistics and partition values in a table's checkpoints.

    `stats_leaves` are the leaves of `stats_parsed`, none if the table does not enable it. `partition_schema` has the
    fields of `partitionValues_parsed`, by physical name.
    """

    stats_text: bool
    stats_leaves: tuple[Column, ...]
    partition_schema: StructType

    @classmethod
    def of(cls, configuration: TableConfiguration, clustering: Sequence[tuple[str, ...]] = ()) -> CheckpointLayout:
        """Return the layout for properties, schema and clustering columns (by physical path) of a table."""
        properties = configuration.properties
        leaves: tuple[Column, ...] = ()
        partitions = StructType()
        if WRITE_STATS_AS_STRUCT.of(properties):
            leaves = tuple(_leaves(configuration, clustering))
            partitions = StructType(tuple(f for f in physical_partition_schema(configuration) if f.type != VOID))
        return cls(WRITE_STATS_AS_JSON.of(properties), leaves, partitions)

    @cached_property
    def stats_type(self) -> pa.StructType | None:
        """The type of `stats_parsed`, None if it is not written."""
        return _nested([(leaf.path, to_arrow(leaf.type)) for leaf in self.stats_leaves]) if self.stats_leaves else None

    @cached_property
    def partition_type(self) -> pa.StructType | None:
        """The type of `partitionValues_parsed`, None if it is not written."""
        fields = [field_to_arrow(f, all_nullable=True) for f in self.partition_schema]
        return pa.struct(fields) if fields else None

    @cached_property
    def add_type(self) -> pa.StructType:
        """The type of the column `add`."""
        fields = list(_FILE)
        if self.stats_text:
            fields.append(("stats", pa.string()))
        if self.stats_type is not None:
            fields.append(("stats_parsed", self.stats_type))
        if self.partition_type is not None:
            fields.append(("partitionValues_parsed", self.partition_type))
        return pa.struct(fields)

    def schema(self) -> pa.Schema:
        """The schema of a checkpoint by specification 1."""
        return pa.schema([("add", self.add_type), ("remove", REMOVE_TYPE), *_SMALL.items()])

    def top_level_schema(self) -> pa.Schema:
        """The schema of a top level by specification 2. Its file actions are all in sidecars (C067, C068), but
        delta-spark looks for their columns here too.
        """
        return pa.schema([*self.schema(), *_V2_ONLY.items()])

    def sidecar_schema(self) -> pa.Schema:
        """The schema of a sidecar (C070)."""
        return pa.schema([("add", self.add_type), ("remove", REMOVE_TYPE)])


def _leaves(configuration: TableConfiguration, clustering: Sequence[tuple[str, ...]]) -> Iterable[Column]:
    columns = table_stats_columns(configuration, clustering)
    yield Column(("numRecords",), LONG)
    for bound in ("minValues", "maxValues"):
        yield from (Column((bound, *c.path), c.type) for c in columns if c.has_bounds)
    yield from (Column(("nullCount", *c.path), LONG) for c in columns)
    if is_supported(configuration, Feature.DELETION_VECTORS):
        yield Column(("tightBounds",), BOOLEAN)


def _nested(leaves: list[tuple[tuple[str, ...], pa.DataType]]) -> pa.StructType:
    children: dict[str, list[tuple[tuple[str, ...], pa.DataType]]] = {}
    types: dict[str, pa.DataType] = {}
    for path, leaf_type in leaves:
        if len(path) == 1:
            types[path[0]] = leaf_type
        else:
            types.setdefault(path[0], None)
            children.setdefault(path[0], []).append((path[1:], leaf_type))
    return pa.struct([(name, _nested(children[name]) if name in children else t) for name, t in types.items()])
