"""`Table.stats`: every statistic of every live file, typed, whatever form the log keeps it in."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from benchmarks.synthetic_log import SyntheticLog, write_log
from deltalake import DeltaTable

from pyspark_delta.log.part_scan import PartScan
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.table import Table
from pyspark_delta.testing.table_builder import TableBuilder, add, metadata, protocol, remove

COLUMNS = ("id", "amount", "price", "ratio", "name", "city", "at", "day")
PEER_NAMES = {"minValues": "min", "maxValues": "max", "nullCount": "null_count"}


@pytest.mark.parametrize("struct_stats", [False, True])
@pytest.mark.parametrize("kind", ["classic", "v2"])
def test_as_deltalake_has_it(tmp_path: Path, kind: str, struct_stats: bool) -> None:
    write_log(tmp_path, SyntheticLog(3000, kind=kind, struct_stats=struct_stats, json_stats=not struct_stats, parts=2))
    ours = Table.open(tmp_path).stats().sort_by("path").flatten()
    theirs = pa.table(DeltaTable(tmp_path).get_add_actions(flatten=True)).sort_by("path")
    assert ours["path"].to_pylist() == theirs["path"].to_pylist()
    assert ours["numRecords"].to_pylist() == theirs["num_records"].to_pylist()
    for statistic, peer_name in PEER_NAMES.items():
        for column in COLUMNS:
            own, peer = ours[f"{statistic}.{column}"], theirs[f"{peer_name}.{column}"]
            assert pc.all(pc.equal(own, peer.cast(own.type))).as_py(), (statistic, column)
            assert own.null_count == peer.null_count


def test_structs_are_read_instead_of_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(tmp_path, SyntheticLog(2000, struct_stats=True, commits=1, adds=5, removes=3))
    read: list[str] = []
    before = PartScan._read

    def reading(self: Any, file: Any, group: int, names: list[str]) -> Any:
        read.extend(names)
        return before(self, file, group, names)

    monkeypatch.setattr(PartScan, "_read", reading)
    assert Table.open(tmp_path).stats()["minValues"].null_count == 0
    assert "add.stats_parsed.maxValues.day" in read
    assert "add.stats" not in read


def test_c407_types_and_names_are_those_of_the_schema(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path)
    fields = [
        field("k", "string", "p-0"),
        field("n", struct(field("t", "timestamp", "p-2"), field("flag", "boolean", "p-3")), "p-1"),
        field("day", "date", "p-4"),
        field("d", "decimal(20,2)", "p-5"),
        field("tags", {"type": "array", "elementType": "string", "containsNull": True}, "p-6"),
    ]
    head = metadata(partition_columns=["k"], configuration={"delta.columnMapping.mode": "name"})
    schema_text = json.dumps({"type": "struct", "fields": fields})
    head = {"metaData": {**head["metaData"], "schemaString": schema_text}}
    stats = {
        "numRecords": 7,
        "minValues": {"p-1": {"p-2": "2024-01-01T10:00:00.000Z"}, "p-4": "2024-02-29", "p-5": "not a number"},
        "maxValues": {"p-1": {"p-2": "2024-01-02T10:00:00.000Z"}},
        "nullCount": {"p-1": {"p-2": 1, "p-3": 2}, "p-4": 3, "p-5": 4, "p-6": 5},
        "tightBounds": False,
    }
    # A decimal beyond the digits of a double must come out exactly.
    text = json.dumps(stats).replace('"not a number"', "123456789012345678.25")
    builder.commit(
        0,
        [
            protocol(2, 5),
            head,
            add("a", {"p-0": "x"}, stats=text),
            add("b", {"p-0": "y"}),
            add("c", {"p-0": "y"}, stats="{}"),
        ],
    )
    found = Table.open(tmp_path).stats().sort_by("path")
    bounds = pa.struct(
        [
            ("n", pa.struct([("t", pa.timestamp("us", "UTC"))])),
            ("day", pa.date32()),
            ("d", pa.decimal128(20, 2)),
        ]
    )
    counts = pa.struct(
        [
            ("n", pa.struct([("t", pa.int64()), ("flag", pa.int64())])),
            ("day", pa.int64()),
            ("d", pa.int64()),
            ("tags", pa.int64()),
        ]
    )
    assert found.schema == pa.schema(
        [
            ("path", pa.string()),
            ("numRecords", pa.int64()),
            ("tightBounds", pa.bool_()),
            ("minValues", bounds),
            ("maxValues", bounds),
            ("nullCount", counts),
        ]
    )
    first, *others = found.to_pylist()
    assert first["minValues"]["n"]["t"] == datetime(2024, 1, 1, 10, tzinfo=UTC)
    assert first["minValues"]["day"] == date(2024, 2, 29)
    assert str(first["minValues"]["d"]) == "123456789012345678.25"
    assert first["nullCount"] == {"n": {"t": 1, "flag": 2}, "day": 3, "d": 4, "tags": 5}
    assert (first["numRecords"], first["tightBounds"]) == (7, False)
    assert [row["numRecords"] for row in others] == [None, None]


def test_an_empty_table_has_the_same_columns(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path)
    builder.commit(0, [protocol(), metadata(), add("a", stats='{"numRecords":1}')])
    full = Table.open(tmp_path).stats()
    builder.commit(1, [remove("a")])
    clear_cache()
    assert Table.open(tmp_path).stats() == full.schema.empty_table()


def field(name: str, kind: Any, physical: str) -> dict[str, Any]:
    """A field of a schema string, with a physical name."""
    return {
        "name": name,
        "type": kind,
        "nullable": True,
        "metadata": {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": physical},
    }


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}
