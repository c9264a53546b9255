"""What checkpoints hold, and how readers cope with what they lack (CKC)."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyspark_delta.log.request import FileRequest
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.table import Table
from pyspark_delta.testing.table_builder import TableBuilder, add, metadata, protocol, remove

SCHEMA = {"asset": "string", "quantity": "long", "at": "timestamp", "date": "date", "region": "string"}
VALUES = pa.struct([("asset", pa.string()), ("quantity", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
NULLS = pa.struct([("asset", pa.int64()), ("quantity", pa.int64()), ("at", pa.int64())])
PARTITIONS = pa.struct([("date", pa.date32()), ("region", pa.string())])


def parsed_type(null_count: str = "nullCount") -> pa.StructType:
    """The type of `stats_parsed`."""
    return pa.struct([("numRecords", pa.int64()), ("minValues", VALUES), ("maxValues", VALUES), (null_count, NULLS)])


def file(number: int, *, text: bool, parsed: bool, null_count: str = "nullCount") -> Any:
    """File `number` has the quantities from 10 * number on; odd ones are of region EU, even ones of none."""
    region = "EU" if number % 2 else None
    day = f"2024-01-{number + 1:02d}"
    fields: dict[str, Any] = {}
    low, high = 10 * number, 10 * number + 9
    if text:
        fields["stats"] = (
            f'{{"numRecords":10,"minValues":{{"asset":"a{number}","quantity":{low},"at":"{day}T00:00:00.000Z"}},'
            f'"maxValues":{{"asset":"a{number}","quantity":{high},"at":"{day}T01:00:00.000Z"}},'
            f'"nullCount":{{"asset":{number},"quantity":0,"at":0}}}}'
        )
    if parsed:
        start = datetime(2024, 1, number + 1, tzinfo=UTC)
        fields["stats_parsed"] = {
            "numRecords": 10,
            "minValues": {"asset": f"a{number}", "quantity": low, "at": start},
            "maxValues": {"asset": f"a{number}", "quantity": high, "at": start.replace(hour=1)},
            null_count: {"asset": number, "quantity": 0, "at": 0},
        }
        fields["partitionValues_parsed"] = {"date": date(2024, 1, number + 1), "region": region}
    return add(f"f{number}", {"date": day, "region": region}, **fields)


def table_with(path: Path, *, text: bool, parsed: bool, null_count: str = "nullCount", **layout: Any) -> TableBuilder:
    """A table whose checkpoint has ten files, with statistics as text, parsed, both or neither."""
    table = TableBuilder(path)
    actions = [protocol(), metadata(SCHEMA, ["date", "region"])]
    actions += [file(n, text=text, parsed=parsed, null_count=null_count) for n in range(10)]
    actions.append(remove("gone"))
    if parsed:
        layout |= {"stats_parsed": parsed_type(null_count), "partition_values_parsed": PARTITIONS}
    table.classic_checkpoint(3, actions, drop=() if text else ("stats",), **layout)
    return table


def selected(table: TableBuilder, where: str) -> list[str]:
    """The paths of the files that are left for a predicate; the second time from memory, with the same answer."""
    snapshot = Snapshot.load(table.location)
    answers = [sorted(plan_scan(snapshot, where=where).files["path"].to_pylist()) for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    return answers[0]


BOTH = pytest.mark.parametrize(("text", "parsed"), [(True, False), (False, True), (True, True)])


def test_c044_required_fields_of_absent_actions_are_no_files(tmp_path: Path) -> None:
    """deltalake declares the path inside `add` as required: rows of other actions then have an empty one."""
    table = table_with(tmp_path, text=True, parsed=False)
    (path,) = table.log.glob("*.parquet")
    rows = pq.read_table(path)
    adds = rows.column("add").combine_chunks()
    fields = [f.with_nullable(f.name not in ("path", "size")) for f in adds.type]
    children = [
        pc.fill_null(c, "" if f.name == "path" else 0) if not f.nullable else c
        for c, f in zip(adds.flatten(), fields, strict=True)
    ]
    required = pa.StructArray.from_arrays(children, fields=fields, mask=adds.is_null())
    pq.write_table(rows.set_column(rows.schema.get_field_index("add"), "add", required), path)
    for _ in range(3):
        assert sorted(Snapshot.load(table.location).files()["path"].to_pylist()) == sorted(f"f{n}" for n in range(10))
    assert selected(table, "quantity >= 0") == sorted(f"f{n}" for n in range(10))


def test_c044_a_column_that_is_absent_means_null(tmp_path: Path) -> None:
    table = table_with(tmp_path, text=False, parsed=False)
    found = Snapshot.load(table.location).files(("path", "stats", "base_row_id"))
    assert found.num_rows == 10
    assert found["stats"].null_count == found["base_row_id"].null_count == 10


@BOTH
@pytest.mark.parametrize("rows", [3, 1000])
def test_c053_c062_statistics_of_either_form_skip_files(tmp_path: Path, text: bool, parsed: bool, rows: int) -> None:
    table = table_with(tmp_path, text=text, parsed=parsed, row_group_size=rows)
    assert selected(table, "quantity = 42") == ["f4"]
    assert selected(table, "quantity >= 85") == ["f8", "f9"]
    assert selected(table, "at >= '2024-01-09 12:00:00'") == ["f9"]
    assert selected(table, "asset = 'a3' AND quantity < 35") == ["f3"]
    assert selected(table, "asset IS NULL") == [f"f{n}" for n in range(1, 10)]
    assert selected(table, "quantity > 1000") == []


def test_c053_without_statistics_every_file_is_kept(tmp_path: Path) -> None:
    assert len(selected(table_with(tmp_path, text=False, parsed=False), "quantity = 42")) == 10


@BOTH
@pytest.mark.parametrize("rows", [3, 1000])
def test_c049_c056_partition_values_of_either_form_skip_files(
    tmp_path: Path, text: bool, parsed: bool, rows: int
) -> None:
    table = table_with(tmp_path, text=text, parsed=parsed, row_group_size=rows)
    assert selected(table, "date = DATE'2024-01-05'") == ["f4"]
    assert selected(table, "region = 'EU' AND date > DATE'2024-01-06'") == ["f7", "f9"]
    assert selected(table, "region IS NULL AND quantity < 25") == ["f0", "f2"]
    assert selected(table, "region = 'EU' OR date = DATE'2024-01-01'") == ["f0", "f1", "f3", "f5", "f7", "f9"]
    assert selected(table, "region = 'US'") == []


def test_c057_null_counts_are_read_under_both_spellings(tmp_path: Path) -> None:
    table = table_with(tmp_path, text=False, parsed=True, null_count="nullCounts")
    assert selected(table, "asset IS NULL") == [f"f{n}" for n in range(1, 10)]


def test_c059_c060_parsed_structs_use_physical_names(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    mapped = metadata({"id": "long", "region": "string"}, ["region"], {"delta.columnMapping.mode": "name"})
    schema = mapped["metaData"]["schemaString"]
    for number, (name, physical) in enumerate([("id", "col-a"), ("region", "col-b")], 1):
        wanted = f'{{"delta.columnMapping.id": {number}, "delta.columnMapping.physicalName": "{physical}"}}'
        head, _, rest = schema.partition(f'"name": "{name}"')
        schema = head + f'"name": "{name}"' + rest.replace('"metadata": {}', f'"metadata": {wanted}', 1)
    mapped = {"metaData": {**mapped["metaData"], "schemaString": schema}}
    values = pa.struct([("col-a", pa.int64())])
    stats = pa.struct([("numRecords", pa.int64()), ("minValues", values), ("maxValues", values)])
    files = [
        add(
            f"f{n}",
            {"col-b": f"r{n}"},
            stats_parsed={"numRecords": 1, "minValues": {"col-a": n}, "maxValues": {"col-a": n}},
            partitionValues_parsed={"col-b": f"r{n}"},
        )
        for n in range(4)
    ]
    table.classic_checkpoint(
        0,
        [protocol(2, 5), mapped, *files],
        stats_parsed=stats,
        partition_values_parsed=pa.struct([("col-b", pa.string())]),
    )
    assert selected(table, "id = 2") == ["f2"]
    assert selected(table, "region = 'r3'") == ["f3"]


def test_c046_c197_commit_infos_in_old_checkpoints_are_tolerated(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    table = table_with(tmp_path, text=True, parsed=False)
    path = next(table.log.glob("*.parquet"))
    found = pq.read_table(path)
    info = pa.array([{"operation": "WRITE"}] * found.num_rows)
    pq.write_table(found.append_column("commitInfo", info), path)
    assert Snapshot.load(table.location).num_files() == 10


def test_c047_the_top_level_of_a_v2_checkpoint_may_be_json(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    files = [file(n, text=True, parsed=False) for n in range(10)]
    features = protocol(3, 7, ["v2Checkpoint"])
    table.v2_checkpoint(3, [features, metadata(SCHEMA, ["date", "region"]), *files])
    assert selected(table, "quantity = 42") == ["f4"]
    assert selected(table, "region = 'EU' AND date > DATE'2024-01-06'") == ["f7", "f9"]


def test_malformed_statistics_never_fail_a_scan(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    texts = ["{", "", "null", "[1]", '{"minValues":{"quantity":"x"}}', '{"numRecords":1}{"numRecords":2}', None]
    files = [add(f"bad{n}", {"date": "2024-01-01", "region": "x"}, stats=text) for n, text in enumerate(texts)]
    files.append(file(4, text=True, parsed=False))
    table.classic_checkpoint(3, [protocol(), metadata(SCHEMA, ["date", "region"]), *files])
    table.commit(4, [add("tail", {"date": "2024-01-01", "region": "x"}, stats="{{")])
    expected = sorted([f"bad{n}" for n in range(len(texts))] + ["tail"])
    assert selected(table, "quantity = 1") == expected


def test_requests_without_predicates_give_every_file(tmp_path: Path) -> None:
    snapshot = Snapshot.load(table_with(tmp_path, text=True, parsed=True).location)
    for _ in range(3):
        assert sum(len(b) for b in snapshot.read_files(FileRequest(("path", "size")))) == 10


DAYS_SCHEMA = {"day": "date", "p": "date"}
DAYS = pa.struct([("day", pa.date32())])
OLD_DAY = -171_595  # 1500-03-11 today, and 1500-03-01 in the calendar of Spark 2


def table_of_old_days(path: Path, *, text: bool) -> TableBuilder:
    """A table whose checkpoint was written in the calendar of Spark 2, of a file with 1500-03-01 and one without."""
    table, files = TableBuilder(path), []
    for number, (stored, day) in enumerate([(OLD_DAY, "1500-03-01"), (0, "1970-01-01")]):
        bound = {"day": stored}
        typed = {"numRecords": 1, "minValues": bound, "maxValues": bound}
        stats = {"stats": json.dumps({"numRecords": 1, "minValues": {"day": day}, "maxValues": {"day": day}})}
        parsed = {"stats_parsed": typed, "partitionValues_parsed": {"p": stored}}
        files.append(add(f"f{number}", {"p": day}, **parsed, **(stats if text else {})))
    types = pa.struct([("numRecords", pa.int64()), ("minValues", DAYS), ("maxValues", DAYS)])
    table.classic_checkpoint(
        3,
        [protocol(), metadata(DAYS_SCHEMA, ["p"]), *files],
        stats_parsed=types,
        partition_values_parsed=pa.struct([("p", pa.date32())]),
        drop=() if text else ("stats",),
    )
    (checkpoint,) = table.log.glob("*.parquet")
    footer = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}
    rows = pq.read_table(checkpoint).replace_schema_metadata(footer)
    pq.write_table(rows, checkpoint, row_group_size=2)  # the files are in one of their own, as in sidecars
    return table


@pytest.mark.parametrize("text", [True, False])
def test_typed_values_in_the_calendar_of_spark_2_skip_no_file(tmp_path: Path, text: bool) -> None:
    table = table_of_old_days(tmp_path, text=text)
    assert selected(table, "p = '1500-03-01'") == ["f0"]
    assert selected(table, "day = '1500-03-01'") == (["f0"] if text else ["f0", "f1"])


@pytest.mark.parametrize("text", [True, False])
def test_typed_values_in_the_calendar_of_spark_2_are_not_copied(tmp_path: Path, text: bool) -> None:
    table = table_of_old_days(tmp_path, text=text)
    table.commit(4, [metadata(DAYS_SCHEMA, ["p"], {"delta.checkpoint.writeStatsAsStruct": "true"})])
    Table.open(tmp_path).checkpoint()
    stats = pq.read_table(next(table.log.glob("*04.checkpoint.parquet")))["add"].combine_chunks().field("stats_parsed")
    found = [row for row in stats.to_pylist() if row is not None]
    days = [date(1500, 3, 1), date(1970, 1, 1)] if text else [None, None]
    assert [row["minValues"]["day"] for row in found] == days
    assert [row["numRecords"] for row in found] == [1, 1]


def test_typed_dates_that_python_does_not_have_skip_no_row_group(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    bound = {"day": 3_000_000}  # in the year 10183
    files = [add("f0", stats_parsed={"numRecords": 1, "minValues": bound, "maxValues": bound})]
    types = pa.struct([("numRecords", pa.int64()), ("minValues", DAYS), ("maxValues", DAYS)])
    actions = [protocol(), metadata({"day": "date"}), *files]
    table.classic_checkpoint(3, actions, stats_parsed=types, drop=("stats",))
    assert selected(table, "day > '9999-12-31'") == ["f0"]
    assert selected(table, "day < '9999-12-31'") == []
