"""Creating, appending to and overwriting tables from Spark, read back by other implementations and by our own scan."""

from __future__ import annotations

import json
import math
import shutil
import warnings
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession, functions

from pyspark_delta._version import __version__
from pyspark_delta.errors import (
    AppendOnlyTableError,
    ConcurrentAppendError,
    ConstraintViolationError,
    DeltaWarning,
    InvalidOperationError,
    InvalidOptionError,
    SchemaMismatchError,
    TableAlreadyExistsError,
)
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.api.table import DeltaTable
from pyspark_delta.spark.conf.arrow import frame_of_arrow
from pyspark_delta.spark.engine.write.save import save
from pyspark_delta.table import Table


@pytest.fixture(scope="module")
def write_spark(spark: SparkSession) -> SparkSession:
    """A session without `enable`, in a time zone that is not UTC."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    return session


@pytest.fixture
def table(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def ours(location: str, where: str | None = None) -> pa.Table:
    return Table.open(location).scan(where=where).to_arrow()


def commits(location: str) -> list[list[dict[str, Any]]]:
    """The actions of every commit."""
    files = sorted(Path(location, "_delta_log").glob("*.json"))
    return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]


def actions(location: str, version: int, name: str) -> list[dict[str, Any]]:
    return [action[name] for action in commits(location)[version] if name in action]


def rows(table: pa.Table, key: str = "id") -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: (row[key] is None, row[key]))


# ------------------------------------------------------------------------------------------------------- modes
def test_c001_c127_first_version_has_protocol_and_metadata(write_spark: SparkSession, table: str) -> None:
    assert save(write_spark.range(5), table) == 0
    [protocol] = actions(table, 0, "protocol")
    assert protocol == {"minReaderVersion": 1, "minWriterVersion": 2}
    [metadata] = actions(table, 0, "metaData")
    assert metadata["format"] == {"provider": "parquet", "options": {}}
    assert metadata["partitionColumns"] == []
    assert json.loads(metadata["schemaString"])["fields"] == [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    ]
    assert ours(table).column("id").to_pylist() == list(range(5))


def test_append_adds_rows(write_spark: SparkSession, table: str) -> None:
    assert save(write_spark.range(3), table, "append") == 0
    assert save(write_spark.range(3, 5), table, "append") == 1
    assert rows(ours(table)) == [{"id": i} for i in range(5)]


def test_overwrite_replaces_rows_in_one_commit(write_spark: SparkSession, table: str) -> None:
    save(write_spark.range(3), table)
    assert save(write_spark.range(7, 9), table, "overwrite") == 1
    assert rows(ours(table)) == [{"id": 7}, {"id": 8}]
    removed, added = actions(table, 1, "remove"), actions(table, 1, "add")
    assert {r["path"] for r in removed} == {a["path"] for a in actions(table, 0, "add")}
    assert all(r["dataChange"] and r["deletionTimestamp"] > 0 and r["size"] > 0 for r in removed)
    assert added


def test_overwrite_with_rows_of_the_table_itself(write_spark: SparkSession, table: str) -> None:
    save(write_spark.range(4), table)
    files = [f"{table}/{add['path']}" for add in actions(table, 0, "add")]
    own = write_spark.read.parquet(*files)
    save(own.where("id >= 2"), table, "overwrite")
    assert rows(ours(table)) == [{"id": 2}, {"id": 3}]


def test_overwrite_with_nothing_empties_the_table(write_spark: SparkSession, table: str) -> None:
    save(write_spark.range(4), table)
    save(write_spark.range(0), table, "overwrite")
    assert ours(table).num_rows == 0


@pytest.mark.parametrize("mode", [None, "error", "errorifexists", "ErrorIfExists", "default"])
def test_error_refuses_an_existing_table(write_spark: SparkSession, table: str, mode: str | None) -> None:
    assert save(write_spark.range(1), table, mode) == 0
    with pytest.raises(TableAlreadyExistsError, match="mode 'append' or 'overwrite'"):
        save(write_spark.range(1), table, mode)
    assert len(commits(table)) == 1


def test_ignore_leaves_an_existing_table(write_spark: SparkSession, table: str) -> None:
    assert save(write_spark.range(1), table, "ignore") == 0
    assert save(write_spark.range(9), table, "ignore") is None
    assert ours(table).num_rows == 1


def test_an_unknown_mode_lists_the_valid_ones(write_spark: SparkSession, table: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"append, overwrite, error, errorifexists, ignore.*'append'"):
        save(write_spark.range(1), table, "apend")


def test_an_empty_frame_creates_an_empty_table(write_spark: SparkSession, table: str) -> None:
    save(write_spark.range(0), table)
    assert ours(table).num_rows == 0
    assert actions(table, 0, "add") == []


# -------------------------------------------------------------------------------------------------- provenance
def test_c192_commit_info_of_a_write(write_spark: SparkSession, table: str) -> None:
    frame = write_spark.range(10).withColumn("d", functions.lit("x"))
    save(frame, table, partition_by=["d"])
    save(frame, table, "append", options={"userMetadata": "nightly"})
    save(frame, table, "overwrite")
    [create], [append], [overwrite] = (actions(table, v, "commitInfo") for v in range(3))
    assert commits(table)[1][0] == {"commitInfo": append}
    assert list(append) == [
        "timestamp",
        "operation",
        "operationParameters",
        "readVersion",
        "isolationLevel",
        "isBlindAppend",
        "operationMetrics",
        "userMetadata",
        "engineInfo",
        "txnId",
    ]
    assert create["operationParameters"] == {"mode": "ErrorIfExists", "partitionBy": '["d"]'}
    assert append["operationParameters"] == {"mode": "Append", "partitionBy": "[]"}
    assert "readVersion" not in create
    assert (append["readVersion"], overwrite["readVersion"]) == (0, 1)
    assert [i["isBlindAppend"] for i in (create, append, overwrite)] == [True, True, False]
    assert append["engineInfo"] == f"pyspark-delta/{__version__} PySpark/{write_spark.version}"
    adds = actions(table, 1, "add")
    assert append["operationMetrics"] == {
        "numFiles": str(len(adds)),
        "numOutputRows": "10",
        "numOutputBytes": str(sum(add["size"] for add in adds)),
    }
    assert overwrite["operationMetrics"]["numRemovedFiles"] == str(len(actions(table, 2, "remove")))
    assert len({create["txnId"], append["txnId"], overwrite["txnId"]}) == 3
    assert Table.open(table).history()[1]["userMetadata"] == "nightly"


def test_c010_c011_c014_log_and_data_file_names(write_spark: SparkSession, table: str) -> None:
    save(write_spark.range(10).withColumn("p", functions.col("id") % 2), table, partition_by=["p"])
    save(write_spark.range(10).withColumn("p", functions.col("id") % 2), table, "append")
    log = sorted(p.name for p in Path(table, "_delta_log").iterdir() if not p.name.startswith("."))
    assert [n for n in log if n.endswith(".json")] == [f"{v:020d}.json" for v in range(2)]
    paths = [add["path"] for v in range(2) for add in actions(table, v, "add")]
    assert len(set(paths)) == len(paths)
    for path in paths:
        directory, _, name = path.partition("/")
        assert directory in ("p=0", "p=1")
        assert name.startswith("part-0")
        assert name.endswith(".c000.snappy.parquet") or ".c00" in name
        assert Path(table, path).stat().st_size > 0


def test_c105_c126_version_checksum_equals_the_state(write_spark: SparkSession, table: str) -> None:
    save(write_spark.range(10), table)
    save(write_spark.range(10), table, "append", options={"txnAppId": "job", "txnVersion": 4})
    save(write_spark.range(3), table, "overwrite")
    for version in range(3):
        snapshot = Snapshot.load(table, version=version)
        checksum = json.loads(Path(table, "_delta_log", f"{version:020d}.crc").read_text())
        assert checksum["numFiles"] == snapshot.files().num_rows
        assert checksum["tableSizeBytes"] == sum(snapshot.files().column("size").to_pylist())
        assert (checksum["numMetadata"], checksum["numProtocol"]) == (1, 1)
        assert checksum["metadata"] == actions(table, 0, "metaData")[0]
        assert checksum["protocol"] == actions(table, 0, "protocol")[0]
        assert checksum["txnId"] == actions(table, version, "commitInfo")[0]["txnId"]
        assert [t["appId"] for t in checksum["setTransactions"]] == ([] if version == 0 else ["job"])


def test_c177_c180_a_transaction_is_committed_once(write_spark: SparkSession, table: str) -> None:
    def write(version: int) -> int | None:
        return save(write_spark.range(1), table, "append", options={"txnAppId": "job", "txnVersion": version})

    assert write(7) == 0
    assert write(7) is None
    assert write(6) is None
    assert write(8) == 1
    [action] = actions(table, 1, "txn")
    assert (action["appId"], action["version"]) == ("job", 8)
    assert action["lastUpdated"] > 0
    assert ours(table).num_rows == 2


# ------------------------------------------------------------------------------------------------------ content
EVERY_TYPE = (
    "id int, b byte, s short, l long, f float, d double, bo boolean, st string, bi binary, da date, ts timestamp, "
    "de decimal(9,2), dl decimal(18,4), dx decimal(38,10), ar array<string>, ma map<string,int>, "
    "sr struct<x:int,y:struct<z:string>>, aa array<struct<k:string,v:array<decimal(5,1)>>>, "
    "ms map<string,struct<t:timestamp>>"
)


def every_type(spark: SparkSession) -> DataFrame:
    moment = datetime(2024, 2, 29, 23, 59, 59, 123456, UTC)
    full = (
        1, 127, -32768, 2**63 - 1, 1.5, -1e300, True, "ü\U0001f600", b"\x00\xff", date(1582, 10, 15), moment,
        Decimal("-1234567.89"), Decimal("12345678901234.5678"), Decimal("1234567890123456789012345678.0123456789"),
        ["a", None], {"k": 1, "n": None}, Row(x=1, y=Row(z="q")),
        [Row(k="a", v=[Decimal("1.5"), None]), None], {"m": Row(t=moment)},
    )  # fmt: skip
    empty = (2, *[None] * 18)
    other = (
        3, -128, 32767, -(2**63), float("-inf"), float("inf"), False, "", b"", date(9999, 12, 31),
        datetime(1900, 1, 1, tzinfo=UTC), Decimal("0.00"), Decimal("0"), Decimal("-0.0000000001"),
        [], {}, Row(x=None, y=None), [], {},
    )  # fmt: skip
    return spark.createDataFrame([full, empty, other], EVERY_TYPE)


def comparable(value: Any) -> Any:
    match value:
        case float():
            return "nan" if math.isnan(value) else value
        case datetime():
            return value.astimezone(UTC).isoformat()
        case dict():
            return {key: comparable(member) for key, member in value.items()}
        case list() | tuple():
            return [comparable(member) for member in value]
        case _:
            return value


@pytest.mark.parametrize("compression", ["snappy", "zstd", "gzip", "none"])
def test_c436_c443_every_type_is_read_back(write_spark: SparkSession, table: str, compression: str) -> None:
    frame = every_type(write_spark)
    save(frame, table, options={"compression": compression})
    expected = [comparable(row) for row in rows(frame.toArrow())]
    assert [comparable(row) for row in rows(ours(table))] == expected
    deltalake = pytest.importorskip("deltalake", reason="needs the peers")
    peer = deltalake.DeltaTable(table)
    theirs = pa.table(peer.to_pyarrow_table()).select(frame.columns)
    assert [comparable(row) for row in rows(theirs)] == expected


@pytest.mark.since("4.0")
def test_a3_variants_are_shredded_while_the_table_allows_it(
    delta_spark: SparkSession, plain_spark: SparkSession, compiled_spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    query = """select id, parse_json(case
        when id % 11 = 0 then null
        when id % 7 = 0 then '[1, "two", {"three": 3}]'
        when id % 5 = 0 then '{"a": "no number", "b": {"c": "other"}, "z": null}'
        else concat('{"a": ', id, ', "e": ', id / 4, ', "b": {"c": "text"}, "z": "2024-01-01"}') end) v, id more
        from range(0, 200, 1, 1)"""
    columns = ("id", "to_json(v) v", "more")
    expected = plain_spark.sql(query).selectExpr(*columns)
    save(delta_spark.sql(query), path, options={"delta.enableVariantShredding": True})
    [shredded] = Path(path).glob("*.parquet")
    typed = pq.read_schema(shredded).field("v").type.field("typed_value").type
    assert {f.name: str(f.type.field("typed_value").type) for f in typed} == {
        "b": "struct<c: struct<value: binary, typed_value: string> not null>",
        "e": "decimal128(18, 2)",
        "z": "string",
    }
    assert json.loads(Table.open(path).files()["stats"][0].as_py())["maxValues"] == {"id": 199, "more": 199}

    def check(where: str = "true") -> None:
        wanted = sorted(expected.where(where).collect())
        for session in (delta_spark, plain_spark):
            frame = session.read.format("delta").load(path).where(where)
            assert sorted(frame.selectExpr(*columns).collect()) == wanted
        assert ours(path, where).num_rows == len(wanted)

    check()
    check("id > 150")
    # Spark casts parts of shredded variants in generated code alone.
    parts = compiled_spark.read.format("delta").load(path).selectExpr("sum(try_variant_get(v, '$.e', 'double'))")
    assert parts.collect() == [(sum(i / 4 for i in range(200) if i % 11 and i % 7 and i % 5),)]
    DeltaTable.forPath(delta_spark, path).delete("id = 3")
    expected = expected.where("id <> 3")
    check()
    DeltaTable.forPath(delta_spark, path).alter().setProperties({"delta.enableVariantShredding": False})
    before = set(Path(path).glob("*.parquet"))
    save(delta_spark.sql(query).where("id = 3"), path, "append")
    [plain] = set(Path(path).glob("*.parquet")) - before
    assert {f.name for f in pq.read_schema(plain).field("v").type} == {"value", "metadata"}
    expected = plain_spark.sql(query).selectExpr(*columns)
    check()


def test_polars_reads_what_was_written(write_spark: SparkSession, table: str) -> None:
    polars = pytest.importorskip("polars", reason="needs the peers")
    frame = every_type(write_spark).select("id", "l", "d", "st", "da", "ts", "de", "ar", "sr")
    save(frame, table)
    theirs = polars.scan_delta(table).filter(polars.col("id") >= 2).collect().to_arrow()
    assert [comparable(row) for row in rows(theirs)] == [comparable(r) for r in rows(frame.toArrow()) if r["id"] >= 2]


def test_c438_c439_timestamps_are_64_bit_microseconds_in_utc(write_spark: SparkSession, table: str) -> None:
    save(every_type(write_spark), table)
    [file] = [add["path"] for add in actions(table, 0, "add")][:1]
    schema = pq.ParquetFile(f"{table}/{file}").schema
    column = next(schema.column(i) for i in range(len(schema)) if schema.column(i).path == "ts")
    assert column.physical_type == "INT64"
    assert "isAdjustedToUTC=true" in str(column.logical_type)
    assert "microseconds" in str(column.logical_type)


def test_void_columns_are_not_stored(write_spark: SparkSession, table: str) -> None:
    save(write_spark.range(2).withColumn("v", functions.lit(None)), table)
    assert Table.open(table).schema.names == ("id",)


def test_metadata_of_columns_is_kept_unless_it_belongs_to_a_table(write_spark: SparkSession, table: str) -> None:
    noted = {"comment": "the key", "mine": 1, "delta.columnMapping.id": 4, "CURRENT_DEFAULT": "1"}
    save(write_spark.range(1).withMetadata("id", noted), table)
    assert dict(Table.open(table).schema.fields[0].metadata) == {"comment": "the key", "mine": 1}


# -------------------------------------------------------------------------------------------------- partitions
ODD_VALUES = [
    "plain", "a/b", "a=b", "100%", "sp ace", " lead", "ü\U0001f600", "q\"'`", "x:y", "a\\b", "new\nline", "{}[]^#?&+;,",
    "..", "%41", "tab\t", None, "", "__HIVE_DEFAULT_PARTITION__", "n" * 300,
]  # fmt: skip


def test_c006_c138_c417_odd_partition_values(write_spark: SparkSession, table: str) -> None:
    frame = write_spark.createDataFrame(list(enumerate(ODD_VALUES)), "id int, p string")
    save(frame, table, partition_by=["p"])
    expected = [{"id": i, "p": p or None} for i, p in enumerate(ODD_VALUES)]
    assert rows(ours(table)) == expected
    deltalake = pytest.importorskip("deltalake", reason="needs the peers")
    theirs = rows(pa.table(deltalake.DeltaTable(table).to_pyarrow_table()).select(["id", "p"]))
    assert theirs == expected
    for i, value in enumerate(ODD_VALUES):
        if value:
            quoted = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
            assert ours(table, f"p = '{quoted}'").column("id").to_pylist() == [i], value


def test_c418_c419_c422_c424_partition_values_of_every_type(write_spark: SparkSession, table: str) -> None:
    types = "id int, i int, l long, d double, bo boolean, da date, ts timestamp, de decimal(10,3)"
    moment = datetime(2024, 3, 10, 7, 30, 0, 123456, UTC)
    full = (1, -5, 2**40, 0.1, True, date(2024, 2, 29), moment, Decimal("1.500"))
    frame = write_spark.createDataFrame([full, (2, *[None] * 7)], types)
    columns = frame.columns[1:]
    save(frame, table, partition_by=columns)
    values = next(add["partitionValues"] for add in actions(table, 0, "add") if add["partitionValues"]["i"])
    assert values == {
        "i": "-5",
        "l": "1099511627776",
        "d": "0.1",
        "bo": "true",
        "da": "2024-02-29",
        "ts": "2024-03-10T07:30:00.123456Z",
        "de": "1.500",
    }
    assert [comparable(row) for row in rows(ours(table))] == [comparable(row) for row in rows(frame.toArrow())]
    for add in actions(table, 0, "add"):
        file = pq.ParquetFile(f"{table}/" + _decoded(add["path"]))
        assert file.schema_arrow.names == ["id"]


def test_c373_every_file_has_every_partition_value(write_spark: SparkSession, table: str) -> None:
    frame = write_spark.range(20).selectExpr("id", "id % 3 a", "id % 2 b")
    save(frame, table, partition_by=["b", "A"])
    assert Table.open(table).partition_columns == ("b", "a")
    for add in actions(table, 0, "add"):
        assert list(add["partitionValues"]) == ["b", "a"]
    assert len(actions(table, 0, "add")) <= 12


def test_partitioning_of_an_existing_table_is_its_own(write_spark: SparkSession, table: str) -> None:
    frame = write_spark.range(4).withColumn("p", functions.col("id") % 2)
    save(frame, table, partition_by=["p"])
    save(frame, table, "append")
    save(frame, table, "append", partition_by=["P"])
    with pytest.raises(InvalidOptionError, match="partitioned by p, but partitionBy asks for id"):
        save(frame, table, "append", partition_by=["id"])


@pytest.mark.parametrize(
    ("partition_by", "error_class"),
    [
        (["nope"], "DELTA_MISSING_PARTITION_COLUMN"),
        (["id", "p", "a"], "DELTA_INVALID_PARTITION_COLUMN_TYPE"),
        (["p", "P"], "DELTA_DUPLICATE_COLUMNS_FOUND"),
    ],
)
def test_impossible_partitionings(
    write_spark: SparkSession, table: str, partition_by: list[str], error_class: str
) -> None:
    frame = write_spark.range(1).selectExpr("id", "id p", "array(id) a")
    with pytest.raises(InvalidOperationError) as caught:
        save(frame, table, partition_by=partition_by)
    assert caught.value.error_class == error_class
    assert not Path(table).exists()


def test_all_columns_cannot_be_partition_columns(write_spark: SparkSession, table: str) -> None:
    with pytest.raises(InvalidOperationError, match="all of its columns"):
        save(write_spark.range(1), table, partition_by=["id"])


# -------------------------------------------------------------------------------------------------- statistics
def test_c141_c407_statistics_skip_files(write_spark: SparkSession, table: str) -> None:
    for start in range(0, 40, 10):
        save(write_spark.range(start, start + 10).coalesce(1), table, "append")
    scan = Table.open(table).scan(where="id BETWEEN 12 AND 17")
    assert scan.files().num_rows == 1
    assert scan.to_arrow().num_rows == 6
    assert Table.open(table).files().num_rows == 4


def test_names_with_dots_and_quotes(write_spark: SparkSession, table: str) -> None:
    frame = write_spark.sql("select 1 id, 2 `a.b`, named_struct('x.y', 3) `s.t`, 4 `back``tick`, 5 a")
    save(frame, table, partition_by=["a.b"])
    save(frame.drop("a"), table, "append")
    assert rows(ours(table))[0] == {"id": 1, "a.b": 2, "s.t": {"x.y": 3}, "back`tick": 4, "a": 5}
    assert ours(table).column("a").null_count == 1
    assert json.loads(actions(table, 0, "add")[0]["stats"])["minValues"]["s.t"] == {"x.y": 3}


def test_limits_on_files(write_spark: SparkSession, table: str) -> None:
    save(write_spark.range(0, 100, 1, 1), table, options={"maxRecordsPerFile": 30})
    counts = [json.loads(add["stats"])["numRecords"] for add in actions(table, 0, "add")]
    assert sorted(counts) == [10, 30, 30, 30]
    assert [add["path"].rpartition(".c")[2][:3] for add in actions(table, 0, "add")] == ["000", "001", "002", "003"]


@pytest.mark.parametrize(("option", "stored"), [("true", ["id", "p"]), ("false", ["id"]), (None, ["id", "p"])])
def test_c288_files_hold_the_partition_columns_where_the_option_or_the_table_says_so(
    write_spark: SparkSession, table: str, option: str | None, stored: list[str]
) -> None:
    frame = write_spark.sql("select 1 id, 'x' p")
    options = {"delta.writePartitionColumnsToParquet": "true", "writePartitionColumns": option}
    save(frame, table, partition_by=["p"], options=options)
    [add] = actions(table, 0, "add")
    assert pq.read_schema(Path(table) / add["path"]).names == stored
    assert rows(ours(table)) == [{"id": 1, "p": "x"}]


def test_properties_of_a_new_table(write_spark: SparkSession, table: str) -> None:
    options = {"delta.dataSkippingNumIndexedCols": "1", "delta.checkpointInterval": "5"}
    save(write_spark.range(3).withColumn("x", functions.col("id")), table, options=options)
    assert Table.open(table).metadata.configuration == options
    assert all(list(json.loads(a["stats"])["minValues"]) in (["id"], []) for a in actions(table, 0, "add"))


# ------------------------------------------------------------------------------------------------------ schemas
def test_append_matches_columns_by_name_whatever_their_case_and_order(write_spark: SparkSession, table: str) -> None:
    save(write_spark.createDataFrame([(1, "a", 2.0)], "id int, Name string, x double"), table)
    save(write_spark.createDataFrame([("b", 2)], "NAME string, Id int"), table, "append")
    assert rows(ours(table)) == [{"id": 1, "Name": "a", "x": 2.0}, {"id": 2, "Name": "b", "x": None}]


def test_nested_fields_are_matched_by_name_too(write_spark: SparkSession, table: str) -> None:
    save(
        write_spark.sql(
            "select 1 id, named_struct('a', 1, 'b', 'x') s, array(named_struct('p', 1L, 'q', 2)) l, "
            "map('k', named_struct('u', 1L, 'w', true)) m"
        ),
        table,
    )
    save(
        write_spark.sql(
            "select 2 id, named_struct('B', 'y') s, array(named_struct('Q', 3, 'p', 4)) l, "
            "map('k', named_struct('W', false)) m"
        ),
        table,
        "append",
    )
    assert rows(ours(table))[1] == {
        "id": 2,
        "s": {"a": None, "b": "y"},
        "l": [{"p": 4, "q": 3}],
        "m": [("k", {"u": None, "w": False})],
    }


def test_extra_columns_are_shown_and_refused(write_spark: SparkSession, table: str) -> None:
    save(write_spark.range(1), table)
    frame = write_spark.range(1).selectExpr("id", "1 AS new", "named_struct('a', 1) s")
    with pytest.raises(SchemaMismatchError, match="mergeSchema") as caught:
        save(frame, table, "append")
    assert [(d.path, d.table) for d in caught.value.facts["differences"]] == [(("new",), None), (("s",), None)]
    assert "not a column of the table" in str(caught.value)
    assert len(commits(table)) == 1


def test_values_are_never_changed_to_fit(write_spark: SparkSession, table: str) -> None:
    save(write_spark.sql("select 1 id, 1 i, 1.5f f, cast(1 as decimal(5,1)) d, array(1) a"), table)
    frame = write_spark.sql("select 1L id, 'x' i, 2.5D f, cast(1 as decimal(6,2)) d, array('x') a")
    with pytest.raises(SchemaMismatchError) as caught:
        save(frame, table, "append")
    assert {".".join(d.path): d.problem for d in caught.value.facts["differences"]} == {
        "i": "a different kind of type",
        "f": "values could be rounded",
        "d": "digits after the decimal point would be lost",
        "a.element": "a different kind of type",
    }


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_numbers_that_fit_are_cast_and_others_refused(write_spark: SparkSession, table: str, ansi: str) -> None:
    save(write_spark.sql("select 1 id, array(1Y) a, cast(1 as decimal(4,1)) d, 'x' s, 1.5D x"), table)
    write_spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        save(write_spark.sql("select 2L id, array(-128L) a, 999 d, 7 s, 2.5f x"), table, "append")
        assert rows(ours(table))[1] == {"id": 2, "a": [-128], "d": Decimal("999.0"), "s": "7", "x": 2.5}
        for wrong in ("3000000000L id", "1 id, array(200) a", "1 id, cast(99999 as decimal(5,0)) d"):
            with pytest.raises(ConstraintViolationError, match="does not fit") as caught:
                save(write_spark.sql(f"select {wrong}"), table, "append")
            assert caught.value.error_class == "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
    finally:
        write_spark.conf.unset("spark.sql.ansi.enabled")
    assert len(commits(table)) == 2


def test_not_null_columns_refuse_null(write_spark: SparkSession, table: str) -> None:
    save(write_spark.sql("select 1 id, named_struct('a', 1, 'b', 2) s"), table)
    _edit_schema(table, lambda fields: fields[0].update(nullable=False))
    _edit_schema(table, lambda fields: fields[1]["type"]["fields"][0].update(nullable=False))
    with pytest.raises(ConstraintViolationError, match=r"'s\.a' is NOT NULL, but the struct around it is null"):
        save(write_spark.sql("select 2 id, cast(null as struct<a:int,b:int>) s"), table, "append")
    with pytest.raises(ConstraintViolationError, match="'id' is NOT NULL, but 1 of its values"):
        save(write_spark.sql("select cast(null as int) id, named_struct('a', 1) s"), table, "append")
    with pytest.raises(ConstraintViolationError, match=r"'s\.a' is NOT NULL"):
        save(write_spark.sql("select 3 id, named_struct('b', 2) s"), table, "append")
    assert len(commits(table)) == 1


@pytest.mark.parametrize(
    ("select", "error_class"),
    [
        ("1 AS `a b`", "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        ("named_struct('a,b', 1) s", "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        ("1 AS a, 2 AS A", "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ("array(named_struct('a', 1, 'A', 2)) l", "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ("null v", "DELTA_EMPTY_DATA"),
        ("interval 1 day d", "DELTA_UNSUPPORTED_DATA_TYPES"),
        ("array(null) l", "DELTA_FAILED_TO_MERGE_FIELDS"),
    ],
)
def test_schemas_that_no_table_has(write_spark: SparkSession, table: str, select: str, error_class: str) -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        save(write_spark.sql(f"select {select}"), table)
    assert caught.value.error_class == error_class
    assert not Path(table).exists()


# ------------------------------------------------------------------------------------------------------ options
@pytest.mark.parametrize(
    "options",
    [
        {"txnAppId": "a"},
        {"txnVersion": 1},
        {"txnAppId": "a", "txnVersion": "-1"},
        {"txnAppId": "a", "txnVersion": "²"},
        {"txnAppId": "a", "txnVersion": 2**63},
        {"compression": "middle-out"},
        {"maxRecordsPerFile": "many"},
        {"maxRecordsPerFile": "³"},
        {"delta.checkpontInterval": "3"},
        {"delta.checkpointInterval": "often"},
        {"mergeSchema": "perhaps"},
        {"writePartitionColumns": "some"},
        {"timeZone": "Asia/Kathmandu"},
        {"partitionOverwriteMode": "clever"},
        {"replaceWhere": " "},
        {"replaceWhere": "id = 1", "replaceUsing": "id"},
        {"replaceUsing": "id", "partitionOverwriteMode": "dynamic"},
        {"replaceUsing": ","},
        {"targetAlias": "t"},
        {"partitionBy": "id", "clusterBy": "id"},
    ],
)
def test_illegal_options(write_spark: SparkSession, table: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError):
        save(write_spark.range(1), table, options=options)
    assert not Path(table).exists()


def test_options_that_ask_for_nothing_are_accepted(write_spark: SparkSession, table: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeltaWarning)
        save(write_spark.range(1), table, options={"mergeSchema": "false", "partitionOverwriteMode": "STATIC"})


def test_an_unknown_option_is_named(write_spark: SparkSession, table: str) -> None:
    with pytest.warns(DeltaWarning, match="'userMetdata' is not known.*'userMetadata'"):
        save(write_spark.range(1), table, options={"userMetdata": "x"})


# ---------------------------------------------------------------------------------------------- when it goes wrong
def test_c015_a_failing_task_leaves_the_table_as_it_was(write_spark: SparkSession, table: str) -> None:
    save(write_spark.range(3), table)
    before = (Table.open(table).version, rows(ours(table)))
    broken = write_spark.range(10).selectExpr("if(id = 7, raise_error('broken row'), id) id")
    with pytest.raises(Exception, match="broken row"):
        save(broken, table, "append")
    assert (Table.open(table).version, rows(ours(table))) == before


def test_c015_a_failing_task_leaves_no_table(write_spark: SparkSession, table: str) -> None:
    with pytest.raises(Exception, match="broken row"):
        save(write_spark.range(1).selectExpr("cast(raise_error('broken row') as int) id"), table)
    assert not Path(table, "_delta_log").exists()


def test_c376_append_only_tables_refuse_overwrite(write_spark: SparkSession, table: str) -> None:
    save(write_spark.range(1), table, options={"delta.appendOnly": "true"})
    save(write_spark.range(1), table, "append")
    with pytest.raises(AppendOnlyTableError, match="appendOnly"):
        save(write_spark.range(1), table, "overwrite")


def test_overwrite_conflicts_with_an_append_that_came_first(
    write_spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyspark_delta.spark.engine.write.save as save_modes

    save(write_spark.range(1), table)
    written = save_modes.write_frame

    def overtaken(frame: DataFrame, context: Any, **more: Any) -> pa.Table:
        files = written(frame, context, **more)
        with monkeypatch.context() as patch:
            patch.setattr(save_modes, "write_frame", written)
            save(write_spark.range(5), table, "append")
        return files

    monkeypatch.setattr(save_modes, "write_frame", overtaken)
    with pytest.raises(ConcurrentAppendError, match=r"Version 1 \(WRITE by pyspark-delta"):
        save(write_spark.range(1), table, "overwrite")
    monkeypatch.setattr(save_modes, "write_frame", overtaken)
    assert save(write_spark.range(2), table, "append") == 3  # blind appends go on after the winner


@pytest.mark.parametrize(
    "table_id",
    [
        "dat/deletion_vectors",
        "dat/all_primitive_types",
        "dat/nested_types",
        "dat/multi_partitioned",
        "dat/iceberg_compat_v1",
        "delta-kernel/column-mapping-id",
        "delta-kernel/data-reader-partition-values-column-mapping-name",
        "delta-spark/dbr_8_1_generated_columns",
    ],
)
def test_golden_tables_are_written_to(
    write_spark: SparkSession, golden_table: Callable[[str], Path], tmp_path: Path, table_id: str
) -> None:
    copy = str(tmp_path / "copy")
    golden = golden_table(table_id)
    shutil.copytree(golden / "delta" if (golden / "delta").is_dir() else golden, copy)
    before = ours(copy)
    frame = frame_of_arrow(write_spark, before)
    version = Table.open(copy).version
    first, second = (version + 1, version + 2) if before.num_rows else (None, None)
    assert save(frame, copy, "append") == first
    assert ours(copy).num_rows == 2 * before.num_rows
    assert save(frame, copy, "overwrite") == second
    assert sorted(map(repr, ours(copy).to_pylist())) == sorted(map(repr, before.to_pylist()))


def _edit_schema(location: str, edit: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change the schema in version 0, as another writer would have made it."""
    path = Path(location, "_delta_log", f"{0:020d}.json")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    metadata = next(line["metaData"] for line in lines if "metaData" in line)
    schema = json.loads(metadata["schemaString"])
    edit(schema["fields"])
    metadata["schemaString"] = json.dumps(schema)
    path.unlink()
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for checksum in Path(location, "_delta_log").glob("*.crc"):
        checksum.unlink()


def _decoded(path: str) -> str:
    from urllib.parse import unquote

    return unquote(path)


def test_a_write_without_rows_makes_no_version(delta_spark: SparkSession, tmp_path: Path) -> None:
    """As in delta-spark, unless it creates the table, changes the schema, or has an application transaction."""
    path, none = str(tmp_path / "t"), delta_spark.range(0)
    save(none, path)
    for write in (
        lambda: save(none, path, "append", options={"userMetadata": "why"}),
        lambda: save(none, path, "overwrite"),
        lambda: save(none, path, "overwrite", options={"replaceWhere": "id = 1"}),
        lambda: delta_spark.sql(f"INSERT INTO delta.`{path}` SELECT id FROM range(5) WHERE id > 100"),
        lambda: delta_spark.sql(f"INSERT OVERWRITE delta.`{path}` SELECT id FROM range(5) WHERE false"),
        lambda: none.writeTo(f"delta.`{path}`").append(),
    ):
        write()
        assert Table.open(path).version == 0
    assert save(none, path, "append", options={"txnAppId": "job", "txnVersion": 1}) == 1
    assert save(none.selectExpr("id", "1 AS x"), path, "append", options={"mergeSchema": True}) == 2
