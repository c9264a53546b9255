"""Conversion of Parquet directories: partition columns, schemas, statistics, and what does not fit."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import QueryBuilder

from pyspark_delta.errors import (
    InvalidOperationError,
    InvalidOptionError,
    SchemaMismatchError,
    TableAlreadyExistsError,
)
from pyspark_delta.schema.types import DATE, INTEGER, LONG, STRING, TIMESTAMP, DataType
from pyspark_delta.table import Table


def write(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def stats(table: Table) -> list[dict[str, Any]]:
    return [json.loads(text) for text in table.files()["stats"].to_pylist()]


def test_files_stay_and_all_engines_read_the_table(tmp_path: Path) -> None:
    for number, day in enumerate(("2024-01-31", "2024-02-01", "__HIVE_DEFAULT_PARTITION__")):
        write(tmp_path / f"day={day}" / "n=7" / "x y%20.parquet", id=[number], s=["a"])
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "day=2024-01-31" / "n=7" / ".x.crc").write_text("")
    before = sorted(tmp_path.rglob("*.parquet"))
    plan = Table.convert(tmp_path, plan=True)
    assert plan.facts()["partition_columns"] == {"day": "date", "n": "integer"}
    assert (plan.facts()["files"], plan.facts()["bytes"]) == (3, sum(file.stat().st_size for file in before))
    assert "columns: id long, s string, day date, n integer" in str(plan)
    assert "ConvertPlan" in plan._repr_html_()
    assert not (tmp_path / "_delta_log").exists()
    table = Table.convert(tmp_path, commit_info="why")
    assert sorted(tmp_path.rglob("[!0]*.parquet")) == before
    rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert rows[0] == {"id": 0, "s": "a", "day": date(2024, 1, 31), "n": 7}
    assert rows[2]["day"] is None
    assert table.scan(where="day = '2024-02-01'").to_arrow()["id"].to_pylist() == [1]
    assert sorted(PeerTable(str(tmp_path)).to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2]
    assert pl.read_delta(str(tmp_path)).sort("id")["day"].to_list() == [row["day"] for row in rows]
    (commit,) = table.history()
    assert (commit["operation"], commit["userMetadata"]) == ("CONVERT", "why")
    assert commit["operationParameters"] == {
        "numFiles": 3,
        "partitionedBy": '["day","n"]',
        "collectStats": True,
        "sourceFormat": "parquet",
    }
    assert commit["operationMetrics"] == {"numConvertedFiles": "3"}
    assert (tmp_path / "_delta_log" / f"{0:020}.checkpoint.parquet").exists()
    table.append({"id": [9], "s": ["b"], "day": [date(2024, 1, 1)], "n": pa.array([8], pa.int32())})
    table.delete("id = 0")
    assert table.count() == 3
    assert Table.convert(tmp_path).version == table.version
    assert "is a Delta table already" in str(Table.convert(tmp_path, plan=True))


# -------------------------------------------------------------------------------------------- the log elsewhere
def elsewhere(tmp_path: Path) -> tuple[Path, Table]:
    """A directory with odd names, and the table of its files beside it."""
    source = tmp_path / "a b%20ü"
    for number, day in enumerate(("2024-01-31", "a%2Fb:c", "__HIVE_DEFAULT_PARTITION__")):
        write(source / f"day={day}" / "x y%20#?.parquet", id=[number, 10 + number])
    return source, Table.convert(
        source, where_delta_lies=tmp_path / "t", properties={"delta.enableDeletionVectors": True}
    )


@pytest.mark.findings("F09")  # the files are outside of the table
def test_the_log_may_lie_elsewhere(tmp_path: Path) -> None:
    source, table = elsewhere(tmp_path)
    before = sorted(source.rglob("*"))
    assert table.location == str(tmp_path / "t")
    rows = table.scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["day"]) for row in rows if row["day"]) == [
        (0, "2024-01-31"),
        (1, "a/b:c"),
        (10, "2024-01-31"),
        (11, "a/b:c"),
    ]
    assert all(file["path"].startswith(f"file:{tmp_path}/a%20b%2520ü/day=") for file in table.files().to_pylist())
    assert table.scan(where="id > 11").to_arrow()["id"].to_pylist() == [12]
    peer = QueryBuilder().register("t", PeerTable(table.location)).execute("select id from t")
    assert sorted(pa.table(peer)["id"].to_pylist()) == [0, 1, 2, 10, 11, 12]
    table.append({"id": [99], "day": ["new"]})
    table.update({"id": "id + 100"}, "id = 1")
    table.optimize()
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 2, 10, 11, 12, 99, 101]
    assert sorted(source.rglob("*")) == before
    plan = Table.convert(source, where_delta_lies=tmp_path / "u", plan=True)
    assert plan.facts()["where_delta_lies"] == f"{tmp_path}/u"
    assert f"the log is written to '{tmp_path}/u'" in str(plan)
    assert not (tmp_path / "u").exists()


@pytest.mark.findings("F09")  # the files are outside of the table
@pytest.mark.parametrize("mode", ["full", "lite"])
def test_a_vacuum_deletes_nothing_where_the_log_does_not_lie(tmp_path: Path, mode: Any) -> None:
    source, table = elsewhere(tmp_path)
    before = {file: file.read_bytes() for file in source.rglob("*.parquet")}
    table.delete("id = 1")  # a vector
    table.append({"id": [99], "day": ["new"]})
    table.overwrite({"id": [7], "day": ["last"]})
    result = table.vacuum(mode=mode, retention_hours=0, enforce_retention_duration=False)
    assert result.num_deleted_files == 2  # the vector, and the file that was appended
    assert {file: file.read_bytes() for file in source.rglob("*.parquet")} == before
    assert table.scan().to_arrow()["id"].to_pylist() == [7]


@pytest.mark.findings("F09")  # the files are outside of the table
def test_the_log_lies_apart_from_the_files_and_from_others(tmp_path: Path) -> None:
    source, table = elsewhere(tmp_path)
    (tmp_path / "link").symlink_to(source)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("")
    for where, error, message in (
        (source / "t", InvalidOperationError, "within each other"),
        (tmp_path, InvalidOperationError, "within each other"),
        (tmp_path / "link" / "t", InvalidOperationError, "within each other"),
        (tmp_path / "full", InvalidOperationError, "it holds 'mine.txt'"),
        (tmp_path / "t", TableAlreadyExistsError, "without a table"),
    ):
        with pytest.raises(error, match=message):
            Table.convert(source, where_delta_lies=where)
    with pytest.raises(InvalidOperationError, match=r"is a Delta table.*shallow clone"):
        Table.convert(table.location, where_delta_lies=tmp_path / "u")
    assert not list(source.rglob("_delta_log"))


@pytest.mark.parametrize(
    ("values", "expected", "stored"),
    [
        (["1", "02", "-3", "+4"], INTEGER, ["1", "2", "-3", "4"]),
        (["1", "3000000000"], LONG, ["1", "3000000000"]),
        (["1", "99999999999999999999"], STRING, ["1", "99999999999999999999"]),
        (["2024-01-31", "2024-2-1"], DATE, ["2024-01-31", "2024-02-01"]),
        (["2024-02-30"], STRING, ["2024-02-30"]),
        (["2024-01"], STRING, ["2024-01"]),
        (["2024-01-31", "7"], STRING, ["2024-01-31", "7"]),
        (
            ["2024-01-31 12%3A00%3A00", "2024-01-31"],
            TIMESTAMP,
            ["2024-01-31T12:00:00.000000Z", "2024-01-31T00:00:00.000000Z"],
        ),
        (["1.10", "1.1"], STRING, ["1.10", "1.1"]),
        (["a%2Fb", "%C3%BC", "ü", "100%", "a b"], STRING, ["a/b", "ü", "ü", "100%", "a b"]),
        (["__HIVE_DEFAULT_PARTITION__"], STRING, [None]),
        (["__HIVE_DEFAULT_PARTITION__", "5"], INTEGER, [None, "5"]),
        (["true"], STRING, ["true"]),
    ],
)  # fmt: skip
def test_types_of_partition_columns_are_inferred(
    tmp_path: Path, values: list[str], expected: DataType, stored: list[str | None]
) -> None:
    for number, value in enumerate(values):
        write(tmp_path / f"c={value}" / f"{number}.parquet", id=[number])
    table = Table.convert(tmp_path)
    field = table.schema.find("c")
    assert field is not None
    assert field.type == expected
    found = {row["path"].rpartition("/")[2]: dict(row["partition_values"])["c"] for row in table.files().to_pylist()}
    assert [found[f"{number}.parquet"] for number in range(len(values))] == stored
    assert table.count() == len(table.scan().to_arrow()) == len(values)


def test_declared_partition_columns_win_and_must_match(tmp_path: Path) -> None:
    write(tmp_path / "year=2024" / "month=01" / "a.parquet", id=[1])
    wrong = {
        "year INT": "has the partition columns 'year', 'month', expected 'year'",
        "month INT, year INT": "has the partition column 'year' where 'month' is expected",
        "year INT, month DATE": "The value '01' of the partition column 'month' .* is not of type date",
    }
    for declared, message in wrong.items():
        with pytest.raises(InvalidOperationError, match=message):
            Table.convert(tmp_path, partition_schema=declared)
    table = Table.convert(tmp_path, partition_schema={"year": "INT", "month": "STRING"})
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "year": 2024, "month": "01"}]
    assert table.history()[0]["operationParameters"]["partitionedBy"] == '["year","month"]'


def test_directories_that_do_not_fit_are_named(tmp_path: Path) -> None:
    write(tmp_path / "day=1" / "a.parquet", id=[1])
    write(tmp_path / "b.parquet", id=[2])
    with pytest.raises(InvalidOperationError, match="has the partition columns"):
        Table.convert(tmp_path)
    (tmp_path / "b.parquet").unlink()
    write(tmp_path / "night=1" / "a.parquet", id=[1])
    with pytest.raises(InvalidOperationError, match=r"'night=1'.* has the partition column 'night' where 'day'"):
        Table.convert(tmp_path)
    (tmp_path / "night=1" / "a.parquet").unlink()
    write(tmp_path / "day=2" / "plain" / "a.parquet", id=[1])
    with pytest.raises(
        InvalidOperationError, match=r"'day=2/plain'.* columns 'day', a directory without one, expected 'day'"
    ):
        Table.convert(tmp_path)
    assert not (tmp_path / "_delta_log").exists()


def test_directories_without_values_only_group_files(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", id=[1])
    write(tmp_path / "old" / "first" / "b.parquet", id=[2])
    table = Table.convert(tmp_path)
    assert table.partition_columns == ()
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]


# ------------------------------------------------------------------------------------------------------- schemas
def test_schemas_are_merged_where_spark_merges_them(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", id=pa.array([1], pa.int16()), s=pa.array([{"x": 1}]))
    write(tmp_path / "b.parquet", ID=pa.array([2], pa.int32()), more=["new"], s=pa.array([{"x": 2, "y": "z"}]))
    write(tmp_path / "c.parquet", id=pa.array([3], pa.int8()))
    table = Table.convert(tmp_path)
    assert str(table.schema) == "struct<id:integer,s:struct<x:long,y:string>,more:string>"
    rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert rows == [
        {"id": 1, "s": {"x": 1, "y": None}, "more": None},
        {"id": 2, "s": {"x": 2, "y": "z"}, "more": "new"},
        {"id": 3, "s": None, "more": None},
    ]
    assert sorted(one["minValues"]["id"] for one in stats(table)) == [1, 2, 3]


def test_files_that_do_not_fit_are_named(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", id=pa.array([1], pa.int32()))
    write(tmp_path / "b.parquet", id=pa.array([2], pa.int64()))
    with pytest.raises(SchemaMismatchError, match=r"'b.parquet'.*column 'id' is long, theirs is integer"):
        Table.convert(tmp_path)
    (tmp_path / "b.parquet").write_bytes(b"PAR1 is missing")
    with pytest.raises(InvalidOperationError, match=r"'b.parquet'.*skip_unreadable"):
        Table.convert(tmp_path)
    assert Table.convert(tmp_path, skip_unreadable=True, plan=True).skipped == ("b.parquet",)
    write(tmp_path / "b.parquet", at=pa.array([0], pa.timestamp("ns")))
    with pytest.raises(SchemaMismatchError, match=r"'b.parquet'.*nanoseconds"):
        Table.convert(tmp_path)
    write(tmp_path / "b.parquet", at=pa.array([0.5], pa.float16()))
    with pytest.raises(SchemaMismatchError, match=r"'b.parquet'.*floats of 16 bits"):
        Table.convert(tmp_path)
    write(tmp_path / "b.parquet", at=pa.array([0], pa.time64("us")))
    with pytest.raises(SchemaMismatchError, match=r"'b.parquet'"):
        Table.convert(tmp_path)
    write(tmp_path / "b.parquet", **{"a b": [1]})
    with pytest.raises((SchemaMismatchError, InvalidOperationError), match="a b"):
        Table.convert(tmp_path)
    (tmp_path / "b.parquet").write_bytes(b"PAR1 is missing")
    assert Table.convert(tmp_path, skip_unreadable=True).count() == 1


def test_directories_that_are_not_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOperationError, match="no file in the directory"):
        Table.convert(tmp_path)
    (tmp_path / "a.parquet").write_bytes(b"")
    with pytest.raises(InvalidOperationError, match="can be read as Parquet"):
        Table.convert(tmp_path, skip_unreadable=True)
    write(tmp_path / "a.parquet", id=[1])
    with pytest.raises(InvalidOptionError):
        Table.convert(tmp_path, properties={"delta.appendOnly": "perhaps"})
    (tmp_path / "_spark_metadata").mkdir()
    (tmp_path / "_spark_metadata" / "0").write_text("v1")
    with pytest.raises(InvalidOperationError, match="streaming query"):
        Table.convert(tmp_path)


def test_partition_columns_that_files_have_too_keep_their_place(tmp_path: Path) -> None:
    write(tmp_path / "p=5" / "a.parquet", p=["other"], id=[1])
    table = Table.convert(tmp_path)
    assert str(table.schema) == "struct<p:integer,id:long>"
    assert table.scan().to_arrow().to_pylist() == [{"p": 5, "id": 1}]
    assert "p" not in stats(table)[0]["minValues"]


# ---------------------------------------------------------------------------------------------------- statistics
def test_statistics_are_true_and_safe(tmp_path: Path) -> None:
    at = datetime(2024, 1, 31, 12, 0, 0, 123456, UTC)
    write(
        tmp_path / "a.parquet",
        i=[3, None, 1],
        s=["ü" * 40, "b", None],
        f=[1.5, float("nan"), 0.0],
        d=[date(2024, 1, 31), None, date(1500, 1, 1)],
        at=pa.array([at] * 3, pa.timestamp("us", "UTC")),
        ms=pa.array([at] * 3, pa.timestamp("ms", "UTC")),
        m=pa.array([Decimal("-1.50"), None, Decimal("2.00")], pa.decimal128(20, 2)),
        u=pa.array([1, 2, 4_000_000_000], pa.uint32()),
        b=[True, None, None],
        n=[[1], None, []],
        st=[{"x": 5}, None, {"x": None}],
    )
    (found,) = stats(Table.convert(tmp_path))
    assert found["numRecords"] == 3
    assert found["nullCount"] == {
        "i": 1,
        "s": 1,
        "f": 0,
        "d": 1,
        "at": 0,
        "ms": 0,
        "m": 1,
        "u": 0,
        "b": 2,
        "st": {"x": 2},
    }
    assert found["minValues"] == {
        "i": 1,
        "s": "b",
        "f": -0.0,
        "d": "1500-01-01",
        "m": -1.5,
        "at": "2024-01-31T12:00:00.123Z",
        "ms": "2024-01-31T12:00:00.123Z",
        "st": {"x": 5},
    }
    # NaN is the greatest number, and this writer leaves it out of the bounds: no maximum of `f`.
    assert found["maxValues"] == {
        "i": 3,
        "s": "ü" * 32 + "\U0010ffff",
        "d": "2024-01-31",
        "m": 2.0,
        "at": "2024-01-31T12:00:00.124Z",
        "ms": "2024-01-31T12:00:00.123Z",
        "st": {"x": 5},
    }


def test_files_are_skipped_by_their_statistics_and_none_are_collected_on_request(tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path / f"{number}.parquet", id=[number * 10, number * 10 + 5])
    bare = Table.convert(tmp_path, statistics=False, plan=True)
    assert bare.files["stats"].null_count == 4
    table = Table.convert(tmp_path)
    assert table.scan(where="id > 30").explain().count("1 of 4") or table.scan(where="id > 30").to_arrow().num_rows == 1
    assert len(table.scan(where="id = 35").plan.files) == 1


def test_old_timestamps_have_no_bounds_and_are_instants(tmp_path: Path) -> None:
    at = datetime(2024, 1, 31, 12)
    pq.write_table(pa.table({"at": [at], "id": [1]}), tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    table = Table.convert(tmp_path)
    assert str(table.schema) == "struct<at:timestamp,id:long>"
    assert table.scan().to_arrow()["at"].to_pylist() == [at.replace(tzinfo=UTC)]
    (found,) = stats(table)
    assert list(found["minValues"]) == ["id"]
    legacy = {b"org.apache.spark.version": b"2.4.5"}
    data = pa.table({"d": [date(2024, 1, 31)], "id": [1]}).replace_schema_metadata(legacy)
    (tmp_path / "old").mkdir()
    pq.write_table(data, tmp_path / "old" / "a.parquet")
    (found,) = stats(Table.convert(tmp_path / "old"))
    assert (list(found["minValues"]), found["nullCount"]) == (["id"], {"d": 0, "id": 0})


def test_timestamps_without_a_zone_stay_so(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", at=pa.array([datetime(2024, 1, 31)], pa.timestamp("us")))
    table = Table.convert(tmp_path)
    assert str(table.schema) == "struct<at:timestamp_ntz>"
    assert "timestampNtz" in table.protocol.listed_features


# ------------------------------------------------------------------------------------------- directories of others
DATA = pa.table({"id": [1, 2, 3], "x": [1.5, None, 2.5], "p": ["a/b", "ü 1", "c"], "day": [date(2024, 1, 31)] * 3})


def by_polars(path: Path) -> None:
    pl.from_arrow(DATA).write_parquet(path, partition_by=["p", "day"])  # type: ignore[union-attr, call-arg]


def by_duckdb(path: Path) -> None:
    data = DATA  # noqa: F841 - duckdb finds it by its name
    duckdb.sql(f"COPY (SELECT * FROM data) TO '{path}' (FORMAT parquet, PARTITION_BY (p, day))")


def by_pyarrow(path: Path) -> None:
    ds.write_dataset(DATA, path, format="parquet", partitioning=["p", "day"], partitioning_flavor="hive")


@pytest.mark.parametrize("write_directory", [by_polars, by_duckdb, by_pyarrow])
def test_directories_of_other_libraries(tmp_path: Path, write_directory: Any) -> None:
    write_directory(tmp_path / "t")
    table = Table.convert(tmp_path / "t")
    assert set(table.partition_columns) == {"p", "day"}
    found = table.scan(columns=DATA.column_names).to_arrow().sort_by("id").to_pylist()
    assert found == DATA.to_pylist()
    assert sorted(PeerTable(str(tmp_path / "t")).to_pyarrow_table()["id"].to_pylist()) == [1, 2, 3]
