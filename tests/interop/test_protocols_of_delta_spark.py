"""Tables that ask for the same get the same protocol, properties and column ids from us as from delta-spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.interop.conftest import DeltaSparkServer

from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.errors import DeltaError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.schema.column_mapping import ID, NESTED_IDS
from pyspark_delta.schema.json import parse_schema, schema_to_json
from pyspark_delta.schema.traversal import fields_in
from pyspark_delta.schema.types import StructType
from pyspark_delta.transaction.evolution import evolve

PLAIN = "id int, s string"
NESTED = (
    "id int, a array<array<int>>, m map<string, struct<y: array<int>>>, t struct<u: string, v: array<struct<w: int>>>"
)
NTZ = "id int, t struct<x: array<timestamp_ntz>>"

# Columns, then the properties that the table is created with.
CREATED: tuple[tuple[str, dict[str, str]], ...] = (
    (PLAIN, {}),
    (PLAIN, {"delta.appendOnly": "true"}),
    (PLAIN, {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}),
    (PLAIN, {"delta.enableRowTracking": "true"}),
    (PLAIN, {"delta.enableInCommitTimestamps": "true", "delta.checkpointPolicy": "v2"}),
    (PLAIN, {"delta.enableTypeWidening": "true", "delta.constraints.c": "id > 0"}),
    (PLAIN, {"delta.constraints.c": "id > 0"}),
    (PLAIN, {"delta.enableIcebergCompatV1": "true"}),
    (NESTED, {"delta.enableIcebergCompatV2": "true"}),
    (NESTED, {"delta.enableIcebergCompatV3": "true"}),
    (NESTED, {"delta.columnMapping.mode": "id"}),
    (NESTED, {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}),
    ("id int not null, g int generated always as (id + 1)", {"delta.columnMapping.mode": "name"}),
    ("id bigint generated always as identity, v variant", {}),
    (NTZ, {"delta.feature.allowColumnDefaults": "supported"}),
    (PLAIN, {"delta.minWriterVersion": "5"}),
    (PLAIN, {"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}),
    (PLAIN, {"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"}),
    (PLAIN, {"delta.minWriterVersion": "4", "delta.feature.deletionVectors": "supported"}),
    (PLAIN, {"delta.ignoreProtocolDefaults": "true", "delta.appendOnly": "true"}),
    (PLAIN, {"delta.feature.variantShredding": "supported", "delta.feature.vacuumProtocolCheck": "enabled"}),
    (PLAIN, {"delta.feature.icebergCompatV3": "supported", "delta.feature.typeWidening-preview": "supported"}),
    (
        PLAIN,
        {"delta.enableMaterializePartitionColumnsFeature": "true", "delta.feature.checkpointProtection": "supported"},
    ),
)
# Properties that a table is created with, and those that it is given one after the other.
CHANGED: tuple[tuple[dict[str, str], ...], ...] = (
    ({}, {"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}, {"delta.minWriterVersion": "1"}),
    ({}, {"delta.minWriterVersion": "4"}, {"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"}),
    (
        {},
        {"delta.minWriterVersion": "6"},
        {"delta.enableDeletionVectors": "true"},
        {"delta.enableDeletionVectors": "false"},
    ),
    ({"delta.enableDeletionVectors": "true"}, {"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}),
    ({}, {"delta.columnMapping.mode": "name"}, {"delta.enableChangeDataFeed": "true"}),
    ({"delta.columnMapping.mode": "name"}, {"delta.enableIcebergCompatV1": "true"}),
)
# What delta-spark refuses, so do we.
REFUSED: tuple[tuple[str, dict[str, str]], ...] = (
    (PLAIN, {"delta.enableIcebergCompatV2": "true", "delta.enableIcebergCompatV1": "true"}),
    (PLAIN, {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "none"}),
    (PLAIN, {"delta.enableIcebergCompatV2": "true", "delta.enableDeletionVectors": "true"}),
    ("m map<int, int>", {"delta.enableIcebergCompatV1": "true"}),
    ("id int, v variant", {"delta.enableIcebergCompatV2": "true"}),
    ("id int, _change_type string", {"delta.enableChangeDataFeed": "true"}),
    ("id int, `b c` string", {}),
    (PLAIN, {"delta.minWriterVersion": "8"}),
    (PLAIN, {"delta.feature.nonsense": "supported"}),
    (PLAIN, {"delta.feature.deletionVectors": "false"}),
    (PLAIN, {"delta.logRetentionDuration": "interval 1 hour"}),
)
_RANDOM = ("delta.rowTracking.materializedRowIdColumnName", "delta.rowTracking.materializedRowCommitVersionColumnName")
# Kept by delta-spark for its converter.
_ITS_OWN = "delta.universalFormat.iceberg.atomicConversion.supported"


def text_of(properties: dict[str, str]) -> str:
    """The properties as SQL."""
    return ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())


def create(path: Path, columns: str, properties: dict[str, str]) -> str:
    """The statement that creates the table."""
    clause = f" TBLPROPERTIES ({text_of(properties)})" if properties else ""
    return f"CREATE TABLE delta.`{path}` ({columns}) USING delta{clause}"


def state(path: Path) -> TableConfiguration:
    """The newest protocol and metadata among the commits."""
    found: dict[str, Any] = {}
    for commit in sorted((path / "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            found.update(json.loads(line))
    listed, meta = found["protocol"], found["metaData"]
    protocol = Protocol(
        min_reader_version=listed["minReaderVersion"],
        min_writer_version=listed["minWriterVersion"],
        reader_features=frozenset(listed["readerFeatures"]) if "readerFeatures" in listed else None,
        writer_features=frozenset(listed["writerFeatures"]) if "writerFeatures" in listed else None,
    )
    metadata = Metadata(id=meta["id"], schema_string=meta["schemaString"], configuration=meta["configuration"])
    return TableConfiguration(protocol, metadata)


def comparable(table: TableConfiguration) -> dict[str, Any]:
    """What both must agree in: random names are left out."""
    properties = {k: v for k, v in table.properties.items() if k != _ITS_OWN}
    nested = {f.name: sorted((f.metadata.get(NESTED_IDS) or {}).values()) for f in fields_in(table.schema)}
    return {
        "protocol": table.protocol,
        "properties": {k: "random" if k in _RANDOM else v for k, v in properties.items()},
        "ids": {f.name: f.metadata.get(ID) for f in fields_in(table.schema)},
        "nested ids": nested,
    }


def declared(table: TableConfiguration) -> StructType:
    """The schema as the user gave it: without ids and names of columns."""

    def strip(text: Any) -> Any:
        if isinstance(text, dict):
            return {
                k: ({n: m for n, m in v.items() if "columnMapping" not in n} if k == "metadata" else strip(v))
                for k, v in text.items()
            }
        return [strip(member) for member in text] if isinstance(text, list) else text

    return parse_schema(json.dumps(strip(json.loads(table.metadata.schema_string))))


def ours(
    schema: StructType, properties: dict[str, str], before: TableConfiguration | None = None
) -> TableConfiguration:
    """The same table made, or changed, by us."""
    if before is not None:
        kept = {**before.properties, **properties}
        schema, properties = before.schema, kept
    metadata = Metadata(id="1", schema_string=schema_to_json(schema), configuration=properties)
    return evolve(before, metadata)


def test_new_tables_are_declared_as_by_delta_spark(delta_spark_server: DeltaSparkServer, tmp_path: Path) -> None:
    paths = [tmp_path / f"t{number}" for number in range(len(CREATED))]
    delta_spark_server.sql(*(create(path, *asked) for path, asked in zip(paths, CREATED, strict=True)))
    for path, (_, properties) in zip(paths, CREATED, strict=True):
        theirs = state(path)
        assert comparable(ours(declared(theirs), properties)) == comparable(theirs), properties


def test_tables_move_up_as_by_delta_spark(delta_spark_server: DeltaSparkServer, tmp_path: Path) -> None:
    for number, (first, *steps) in enumerate(CHANGED):
        path = tmp_path / f"t{number}"
        delta_spark_server.sql(create(path, PLAIN, first))
        table = ours(declared(state(path)), first)
        for step in steps:
            delta_spark_server.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({text_of(step)})")
            table = ours(StructType(), step, table)
            assert comparable(table) == comparable(state(path)), (first, step)


@pytest.mark.parametrize(("columns", "properties"), REFUSED, ids=str)
def test_what_delta_spark_refuses_we_refuse(
    delta_spark_server: DeltaSparkServer, tmp_path: Path, columns: str, properties: dict[str, str]
) -> None:
    with pytest.raises(AssertionError, match="delta-spark: "):
        delta_spark_server.sql(create(tmp_path / "t", columns, properties))
    with pytest.raises(DeltaError):
        ours(simple_schema(columns), properties)


def simple_schema(columns: str) -> StructType:
    """The schema of a list of plain columns."""
    types = {"int": "integer", "string": "string", "variant": "variant"}
    map_type = {"type": "map", "keyType": "integer", "valueType": "integer", "valueContainsNull": True}
    fields = []
    if columns.startswith("m map"):
        fields.append({"name": "m", "type": map_type})
    else:
        for column in columns.split(", "):
            name, _, data_type = column.rpartition(" ")
            fields.append({"name": name.strip("`"), "type": types[data_type]})
    return parse_schema(json.dumps({"type": "struct", "fields": fields}))
