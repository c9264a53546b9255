"""A small table for every feature that is written, and which peers read it: the source of docs/interoperability.md.

The tables are made without Spark. What delta-spark has made with the same feature is named beside it
(`delta_spark_tables.py`): rows are appended to that, and delta-spark reads it again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyspark_delta.data.parts import write_files
from pyspark_delta.data.writer import written_files
from pyspark_delta.ddl.change import commit_change
from pyspark_delta.ddl.column_changes import rename
from pyspark_delta.ddl.create import CreateMode, TableDefinition, create_table
from pyspark_delta.ddl.types import change_type
from pyspark_delta.deletion_vectors.bitmap import of_indexes
from pyspark_delta.deletion_vectors.files import write_deletion_vectors
from pyspark_delta.schema.arrow import schema_to_arrow
from pyspark_delta.schema.json import parse_type
from pyspark_delta.schema.types import LONG, StructField, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.transaction import REMOVED_COLUMNS, Transaction
from pyspark_delta.transaction.write_plan import FileOptions, write_context

PEERS = ("delta-spark", "deltalake", "polars")
READS, REFUSES = "reads", "refuses"
DELETED = 0  # the id of rows that the table with deletion vectors has no more

Rows = Mapping[str, list[Any]]
PLAIN = {"id": "long", "v": "string"}
NESTED = {
    "id": "long",
    "a text": "string",
    "s": {
        "type": "struct",
        "fields": [
            {"name": "x y", "type": "long", "nullable": True, "metadata": {}},
            {
                "name": "deep",
                "type": {"type": "array", "elementType": "integer", "containsNull": True},
                "nullable": True,
                "metadata": {},
            },
        ],
    },
    "m": {
        "type": "map",
        "keyType": "string",
        "valueType": {"type": "array", "elementType": "long", "containsNull": True},
        "valueContainsNull": True,
    },
    "p": "integer",
}
SIMPLE_ROWS = ({"id": [1, 2, 3], "v": ["a", None, "c"]}, {"id": [4, 5], "v": ["d", "e"]})
NESTED_ROWS = (
    {
        "id": [1, 2, 3],
        "a text": ["a", None, "c"],
        "s": [{"x y": 1, "deep": [1, None]}, {"x y": None, "deep": []}, None],
        "m": [[("k", [1, None])], [], None],
        "p": [0, 1, None],
    },
    {"id": [4], "a text": ["d"], "s": [{"x y": 4, "deep": [4]}], "m": [[("l", None)]], "p": [1]},
)
_NOON, _OLD = datetime(2024, 1, 31, 12, 34, 56, 123456), datetime(1969, 12, 31, 23, 59, 59)
# The variant 1, an 8-bit integer: its dictionary of names is empty.
_VARIANT = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}
# The same as a 64-bit integer, which is what it is read as where numbers are shredded.
_LONG_VARIANT = {"metadata": b"\x01\x00\x00", "value": b"\x18\x01" + bytes(7)}


def nothing(path: Path) -> None:
    """Leave the table as it is."""


@dataclass(frozen=True, kw_only=True)
class FeatureTable:
    """A table that a feature is active in, two appends and what is done to it between and after them.

    `columns` are the types by name as in `schemaString`, `field_metadata` goes with them, `required` are not null.
    `refused_by` are the peers that say they cannot read it. `theirs` is a table of delta-spark with the feature, empty
    where delta-spark does not know it. `as_text` are columns that delta-spark hands over as text by an expression.
    """

    columns: Mapping[str, Any] = field(default_factory=lambda: PLAIN)
    properties: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    field_metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    rows: tuple[Rows, Rows] = SIMPLE_ROWS
    between: Callable[[Path], None] = nothing
    after: Callable[[Path], None] = nothing
    as_text: Mapping[str, str] = field(default_factory=dict)
    refused_by: tuple[str, ...] = ()
    theirs: str = ""

    def expected(self, peer: str) -> str:
        """What a peer does with the table."""
        return REFUSES if peer in self.refused_by else READS

    def make(self, path: Path) -> None:
        """Write the table."""
        create_table(str(path), self._definition(), CreateMode.CREATE)
        append(path, self.rows[0])
        self.between(path)
        append(path, self.rows[1])
        self.after(path)

    def _definition(self) -> TableDefinition:
        fields = tuple(
            StructField(name, parse_type(kind), name not in self.required, dict(self.field_metadata.get(name, {})))
            for name, kind in self.columns.items()
        )
        return TableDefinition(
            schema=StructType(fields),
            partition_columns=self.partition_by,
            clustering=tuple((name,) for name in self.cluster_by),
            properties=dict(self.properties),
        )


def append(path: Path, rows: Rows) -> None:
    """Append rows that keep the rules of the table, columns in its order: to check them would need Spark."""
    snapshot = Snapshot.load(str(path))
    context = write_context(str(path), snapshot.configuration, FileOptions())
    schema = schema_to_arrow(snapshot.schema)
    columns = [pa.array(values, column.type) for values, column in zip(rows.values(), schema, strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, schema.names)
    files = written_files(list(write_files(context, [batch])))
    with Transaction.on(snapshot) as transaction:
        transaction.add(files.drop_columns(["num_records", "marks"]))


def _checkpoint(path: Path) -> None:
    Snapshot.load(str(path)).checkpoint()


def _rename(path: Path) -> None:
    snapshot = Snapshot.load(str(path))
    commit_change(rename(snapshot.configuration, ("a text",), "renamed"), snapshot)


def _widen(path: Path) -> None:
    snapshot = Snapshot.load(str(path))
    commit_change(change_type(snapshot.configuration, ("n",), LONG), snapshot)


def _set_domain(path: Path) -> None:
    with Transaction.on(Snapshot.load(str(path))) as transaction:
        transaction.set_domain("com.example.owner", '{"name": "someone"}')


def _delete_first(path: Path) -> None:
    """Delete the first row of every file."""
    snapshot = Snapshot.load(str(path))
    files = snapshot.files((*REMOVED_COLUMNS, "modification_time", "stats"))
    vectors = write_deletion_vectors(snapshot.store, str(path), [of_indexes([0])] * files.num_rows)
    described = [
        {
            "storage_type": v.storage_type,
            "path_or_inline_dv": v.path_or_inline_dv,
            "offset": v.offset,
            "size_in_bytes": v.size_in_bytes,
            "cardinality": v.cardinality,
        }
        for v in vectors
    ]
    bounds_are_wide = [json.dumps({**json.loads(text), "tightBounds": False}) for text in files["stats"].to_pylist()]
    columns = {**{name: files[name] for name in files.column_names}, "stats": pa.array(bounds_are_wide)}
    columns["deletion_vector"] = pa.array(described, files.schema.field("deletion_vector").type)
    marked = pa.table(columns)
    transaction = Transaction.on(snapshot)
    transaction.remove(files)
    transaction.add(marked)
    transaction.commit()


_MAPPED = "delta.columnMapping.mode"
_PARTITIONED = {"columns": NESTED, "rows": NESTED_ROWS, "partition_by": ("p",)}
_VARIANTS = {"columns": {"id": "long", "v": "variant"}, "rows": ({"id": [1, 2], "v": [_VARIANT] * 2},) * 2}

FEATURES: dict[str, FeatureTable] = {
    "allowColumnDefaults": FeatureTable(
        field_metadata={"v": {"CURRENT_DEFAULT": "'none'"}},
        properties={"delta.feature.allowColumnDefaults": "supported"},
        theirs="column_defaults",
    ),
    "appendOnly": FeatureTable(properties={"delta.appendOnly": "true"}, theirs="append_only"),
    "changeDataFeed": FeatureTable(properties={"delta.enableChangeDataFeed": "true"}, theirs="writer_features"),
    "checkConstraints": FeatureTable(properties={"delta.constraints.positive": "id > 0"}, theirs="writer_features"),
    "checkpointProtection": FeatureTable(
        properties={
            "delta.feature.checkpointProtection": "supported",
            "delta.requireCheckpointProtectionBeforeVersion": "1",
        },
        after=_checkpoint,
        theirs="dropped_feature",
    ),
    "clustering": FeatureTable(cluster_by=("id",), theirs="clustered"),
    "collations": FeatureTable(
        field_metadata={"v": {"__COLLATIONS": {"v": "icu.UNICODE_CI"}}},
    ),
    "columnMapping": FeatureTable(
        **_PARTITIONED,
        properties={_MAPPED: "name"},
        between=_rename,
        refused_by=("polars",),
        theirs="column_mapping_enabled_later",
    ),
    "columnMapping, by id": FeatureTable(
        **_PARTITIONED, properties={_MAPPED: "id"}, between=_rename, refused_by=("polars",), theirs="column_mapping_id"
    ),
    "deletionVectors": FeatureTable(
        properties={"delta.enableDeletionVectors": "true"},
        rows=({"id": [DELETED, 1, 2], "v": ["x", None, "c"]}, {"id": [DELETED, 5], "v": ["y", "e"]}),
        after=_delete_first,
        theirs="deletion_vectors_partitioned_mapped",
    ),
    "domainMetadata": FeatureTable(
        properties={"delta.feature.domainMetadata": "supported"}, between=_set_domain, theirs="clustered"
    ),
    "generatedColumns": FeatureTable(
        columns={"id": "long", "g": "long"},
        field_metadata={"g": {"delta.generationExpression": "id + 1"}},
        rows=({"id": [1, 2], "g": [2, 3]}, {"id": [4], "g": [5]}),
        theirs="writer_features",
    ),
    "icebergCompatV1": FeatureTable(
        partition_by=("v",),
        properties={"delta.enableIcebergCompatV1": "true"},
        refused_by=("polars",),
        theirs="iceberg_compat_v1",
    ),
    "icebergCompatV2": FeatureTable(
        **_PARTITIONED,
        properties={"delta.enableIcebergCompatV2": "true"},
        refused_by=("polars",),
        theirs="iceberg_compat_v2",
    ),
    "icebergCompatV3": FeatureTable(
        **_PARTITIONED,
        properties={"delta.enableIcebergCompatV3": "true"},
        refused_by=("polars",),
        theirs="iceberg_compat_v3",
    ),
    "icebergWriterCompatV1": FeatureTable(
        properties={"delta.enableIcebergWriterCompatV1": "true"},
        refused_by=("polars",),
    ),
    "icebergWriterCompatV3": FeatureTable(
        properties={"delta.enableIcebergWriterCompatV3": "true"},
        refused_by=("polars",),
    ),
    "identityColumns": FeatureTable(
        field_metadata={
            "id": {
                "delta.identity.start": 1,
                "delta.identity.step": 1,
                "delta.identity.allowExplicitInsert": True,
            }
        },
        theirs="writer_features",
    ),
    "inCommitTimestamp": FeatureTable(
        properties={"delta.enableInCommitTimestamps": "true"}, theirs="in_commit_timestamps_midway"
    ),
    "invariants": FeatureTable(
        required=("id",),
        field_metadata={"id": {"delta.invariants": '{"expression": {"expression": "id > 0"}}'}},
        theirs="old_invariants",
    ),
    "materializePartitionColumns": FeatureTable(
        partition_by=("v",),
        properties={"delta.feature.materializePartitionColumns": "supported"},
        theirs="materialized_partition_columns",
    ),
    "rowTracking": FeatureTable(properties={"delta.enableRowTracking": "true"}, theirs="row_tracking"),
    "timestampNtz": FeatureTable(
        columns={"id": "long", "t": "timestamp_ntz", "p": "timestamp_ntz"},
        partition_by=("p",),
        rows=({"id": [1, 2], "t": [_OLD, None], "p": [_NOON, None]}, {"id": [3], "t": [_NOON], "p": [_OLD]}),
        theirs="every_type",
    ),
    "typeWidening": FeatureTable(
        columns={"id": "long", "n": "integer"},
        properties={"delta.enableTypeWidening": "true"},
        rows=({"id": [1, 2], "n": [7, None]}, {"id": [3], "n": [1 << 40]}),
        between=_widen,
        refused_by=("deltalake", "polars"),
        theirs="type_widening",
    ),
    "v2Checkpoint": FeatureTable(
        properties={"delta.checkpointPolicy": "v2"},
        between=_checkpoint,
        after=_checkpoint,
        refused_by=("polars",),
        theirs="v2_checkpoint_json",
    ),
    "vacuumProtocolCheck": FeatureTable(
        properties={"delta.feature.vacuumProtocolCheck": "supported"},
        refused_by=("deltalake", "polars"),
        theirs="vacuum_protocol_check",
    ),
    "variantShredding": FeatureTable(
        **{**_VARIANTS, "rows": ({"id": [1, 2], "v": [_LONG_VARIANT] * 2},) * 2},
        properties={"delta.enableVariantShredding": "true"},
        as_text={"v": "to_json(v)"},
        refused_by=("deltalake", "polars"),
        theirs="variant_shredded",
    ),
    "variantType": FeatureTable(**_VARIANTS, as_text={"v": "to_json(v)"}, theirs="variant_unshredded"),
}
