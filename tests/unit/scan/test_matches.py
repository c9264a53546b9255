"""Which files a condition concerns wholly, partly, or not at all."""

from __future__ import annotations

import json

import pytest

from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.scan.matches import match_files
from pyspark_delta.snapshot import Snapshot
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
    assert sorted(found.inside["path"].to_pylist()) == sorted(inside.split())
    assert sorted(found.partly["path"].to_pylist()) == sorted(partly.split())
