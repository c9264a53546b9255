"""Which files a condition concerns wholly, partly, or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from benchmarks.synthetic_log import ROWS_PER_FILE, SyntheticLog, write_log

from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.log.replay import LogReplay
from pyspark_delta.log.segment import load_segment
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.matches import match_files
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import store_for
from pyspark_delta.storage.counting import CountingStore, Counts
from pyspark_delta.testing.table_builder import TableBuilder, add, metadata, protocol

SCHEMA = {"p": "integer", "x": "long", "s": "string"}


def stats(least: int, greatest: int, nulls: int, text: str) -> str:
    return json.dumps(
        {
            "numRecords": 10,
            "minValues": {"x": least, "s": text},
            "maxValues": {"x": greatest, "s": text},
            "nullCount": {"x": nulls, "s": 0},
        }
    )


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    builder = TableBuilder(tmp_path_factory.mktemp("matches"))
    files = {
        "low": ("1", stats(0, 9, 0, "a")),
        "middle": ("1", stats(5, 15, 0, "b")),
        "high": ("2", stats(10, 19, 0, "c")),
        "nulls": ("2", stats(0, 9, 3, "a")),
        "all_null": ("2", json.dumps({"numRecords": 10, "nullCount": {"x": 10, "s": 10}})),
        "unknown": (None, None),
    }
    actions = [
        add(name, {"p": partition}, **({} if text is None else {"stats": text}))
        for name, (partition, text) in files.items()
    ]
    builder.commit(0, [protocol(), metadata(schema=SCHEMA, partition_columns=["p"]), *actions])
    return Snapshot.load(builder.location)


@pytest.mark.parametrize(
    ("condition", "inside", "partly"),
    [
        ("p = 1", "low middle", ""),
        ("p IS NULL", "unknown", ""),
        ("p <=> NULL OR p > 1", "high nulls all_null unknown", ""),
        ("x < 10", "low", "all_null middle nulls unknown"),
        ("x < 10 OR x IS NULL", "low all_null", "middle nulls unknown"),
        ("x IS NULL", "all_null", "nulls unknown"),
        ("x IS NOT NULL", "low middle high", "nulls unknown"),
        ("NOT (x >= 10)", "low", "all_null middle nulls unknown"),
        ("x <> 12", "low", "all_null middle high nulls unknown"),
        ("x BETWEEN 0 AND 9", "low", "all_null middle nulls unknown"),
        ("x IN (7, NULL)", "", "all_null low middle nulls unknown"),
        ("p = 1 AND x < 10", "low", "middle"),
        ("x < 10 OR true", "low middle high nulls all_null unknown", ""),
        ("x < 10 OR 1 = 1", "low middle high nulls all_null unknown", ""),
        ("p = 1 OR x >= 10", "low middle high", "all_null unknown"),
        ("p = 2 AND x + 1 < 100", "", "all_null high nulls"),
        ("true", "low middle high nulls all_null unknown", ""),
        ("false", "", ""),
        ("x = NULL", "", ""),
        ("x <=> 3", "", "all_null low nulls unknown"),
        ("lower(s) = 'a'", "", "low middle high nulls all_null unknown"),
        ("p = 2 AND lower(s) = 'a'", "", "high nulls all_null"),
    ],
)
def test_files_are_told_apart(snapshot: Snapshot, condition: str, inside: str, partly: str) -> None:
    predicate = parse_predicate(condition, snapshot.schema, on_opaque="keep")
    found = match_files(snapshot, predicate, ("path", "stats"))
    assert sorted(found.fully_matched["path"].to_pylist()) == sorted(inside.split())
    assert sorted(found.partially_matched["path"].to_pylist()) == sorted(partly.split())


@pytest.mark.parametrize(("struct_stats", "json_stats"), [(False, True), (True, True), (True, False)])
def test_what_statistics_decide_is_asked_of_the_candidates(
    tmp_path: Path, struct_stats: bool, json_stats: bool
) -> None:
    write_log(tmp_path, SyntheticLog(3000, commits=1, struct_stats=struct_stats, json_stats=json_stats))
    counts = Counts()
    store = CountingStore(store_for(str(tmp_path)), counts)
    replay = LogReplay(store, load_segment(store, str(tmp_path)))
    snapshot = Snapshot(replay, TableConfiguration(*replay.protocol_and_metadata()), {})
    opened = counts.calls["open_input"]
    first = 2000 * ROWS_PER_FILE
    predicate = parse_predicate(f"id >= {first + 7} AND id < {first + 9 * ROWS_PER_FILE}", snapshot.schema)
    found = match_files(snapshot, predicate, ("path",))
    assert found.fully_matched.column_names == found.partially_matched.column_names == ["path"]
    assert sorted(path.split("-")[3] for path in found.fully_matched["path"].to_pylist()) == [
        f"{number:012d}" for number in range(2001, 2009)
    ]
    assert [path.split("-")[3] for path in found.partially_matched["path"].to_pylist()] == [f"{2000:012d}"]
    if json_stats:
        assert counts.calls["open_input"] == opened + 1


@pytest.mark.parametrize("as_text", ["true", "false"])
@pytest.mark.parametrize(("zone", "inside"), [("UTC", ["f"]), ("America/New_York", [])])
def test_c421_partition_values_without_a_zone_are_of_the_session(
    tmp_path: Path, as_text: str, zone: str, inside: list[str]
) -> None:
    builder = TableBuilder(tmp_path)
    forms = {"delta.checkpoint.writeStatsAsJson": as_text, "delta.checkpoint.writeStatsAsStruct": "true"}
    declared = metadata({"t": "timestamp", "x": "long", "s": "string"}, ["t"], forms)
    file = add("f", {"t": "2024-01-01 00:30:00"}, stats=stats(0, 9, 0, "a"))
    builder.commit(0, [protocol(), declared, file])
    snapshot = Snapshot.load(builder.location)
    snapshot.checkpoint()
    predicate = parse_predicate("t < TIMESTAMP '2024-01-01T03:00:00Z' OR x > 5", snapshot.schema)
    found = match_files(Snapshot.load(builder.location), predicate, ("path",), time_zone=zone)
    assert found.fully_matched["path"].to_pylist() == inside
    assert found.fully_matched.num_rows + found.partially_matched.num_rows == 1


NAN_FILES = {"both": ("NaN", "NaN"), "least": ("NaN", 9.0), "greatest": (7.0, "NaN"), "high": (7.0, 9.0)}
_X = pa.struct([("x", pa.float64())])
_PARSED = pa.struct(
    [("numRecords", pa.int64()), ("minValues", _X), ("maxValues", _X), ("nullCount", pa.struct([("x", pa.int64())]))]
)
STORED: dict[str, dict[str, Any]] = {"text": {}, "typed": {"stats_parsed": _PARSED, "drop": ["stats"]}}


@pytest.mark.parametrize("stored", ["commit", "text", "typed"])
def test_nan_is_no_bound_of_a_file(tmp_path: Path, stored: str) -> None:
    """Of whatever is decided by it, rows get lost: files that are not read, and files that are removed whole."""
    builder = TableBuilder(tmp_path)
    typed = stored == "typed"
    adds = [add(name, **_nan_stats(*bounds, typed=typed)) for name, bounds in NAN_FILES.items()]
    actions = [protocol(), metadata(schema={"x": "double"}), *adds]
    if stored == "commit":
        builder.commit(0, actions)
    else:
        builder.classic_checkpoint(0, actions, **STORED[stored])
    for condition, inside in (("x > 5", ["greatest", "high"]), ("x < 5", [])):
        snapshot = Snapshot.load(builder.location)
        for _ in range(3):  # from the files, then from memory; NaN is greater than 5
            found = match_files(snapshot, parse_predicate(condition, snapshot.schema), ("path", "stats"))
            assert sorted(found.fully_matched["path"].to_pylist()) == inside
            assert sorted(found.partially_matched["path"].to_pylist()) == ["both", "least"]


def _nan_stats(least: float | str, greatest: float | str, *, typed: bool) -> dict[str, Any]:
    bounds = {"minValues": {"x": least}, "maxValues": {"x": greatest}, "nullCount": {"x": 0}}
    if not typed:
        return {"stats": json.dumps({"numRecords": 3, **bounds})}
    return {
        "stats_parsed": {
            "numRecords": 3,
            "minValues": {"x": float(least)},
            "maxValues": {"x": float(greatest)},
            "nullCount": {"x": 0},
        }
    }
