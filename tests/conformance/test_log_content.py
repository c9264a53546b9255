"""Rows of areas PRO, CLU and IC2 that need a log: unknown content is ignored, and both forms of an example are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyspark_delta.schema.json import parse_schema, schema_to_json
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot

FIRST, SECOND = "col-daadafd7-7c20-4697-98f8-bff70199b1f9", "col-5abe0e80-cf57-47ac-9ffc-a861a3d1077e"


def column(name: str, number: int, physical: str) -> dict[str, Any]:
    """A mapped column of type long."""
    metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": "long", "nullable": True, "metadata": metadata}


def write_commit(table: Path, version: int, *actions: dict[str, Any]) -> None:
    """One commit file, an action per line."""
    log = table / "_delta_log"
    log.mkdir(exist_ok=True)
    (log / f"{version:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))


def definition(**extra: Any) -> list[dict[str, Any]]:
    """Protocol and metadata of a table with two columns; `extra` goes into both."""
    features = ["columnMapping", "domainMetadata", "clustering"]
    schema = {"type": "struct", "fields": [column("a", 1, FIRST), column("b", 2, SECOND)]}
    protocol = {"minReaderVersion": 2, "minWriterVersion": 7, "writerFeatures": features, **extra}
    metadata = {
        "id": "11111111-2222-3333-4444-555555555555",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": [],
        "configuration": {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"},
        **extra,
    }
    return [{"protocol": protocol}, {"metaData": metadata}]


def domain(name: str, configuration: str) -> dict[str, Any]:
    """A domainMetadata action."""
    return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": False}}


def add(path: str, **extra: Any) -> dict[str, Any]:
    """An add action of one byte."""
    fixed = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    return {"add": {**fixed, **extra}}


def test_c186_unknown_actions_fields_and_domains_are_ignored(tmp_path: Path) -> None:
    write_commit(
        tmp_path,
        0,
        *definition(futureField={"deep": [1, None]}),
        {"futureAction": {"path": "x", "anything": True}},
        add("one.parquet", futureField="x", anotherOne={"y": 1}),
        domain("org.example.unknown", "not even JSON"),
    )
    write_commit(tmp_path, 1, {"futureAction": None}, add("two.parquet"))
    snapshot = Snapshot.load(str(tmp_path))
    assert snapshot.version == 1
    assert sorted(snapshot.files(columns=("path",)).column("path").to_pylist()) == ["one.parquet", "two.parquet"]
    assert snapshot.domains()["org.example.unknown"].configuration == "not even JSON"


def test_c186_unknown_members_beside_an_action_are_ignored(tmp_path: Path) -> None:
    future = {"futureAction": ["a", "1"]}
    start, added = definition(), add("one.parquet")
    write_commit(tmp_path, 0, *[{**future, **action} for action in start], {**future, **added})
    write_commit(tmp_path, 1, {**add("two.parquet"), **future}, {**domain("org.example.known", "{}"), **future})
    snapshot = Snapshot.load(str(tmp_path))
    assert sorted(snapshot.files(columns=("path",)).column("path").to_pylist()) == ["one.parquet", "two.parquet"]
    assert snapshot.domains()["org.example.known"].configuration == "{}"


@pytest.mark.parametrize("columns", [[FIRST, SECOND], [[FIRST], [SECOND]]], ids=["names", "paths"])
def test_c350_both_forms_of_clustering_columns_are_read(tmp_path: Path, columns: list[Any]) -> None:
    clustering = domain("delta.clustering", json.dumps({"clusteringColumns": columns}))
    write_commit(tmp_path, 0, *definition(), clustering)
    assert Snapshot.load(str(tmp_path)).clustering_columns() == ["a", "b"]


def test_c294_nested_ids_of_the_example_are_kept() -> None:
    array = {"type": "array", "elementType": "integer", "containsNull": True}
    nested_array = {"type": "array", "elementType": array, "containsNull": True}
    array_map = {"type": "map", "keyType": "integer", "valueType": array, "valueContainsNull": True}
    for key in ("parquet.field.nested.ids", "delta.columnMapping.nested.ids"):
        inner = _field("subcol1", array, {key: {"subcol1.element": 107}})
        struct_map = {**array_map, "valueType": {"type": "struct", "fields": [inner]}}
        fields = [
            _field("col1", nested_array, {key: {"col1.element": 100, "col1.element.element": 101}}),
            _field("col2", array_map, {key: {"col2.key": 102, "col2.value": 103, "col2.value.element": 104}}),
            _field("col3", struct_map, {key: {"col3.key": 105, "col3.value": 106}}),
        ]
        schema = {"type": "struct", "fields": fields}
        parsed = parse_schema(json.dumps(schema))
        assert parsed.fields[0].metadata[key]["col1.element.element"] == 101
        value = parsed.fields[2].type.value_type  # type: ignore[union-attr]
        assert isinstance(value, StructType)
        assert value.fields[0].metadata[key] == {"subcol1.element": 107}
        assert json.loads(schema_to_json(parsed)) == schema


def _field(name: str, data_type: Any, metadata: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "type": data_type, "nullable": True, "metadata": metadata}
