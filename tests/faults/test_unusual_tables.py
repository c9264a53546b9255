"""Tables that no engine at hand writes: unusual types, and several checkpoints of one version."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.hand_made import PLAIN, HandMade, add, features, field, metadata, remove, struct_of

from pyspark_delta.errors import CorruptLogError, InvalidPredicateError, UnsupportedTableError
from pyspark_delta.log.names import UuidCheckpointName
from pyspark_delta.table import Table
from pyspark_delta.testing import table_builder as wire
from pyspark_delta.testing.table_builder import TableBuilder

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


@pytest.fixture
def table(tmp_path: Path) -> HandMade:
    """An empty folder for a table."""
    return HandMade(tmp_path / "table")


def rows(table: HandMade, **scan: Any) -> list[dict[str, Any]]:
    """The rows by id."""
    return Table.open(table.path).scan(**scan).to_arrow().sort_by("id").to_pylist()


def test_interval_columns_and_partitions(table: HandMade) -> None:
    day_time = "interval day to second"
    data = table.data(
        "a.parquet",
        {"id": [1, 2], "d": pa.array([90_061_000_001, None], pa.int64())},
        {"p": "INTERVAL '1 02:03:04.5' DAY TO SECOND"},
    )
    schema = [field("id"), field("d", day_time), field("p", day_time)]
    table.commit(0, PLAIN, metadata(*schema, partition=["p"]), data)
    partition = timedelta(days=1, hours=2, minutes=3, seconds=4, milliseconds=500)
    first = timedelta(days=1, hours=1, minutes=1, seconds=1, microseconds=1)
    assert rows(table) == [{"id": 1, "d": first, "p": partition}, {"id": 2, "d": None, "p": partition}]


def test_year_month_intervals_are_months(table: HandMade) -> None:
    data = table.data("a.parquet", {"id": [1, 2], "m": pa.array([25, None], pa.int32())})
    table.commit(0, PLAIN, metadata(field("id"), field("m", "interval year to month")), data)
    months = Table.open(table.path).scan().to_arrow().sort_by("id")["m"]
    assert [None if m is None else int(getattr(m, "months", m)) for m in months.to_pylist()] == [25, None]


def test_collated_columns_are_read_and_filtered_by_spark_alone(table: HandMade) -> None:
    collation = {"__COLLATIONS": {"name": "icu.UTF8_LCASE"}}
    stats = '{"numRecords":2,"minValues":{"id":1,"name":"A"},"maxValues":{"id":2,"name":"B"},"nullCount":{"name":0}}'
    data = table.data("a.parquet", {"id": [1, 2], "name": ["A", "B"]})
    data["add"]["stats"] = stats
    columns = (field("id"), {**field("name", "string"), "metadata": collation})
    table.commit(0, features("collations", "domainMetadata", reader=[]), metadata(*columns), data)
    assert [row["name"] for row in rows(table)] == ["A", "B"]
    with pytest.raises(InvalidPredicateError, match="collation"):  # 'a' may equal 'A', which Spark alone knows
        Table.open(table.path).scan(where="name = 'a'")
    assert [row["id"] for row in rows(table, where="id = 2")] == [2]


@pytest.mark.parametrize("data_type", ["geometry(OGC:CRS84)", "geography(OGC:CRS84, spherical)", "timestamp_nanos"])
def test_types_beyond_the_specification_are_refused_by_name(table: HandMade, data_type: str) -> None:
    table.commit(0, PLAIN, metadata(field("id"), field("shape", data_type)), add("a"))
    with pytest.raises(UnsupportedTableError) as caught:
        Table.open(table.path).scan()
    assert data_type in caught.value.message
    assert str(table.path) in caught.value.message


def test_void_inside_of_structs_is_null(table: HandMade) -> None:
    inner = struct_of(field("a", "integer"), field("nothing", "void"))
    schema = [
        field("id"),
        field("none", "void"),
        field("s", inner),
        field("l", {"type": "array", "elementType": inner, "containsNull": True}),
    ]
    stored = pa.struct([("a", pa.int32())])
    data = table.data(
        "a.parquet",
        {"id": [1, 2], "s": pa.array([{"a": 5}, None], stored), "l": pa.array([[{"a": 6}], []], pa.list_(stored))},
    )
    table.commit(0, PLAIN, metadata(*schema), data)
    assert rows(table) == [
        {"id": 1, "none": None, "s": {"a": 5, "nothing": None}, "l": [{"a": 6, "nothing": None}]},
        {"id": 2, "none": None, "s": None, "l": []},
    ]


def test_numbers_and_booleans_where_texts_belong(table: HandMade) -> None:
    """As in a table of the tests of delta-kernel-rs; it, deltalake and delta-spark take their text."""
    data = table.data("a.parquet", {"id": [1]}, {"p": "x"})
    data["add"] |= {"partitionValues": {"p": 5, "q": True}, "tags": {"t": 1.5}}
    properties: Any = {"delta.appendOnly": True, "delta.checkpointInterval": 7, "delta.other": None}
    schema = [field("id"), field("p", "integer"), field("q", "boolean")]
    table.commit(0, PLAIN, metadata(*schema, partition=["p", "q"], configuration=properties), data)
    opened = Table.open(table.path)
    assert opened.detail()["properties"] == {"delta.appendOnly": "true", "delta.checkpointInterval": "7"}
    assert rows(table, where="p = 5 AND q") == [{"id": 1, "p": 5, "q": True}]
    assert opened.snapshot.files(("tags",))["tags"].to_pylist() == [[("t", "1.5")]]


@pytest.mark.parametrize("broken", ["classic", "parts", "none"])
def test_several_checkpoints_of_one_version(table: HandMade, broken: str) -> None:
    """A classic one, one of two parts and a V2 one with a sidecar; any that is complete gives the same content."""
    v2 = features("v2Checkpoint")
    start, live = [v2, metadata(field("id"))], [add(name) for name in ("a", "b", "c")]
    table.checkpoint(5, *start, *live)
    table.checkpoint(5, *start, live[0], name=f"{5:020}.checkpoint.{1:010}.{2:010}.parquet")
    second = table.checkpoint(5, *live[1:], name=f"{5:020}.checkpoint.{2:010}.{2:010}.parquet")
    sidecar = table.checkpoint(5, *live, name="one.parquet", folder=table.log / "_sidecars")
    named = {"sidecar": {"path": "one.parquet", "sizeInBytes": sidecar.stat().st_size, "modificationTime": 1}}
    top = [{"checkpointMetadata": {"version": 5}}, *start, named]
    (table.log / str(UuidCheckpointName(5, UUID, "json"))).write_text("".join(json.dumps(a) + "\n" for a in top))
    if broken == "parts":
        second.unlink()
    elif broken == "classic":
        (table.log / f"{5:020}.checkpoint.parquet").write_bytes(b"")
    table.commit(6, remove("b"), add("d"))
    (table.log / "_last_checkpoint").write_text('{"version":5,"size":5}')
    assert sorted(Table.open(table.path).files()["path"].to_pylist()) == ["a", "c", "d"]
    assert sorted(Table.open(table.path, version=5).files()["path"].to_pylist()) == ["a", "b", "c"]


@pytest.mark.parametrize("created", [10**16, -(10**16), 10**18])
def test_a_table_may_say_that_it_was_created_beyond_all_years(table: HandMade, created: int) -> None:
    table.commit(0, PLAIN, metadata(field("id"), createdTime=created))
    assert Table.open(table.path).detail()["createdAt"] is None


def half_stats(text: str) -> str:
    """Statistics of two rows with `text` as a minimum, which escapes keep as it is."""
    members = {"numRecords": 2, "minValues": {"s": text}, "maxValues": {"s": "z"}, "nullCount": {"s": 0}}
    return json.dumps(members)


@pytest.mark.parametrize("half", [0xD83D, 0xDC00])
def test_c414_half_a_surrogate_pair_in_statistics_is_no_bound(tmp_path: Path, half: int) -> None:
    """Writers that cut texts by the characters of Java leave such."""
    text = f"a{chr(half)}"
    builder = TableBuilder(tmp_path)
    builder.commit(0, [wire.protocol(), wire.metadata(schema={"s": "string"})])
    builder.commit(1, [wire.add("odd", stats=half_stats(text)), wire.add("usual", stats=half_stats("b"))])
    for _ in range(2):  # from the commit, then from a checkpoint
        table = Table.open(builder.location)
        assert sorted(table.scan(where="s = 'c'").files()["path"].to_pylist()) == ["odd", "usual"]
        assert table.scan(where="s < 'b'").files()["path"].to_pylist() == ["odd"]
        assert table.scan(where="s > 'zz'").files().num_rows == 0
        stats = {row["path"]: row for row in table.stats().to_pylist()}
        assert [stats[name]["minValues"]["s"] for name in ("odd", "usual")] == [None, "b"]
        assert [stats[name]["numRecords"] for name in ("odd", "usual")] == [2, 2]
        assert half_stats(text) in table.snapshot.files(("path", "stats"))["stats"].to_pylist()
        table.checkpoint()


@pytest.mark.parametrize(
    "action",
    [
        wire.add("f", {"p": "\ud83d"}),
        wire.add("f\ud83d"),
        wire.add("f", tags={"x": "\ud83d"}),
        wire.metadata(schema={"s": "string"}, configuration={"k": "\ud83d"}),
        wire.metadata(schema={"s\ud83d": "string"}),
        {"commitInfo": {"operation": "\ud83d", "timestamp": 1}},
        {"txn": {"appId": "\ud83d", "version": 1}},
        {"domainMetadata": {"domain": "d", "configuration": "\ud83d", "removed": False}},
    ],
    ids=["partition", "path", "tag", "property", "column", "commitInfo", "application", "domain"],
)
def test_half_a_surrogate_pair_elsewhere_is_an_error_that_names_the_file(tmp_path: Path, action: Any) -> None:
    builder = TableBuilder(tmp_path)
    builder.commit(0, [wire.protocol(), wire.metadata(schema={"s": "string"})])
    builder.commit(1, [action])
    with pytest.raises(CorruptLogError, match=re.escape(str(tmp_path))):
        Table.open(builder.location).stats()
