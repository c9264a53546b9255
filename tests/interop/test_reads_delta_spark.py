"""Tables made by delta-spark read here as they read there: every version kept, all features that it offers."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as DeltaLake
from pyspark.sql import SparkSession
from tests.golden.catalogue import canonical_rows
from tests.interop.conftest import DeltaSpark, DeltaSparkServer
from tests.interop.content import content
from tests.interop.kept_tables import MAKER, MAKER_OF_OFFSETS, OFFSETS, origin, unpack

from pyspark_delta.data.reader import read_plan
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.table import Table

NAMES = [
    node.name
    for node in ast.parse(MAKER.read_text()).body
    if isinstance(node, ast.FunctionDef)
    and any(isinstance(d, ast.Name) and d.id == "table" for d in node.decorator_list)
]
CHANGE_FEEDS = ("change_feed", "change_feed_with_deletion_vectors")


def test_the_offsets_that_are_kept_are_of_this_program_and_this_delta_spark(delta_spark_peer: DeltaSpark) -> None:
    made_of = json.loads(OFFSETS.read_text())["made_of"]
    assert made_of == origin(delta_spark_peer.jars, MAKER_OF_OFFSETS), "run `make peer-tables`, and commit what it made"


def test_the_tables_that_are_kept_are_of_this_program_and_this_delta_spark(
    delta_spark_peer: DeltaSpark, delta_spark_server: DeltaSparkServer, tmp_path: Path
) -> None:
    kept, new, name = tmp_path / "kept", tmp_path / "new", "append_only"
    assert unpack(kept) == origin(delta_spark_peer.jars), "run `make peer-tables`, and commit what it made"
    delta_spark_server.ask("tables", out=str(new), only=[name])
    [first, last] = json.loads((kept / f"{name}.json").read_text())["versions"]
    for version in (first, last):
        assert content(Table.open(kept / name, version=version).scan().to_arrow()) == content(
            Table.open(new / name, version=version).scan().to_arrow()
        )
    assert Table.open(kept / name).snapshot.protocol == Table.open(new / name).snapshot.protocol


@pytest.mark.parametrize("name", NAMES)
def test_content_equals_what_delta_spark_reads(delta_spark_tables: Path, name: str) -> None:
    description = json.loads((delta_spark_tables / f"{name}.json").read_text())
    assert "error" not in description, description["error"]
    for version in description["versions"]:
        with pa.memory_map(str(delta_spark_tables / f"{name}.v{version}.arrow")) as source:
            expected = pa.ipc.open_file(source).read_all()
        found = _read(delta_spark_tables / name, version, row_ids=description["row_ids"])
        if name.startswith("variant"):
            assert sorted(_variants_as_json(found), key=str) == sorted(_parsed_json(expected), key=str)
        else:
            assert canonical_rows(found) == canonical_rows(expected)


@pytest.mark.parametrize("name", CHANGE_FEEDS)
def test_c163_c173_changes_equal_what_delta_spark_reads(
    delta_spark_tables: Path, our_spark: SparkSession, name: str
) -> None:
    with pa.memory_map(str(delta_spark_tables / f"{name}.changes.arrow")) as source:
        expected = content(pa.ipc.open_file(source).read_all())
    path = str(delta_spark_tables / name)
    assert content(Table.open(path).changes(0).to_arrow()) == expected
    reader = our_spark.read.option("readChangeFeed", "true").option("startingVersion", 0)
    assert content(reader.format("delta").load(path).toArrow()) == expected


def test_changes_equal_what_deltalake_reads(delta_spark_tables: Path) -> None:
    path, before_new_columns = delta_spark_tables / "change_feed", 4  # deltalake cannot read on, nor mapped columns
    theirs = pa.table(DeltaLake(path).load_cdf(starting_version=0, ending_version=before_new_columns))
    ours = Table.open(path).changes(0, ending_version=before_new_columns).to_arrow()
    names = [name for name in ours.schema.names if name != "_commit_timestamp"]
    assert content(theirs.select(names)) == content(ours.select(names))


def _read(path: Path, version: int, *, row_ids: bool) -> pa.Table:
    table = Table.open(path, version=version)
    if not row_ids:
        return table.scan().to_arrow()
    return (
        read_plan(plan_scan(table.snapshot, row_ids=True))
        .read_all()
        .rename_columns([*table.schema.names, "row_id", "row_commit_version"])
    )


def _variants_as_json(rows: pa.Table) -> list[dict[str, Any]]:
    return [{name: _plain(value) for name, value in json.loads(row).items()} for row in canonical_rows(rows)]


def _plain(value: Any) -> Any:
    """A decoded variant as the JSON value that `to_json` gives; a variant inside a struct stands for the struct."""
    match value:
        case {"w": inner}:
            return _plain(inner)
        case {"$variant": inner}:
            return _plain(inner)
        case {"$dec": text}:
            return float(text)
        case dict():
            return {key: _plain(member) for key, member in value.items()}
        case list():
            return [_plain(member) for member in value]
        case _:
            return value


def _parsed_json(rows: pa.Table) -> list[dict[str, Any]]:
    return [
        {name: json.loads(value) if isinstance(value, str) else value for name, value in row.items()}
        for row in rows.to_pylist()
    ]
