"""Streams whose columns change, at any level: what stops them, and the consent with which they go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pytest

from pyspark_delta import StreamSchemaError, Table
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.streaming.offset import Offset
from pyspark_delta.streaming.options import StreamOptions
from pyspark_delta.streaming.planner import StreamPlanner

Change: TypeAlias = Callable[[Table, str], object]

PROPERTIES = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
COLUMNS = {
    "s": "STRUCT<x INT, y INT>",
    "s.t": "STRUCT<t STRUCT<x INT, y INT>>",
    "s.element": "ARRAY<STRUCT<x INT, y INT>>",
    "s.value": "MAP<STRING, STRUCT<x INT, y INT>>",
}
_FIELDS = pa.struct([(name, pa.int32()) for name in "xyz"])
WIDER = {
    "s": _FIELDS,
    "s.t": pa.struct([("t", _FIELDS)]),
    "s.element": pa.list_(_FIELDS),
    "s.value": pa.map_(pa.string(), _FIELDS),
}

RENAME, DROP, TYPE_CHANGE = ("allowSourceColumnRename", "allowSourceColumnDrop", "allowSourceColumnTypeChange")
CHANGES: dict[str, Change] = {
    RENAME: lambda table, inside: table.alter().rename_column(f"{inside}.x", "z"),
    DROP: lambda table, inside: table.alter().drop_columns(f"{inside}.x"),
    TYPE_CHANGE: lambda table, inside: table.alter().change_type(f"{inside}.x", "BIGINT"),
    "": lambda table, inside: table.append(pa.table({"s": pa.array([], WIDER[inside])}), merge_schema=True),
}
INCOMPATIBLE = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
RESTART = "DELTA_SCHEMA_CHANGED_WITH_VERSION"


@pytest.fixture(params=COLUMNS)
def inside(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The path of a struct in the table, whose fields change."""
    inside = str(request.param)
    Table.create(str(tmp_path / "t"), f"s {COLUMNS[inside]}", properties=PROPERTIES)
    return inside


@pytest.mark.parametrize(
    ("kind", "error_class"), [(RENAME, INCOMPATIBLE), (DROP, INCOMPATIBLE), (TYPE_CHANGE, RESTART), ("", RESTART)]
)
def test_a_change_in_a_nested_column_stops_a_stream(tmp_path: Path, inside: str, kind: str, error_class: str) -> None:
    planner = StreamPlanner(Snapshot.load(str(tmp_path / "t")), StreamOptions())
    start = planner.latest(None)
    CHANGES[kind](Table.open(str(tmp_path / "t")), inside)
    with pytest.raises(StreamSchemaError, match=rf"version 1\b.*'{inside}.[xz]'") as caught:
        planner.latest(start)
    assert caught.value.error_class == error_class


@pytest.mark.parametrize("feed", ["false", "true"])
def test_a_skipped_commit_that_changes_the_schema_is_checked(tmp_path: Path, feed: str) -> None:
    location = str(tmp_path / "t")
    Table.create(location, "a INT", properties={**PROPERTIES, "delta.enableChangeDataFeed": "true"})
    options = {"readChangeFeed": feed, "startingVersion": "1", "skipCommitsWhere": "operation = 'ADD COLUMNS'"}
    start = Offset(Snapshot.load(location).metadata.id, 1)
    Table.open(location).alter().add_columns("b INT")
    Table.open(location).append({"a": [1], "b": [2]})
    end = StreamPlanner(Snapshot.load(location), StreamOptions.parse(options)).latest(start)
    assert end == replace(start, version=3)
    Table.open(location).alter().drop_columns("b")
    with pytest.raises(StreamSchemaError, match="column 'b' was added or dropped"):
        StreamPlanner(Snapshot.load(location), StreamOptions.parse(options)).batch(start, end)


@pytest.mark.parametrize("kind", CHANGES)
def test_consent_is_asked_for_what_happened_in_a_nested_column(tmp_path: Path, inside: str, kind: str) -> None:
    location = str(tmp_path / "t")

    def planner() -> StreamPlanner:
        given = {"schemaTrackingLocation": str(tmp_path / "c" / "schemas")}
        return StreamPlanner(Snapshot.load(location), StreamOptions.parse(given))

    planned = planner()
    start = planned.latest(None)
    CHANGES[kind](Table.open(location), inside)
    barrier = planned.latest(start)
    assert isinstance(barrier, Offset)
    with pytest.raises(StreamSchemaError, match="METADATA_EVOLUTION"):
        planned.release(barrier)
    if not kind:
        assert planner().schema == Table.open(location).schema
        return
    with pytest.raises(StreamSchemaError) as caught:
        planner()
    assert caught.value.facts["options"] == [kind]
    shown = {
        RENAME: f"RENAME COLUMN '{inside}.x' to '{inside}.z'.",
        DROP: f"DROP COLUMN '{inside}.x'.",
        TYPE_CHANGE: f"TYPE WIDENING '{inside}.x' from integer to long.",
    }
    assert shown[kind] in str(caught.value)
