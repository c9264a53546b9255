"""User-defined types: stored as other types, annotated in the schema, and one column to everything (RFC)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.hand_made import HandMade, add, field, metadata, struct_of

from pyspark_delta.errors import CorruptLogError, InvalidOperationError
from pyspark_delta.protocol.statistics import table_stats_columns
from pyspark_delta.schema.column_ids import assign_ids, random_name
from pyspark_delta.schema.column_mapping import physical_schema
from pyspark_delta.schema.json import parse_schema, schema_to_json
from pyspark_delta.schema.merge import merge_schemas
from pyspark_delta.schema.types import INTEGER, LONG, StructField, StructType
from pyspark_delta.schema.widening import is_widening
from pyspark_delta.stats.indexed_columns import stats_columns
from pyspark_delta.table import Table
from pyspark_delta.transaction.column_rules import resolve_partitioning
from pyspark_delta.transaction.new_table import stored_columns

# As delta-spark 4.4 writes Spark ML's vectors.
VECTOR: dict[str, Any] = {
    "type": "udt",
    "class": "org.apache.spark.ml.linalg.VectorUDT",
    "pyClass": "pyspark.ml.linalg.VectorUDT",
    "sqlType": {
        "type": "struct",
        "fields": [
            {"name": "type", "type": "byte", "nullable": False, "metadata": {}},
            {"name": "size", "type": "integer", "nullable": True, "metadata": {}},
            {
                "name": "indices",
                "type": {"type": "array", "elementType": "integer", "containsNull": False},
                "nullable": True,
                "metadata": {},
            },
            {
                "name": "values",
                "type": {"type": "array", "elementType": "double", "containsNull": False},
                "nullable": True,
                "metadata": {},
            },
        ],
    },
}
COUNT = {"type": "udt", "pyClass": "mine.Count", "serializedClass": None, "sqlType": "integer"}
ARRAY = {"type": "array", "elementType": VECTOR, "containsNull": True}
FIELDS = [
    field("id"),
    field("v", VECTOR),
    field("n", COUNT),
    field("a", ARRAY),
    field("s", struct_of(field("w", VECTOR))),
]
SCHEMA = parse_schema(json.dumps(struct_of(*FIELDS)))
ROW = {"type": 1, "size": None, "indices": None, "values": [1.0, 2.0]}


def test_the_annotation_is_kept_as_it_is() -> None:
    assert json.loads(schema_to_json(SCHEMA)) == struct_of(*FIELDS)
    assert json.loads(schema_to_json(stored_columns(SCHEMA))) == struct_of(*FIELDS)
    assert json.loads(schema_to_json(merge_schemas(SCHEMA, SCHEMA, widen=True))) == struct_of(*FIELDS)
    assert SCHEMA.fields[2].type == INTEGER


def test_nothing_in_it_is_mapped() -> None:
    mapped, largest = assign_ids(SCHEMA, 0, random_name)
    assert largest == 6
    physical = physical_schema(mapped, "id")
    assert [f.type.annotation for f in physical][1] == SCHEMA.fields[1].type.annotation
    assert str(physical.fields[1].type) == str(SCHEMA.fields[1].type)


def test_it_has_counts_of_nulls_and_no_bounds() -> None:
    columns = {".".join(c.path): c for c in stats_columns(SCHEMA, limit=3)}
    assert [(name, column.has_bounds) for name, column in columns.items()] == [("id", True), ("v", False), ("n", False)]
    assert [column.leaf for column in columns.values()] == [0, None, 5]
    assert ".".join(stats_columns(SCHEMA)[-1].path) == "s.w"


def test_its_type_does_not_change_and_no_table_is_partitioned_by_it() -> None:
    count = SCHEMA.fields[2].type
    assert is_widening(INTEGER, LONG)
    assert not is_widening(count, LONG)
    assert merge_schemas(SCHEMA, StructType((StructField("n", LONG),)), widen=True) == SCHEMA
    with pytest.raises(InvalidOperationError, match="'n'"):
        resolve_partitioning(SCHEMA, ["n"])


@pytest.mark.parametrize("wrong", [{"pyClass": "x.Y"}, {"sqlType": "long", "pyClass": 5}], ids=str)
def test_damaged_annotations_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(CorruptLogError, match=r"schema\.v"):
        parse_schema(json.dumps(struct_of(field("v", {"type": "udt", **wrong}))))


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_it_is_read_as_what_it_is_stored_as(tmp_path: Path, mode: str) -> None:
    """Files with field ids have none inside: members are found by name in every mode."""
    table = HandMade(tmp_path / "table")
    ids = {name: number for number, name in enumerate(["id", "v", "n", "a"], 1)}

    def mapped(name: str, data_type: Any = "long") -> Any:
        keys: dict[str, Any] = {"delta.columnMapping.id": ids[name], "delta.columnMapping.physicalName": f"col-{name}"}
        return field(name, data_type, **(keys if mode != "none" else {}))

    vector = pa.struct([("type", pa.int8()), ("size", pa.int32()), ("indices", pa.list_(pa.int32()))])
    vector = pa.struct([*vector, pa.field("values", pa.list_(pa.float64()))])
    types = {"id": pa.int64(), "v": vector, "n": pa.int32(), "a": pa.list_(vector)}
    stored = pa.schema(
        [
            pa.field(n if mode == "none" else f"col-{n}", t, metadata={"PARQUET:field_id": str(ids[n])})
            for n, t in types.items()
        ]
    )
    values = {"id": [1, 2], "v": [ROW, None], "n": [5, None], "a": [[ROW, None], []]}
    rows = pa.Table.from_arrays([pa.array(values[n], t) for n, t in types.items()], schema=stored)
    pq.write_table(rows, table.path / "a.parquet")
    stats = json.dumps({"numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {stored.names[1]: 1}})
    schema = [mapped("id"), mapped("v", VECTOR), mapped("n", COUNT), mapped("a", ARRAY)]
    table.commit(
        0,
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        metadata(*schema, configuration={"delta.columnMapping.mode": mode}),
        add("a.parquet", stats=stats),
    )
    opened = Table.open(table.path)
    assert opened.scan().to_arrow().to_pylist() == rows.rename_columns(list(types)).to_pylist()
    assert opened.scan(columns=["id"], where="v.type = 1").to_arrow().to_pylist() == [{"id": 1}]
    assert opened.scan(columns=["id"], where="v is null").to_arrow().to_pylist() == [{"id": 2}]
    assert "v" in {c.path[0].removeprefix("col-") for c in table_stats_columns(opened.snapshot.configuration)}
