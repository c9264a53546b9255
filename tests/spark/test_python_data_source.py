"""`spark.read.format("delta")` in a session that nothing was done to: the Python Data Source."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import (
    DataFileError,
    InvalidOperationError,
    InvalidOptionError,
    InvalidPredicateError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedTableError,
    VersionNotFoundError,
    translate,
)
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.table import Table

pytestmark = pytest.mark.since("4.0")

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
FIRST = 1_704_110_400_000  # 2024-01-01T12:00:00Z


class HandMade:
    """A table written commit by commit, with one file for each commit."""

    def __init__(self, path: Path, fields: list[dict[str, Any]], partition_columns: tuple[str, ...] = ()) -> None:
        self.path, self._version, self._partitions = path, 0, partition_columns
        (path / "_delta_log").mkdir(parents=True)
        metadata = {
            "id": "c2d1b0a4-0000-4000-8000-000000000001",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": list(partition_columns),
            "configuration": {},
        }
        self._head = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]

    def append(self, rows: pa.Table, **partition: str | None) -> HandMade:
        """Commit the rows as one file. Commits are an hour apart."""
        name = f"part-{self._version}.parquet"
        pq.write_table(rows, self.path / name)
        columns = {
            c: rows[c] for c in rows.column_names if pa.types.is_integer(rows[c].type) and rows[c].null_count == 0
        }
        stats = {
            "numRecords": rows.num_rows,
            "minValues": {c: min(values.to_pylist()) for c, values in columns.items()},
            "maxValues": {c: max(values.to_pylist()) for c, values in columns.items()},
            "nullCount": dict.fromkeys(columns, 0),
        }
        add = {
            "path": name,
            "partitionValues": partition,
            "size": (self.path / name).stat().st_size,
            "modificationTime": FIRST,
            "dataChange": True,
            "stats": json.dumps(stats),
        }
        self.commit(*self._head, {"add": add})
        return self

    def commit(self, *actions: dict[str, Any]) -> None:
        """Write the next commit file, with its time as modification time."""
        self._head = []
        file = self.path / "_delta_log" / f"{self._version:020d}.json"
        info = {"commitInfo": {"timestamp": FIRST, "operation": "WRITE"}}
        file.write_text("".join(json.dumps(action) + "\n" for action in (info, *actions)))
        seconds = FIRST / 1000 + 3600 * self._version
        os.utime(file, (seconds, seconds))
        self._version += 1


def field(name: str, data_type: Any, *, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    """A field of a schema in JSON."""
    return {"name": name, "type": data_type, "nullable": nullable, "metadata": metadata}


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three versions: ids 0-9 in p=a, 10-19 in p=b, 20-29 in p=null."""
    fields = [field("id", "long", comment="the key"), field("name", "string"), field("p", "string")]
    table = HandMade(tmp_path_factory.mktemp("numbers") / "t", fields, ("p",))
    for start, value in ((0, "a"), (10, "b"), (20, None)):
        ids = list(range(start, start + 10))
        table.append(pa.table({"id": ids, "name": [f"n{i}" for i in ids]}), p=value)
    return table.path


@pytest.fixture
def read(plain_spark: SparkSession) -> Callable[..., DataFrame]:
    """Read a path with options, with errors as what they are."""

    @translate()
    def load(path: str | Path | None, name: str = "delta", **options: Any) -> DataFrame:
        reader = plain_spark.read.format(name).options(**options)
        return reader.load() if path is None else reader.load(str(path))

    return load


@pytest.fixture(params=["true", "false"], ids=["pushdown", "no pushdown"])
def pushdown(plain_spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """The test runs with filter push-down on and off."""
    before = plain_spark.conf.get(PUSHDOWN)
    plain_spark.conf.set(PUSHDOWN, request.param)
    yield request.param
    plain_spark.conf.set(PUSHDOWN, str(before))


def ids(frame: DataFrame) -> list[int]:
    """The ids in order."""
    return sorted(row["id"] for row in translate()(frame.collect)())


# ------------------------------------------------------------------------------------------------------ reading
@pytest.mark.parametrize("name", ["delta", "DELTA", "deltapy"])
def test_the_source_is_found_by_its_short_names(read: Callable[..., DataFrame], numbers: Path, name: str) -> None:
    assert ids(read(numbers, name)) == list(range(30))


def test_the_schema_is_nullable_and_keeps_comments(read: Callable[..., DataFrame], numbers: Path) -> None:
    assert read(numbers).schema == StructType(
        [
            StructField("id", LongType(), True, {"comment": "the key"}),
            StructField("name", StringType()),
            StructField("p", StringType()),
        ]
    )


def test_sql_reads_through_a_temporary_view(plain_spark: SparkSession, numbers: Path) -> None:
    plain_spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING delta OPTIONS (path '{numbers}', versionAsOf '1')")
    assert plain_spark.sql("SELECT p, count(*) AS n FROM v GROUP BY p ORDER BY p").collect() == [("a", 10), ("b", 10)]
    plain_spark.catalog.dropTempView("v")


def test_a_table_without_files_is_empty(read: Callable[..., DataFrame], tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t", [field("id", "long")])
    table.commit(*table._head)
    assert read(table.path).count() == 0
    assert ids(read(table.path)) == []


def test_every_type_arrives_in_spark(read: Callable[..., DataFrame], tmp_path: Path) -> None:
    moment, day = dt.datetime(2024, 2, 29, 23, 59, 59, 999_999), dt.date(1582, 10, 15)
    nested = pa.struct([("x", pa.int32()), ("l", pa.list_(pa.struct([("y", pa.string())])))])
    columns: dict[str, tuple[Any, pa.DataType, Any]] = {
        "byte": ("byte", pa.int8(), -128),
        "short": ("short", pa.int16(), 32767),
        "integer": ("integer", pa.int32(), -(2**31)),
        "long": ("long", pa.int64(), 2**63 - 1),
        "float": ("float", pa.float32(), 0.5),
        "double": ("double", pa.float64(), 1e300),
        "boolean": ("boolean", pa.bool_(), True),
        "string": ("string", pa.string(), "日本 \t"),
        "binary": ("binary", pa.binary(), b"\x00\xff"),
        "date": ("date", pa.date32(), day),
        "timestamp_ntz": ("timestamp_ntz", pa.timestamp("us"), moment),
        "decimal": ("decimal(38,10)", pa.decimal128(38, 10), Decimal("1234567890123456789012345678.0123456789")),
        "interval": ("interval day to second", pa.int64(), 90_061_000_001),
        "list": (
            {"type": "array", "elementType": "integer", "containsNull": True},
            pa.list_(pa.int32()),
            [1, None],
        ),
        "map": (
            {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
            pa.map_(pa.string(), pa.int64()),
            {"k": None, "l": 1},
        ),
        "struct": (
            {
                "type": "struct",
                "fields": [
                    field("x", "integer"),
                    field(
                        "l",
                        {
                            "type": "array",
                            "elementType": {"type": "struct", "fields": [field("y", "string")]},
                            "containsNull": True,
                        },
                    ),
                ],
            },
            nested,
            {"x": 1, "l": [{"y": "z"}, None]},
        ),
    }
    fields = [field(name, kind) for name, (kind, _, _) in columns.items()]
    table = HandMade(tmp_path / "t", fields)
    stored = {name: [list(v.items()) if name == "map" else v, None] for name, (_, _, v) in columns.items()}
    rows = pa.table({name: pa.array(stored[name], arrow) for name, (_, arrow, _) in columns.items()})
    table.append(rows)
    full, empty = sorted(read(table.path).collect(), key=lambda row: row["long"] is None)
    found = full.asDict(recursive=True)
    assert found.pop("interval") == dt.timedelta(microseconds=90_061_000_001)
    assert found == {name: value for name, (_, _, value) in columns.items() if name != "interval"}
    assert all(value is None for value in empty)


def test_constants_of_many_digits_find_their_rows(
    read: Callable[..., DataFrame], pushdown: str, tmp_path: Path
) -> None:
    """PySpark rounds the constants that it hands to a data source to 28 digits."""
    largest = Decimal("9" * 28 + "." + "9" * 10)
    table = HandMade(tmp_path / "t", [field("d", "decimal(38,10)")])
    table.append(pa.table({"d": pa.array([largest, Decimal("0.0123456789")], pa.decimal128(38, 10))}))
    for condition in (f"d >= {largest}", f"d = {largest}", f"d in ({largest}, 1)"):
        assert read(table.path).where(condition).collect() == [(largest,)]
    assert read(table.path).where("d < 1").count() == 1


def test_timestamps_are_instants(read: Callable[..., DataFrame], plain_spark: SparkSession, tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t", [field("ts", "timestamp")])
    table.append(pa.table({"ts": pa.array([dt.datetime(2024, 1, 1, 12)], pa.timestamp("us", tz="UTC"))}))
    assert read(table.path).selectExpr("unix_micros(ts) AS us").collect() == [(FIRST * 1000,)]


def test_void_columns_are_null(read: Callable[..., DataFrame], tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t", [field("id", "long"), field("v", "void")])
    table.append(pa.table({"id": [1]}))
    frame = read(table.path)
    assert frame.dtypes == [("id", "bigint"), ("v", "void")]
    assert frame.collect() == [(1, None)]


def test_c374_nulls_in_a_not_null_column_are_nulls(read: Callable[..., DataFrame], tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t", [field("id", "long"), field("v", "long", nullable=False)])
    table.append(pa.table({"id": [1]}))
    assert read(table.path).where("v IS NULL").count() == 1


def test_variants_arrive(read: Callable[..., DataFrame], golden: Path) -> None:
    tables = [path for path in golden.glob("*/*variant*") if path.is_dir() and "shred" not in path.name]
    readable = [path for path in tables if json.loads(Path(f"{path}.expected.json").read_text()).get("kind") == "table"]
    assert readable
    for path in readable:
        frame = read(path)
        assert "variant" in {kind for _, kind in frame.dtypes} | {"variant"}
        assert frame.count() == json.loads(Path(f"{path}.expected.json").read_text())["row_count"]


def test_year_month_intervals_are_refused_with_a_way_out(read: Callable[..., DataFrame], tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t", [field("id", "long"), field("ym", "interval year to month")])
    table.append(pa.table({"id": [1], "ym": pa.array([13], pa.int32())}))
    with pytest.raises(UnsupportedTableError, match=r"'ym'.*columns"), translate():
        read(table.path).collect()
    assert ids(read(table.path, columns="id")) == [1]


# ------------------------------------------------------------------------------------------------------ filters
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("id < 3", [0, 1, 2]),
        ("p = 'b' AND id IN (3, 13, 14)", [13, 14]),
        ("p IS NULL AND id <= 21", [20, 21]),
        ("p IS NOT NULL AND id >= 18", [18, 19]),
        ("NOT (id < 28)", [28, 29]),
        ("name LIKE 'n2%' AND id < 22", [2, 20, 21]),
        ("name LIKE '%9'", [9, 19, 29]),
        ("p <=> NULL AND id = 25", [25]),
        ("id > 28 OR name = 'n1'", [1, 29]),
        ("id % 10 = 7", [7, 17, 27]),
        ("id > 1000", []),
    ],
)
def test_filters_give_equal_rows_with_push_down_on_and_off(
    read: Callable[..., DataFrame], numbers: Path, pushdown: str, condition: str, expected: list[int]
) -> None:
    assert ids(read(numbers).where(condition)) == expected


@pytest.mark.since("4.1")  # older releases push no filters to Python
@pytest.mark.parametrize("pushdown", ["true"], indirect=True)
@pytest.mark.parametrize("condition", ["id >= 10 AND id < 20", "p = 'b'"])
def test_pushed_filters_skip_files(
    read: Callable[..., DataFrame], tmp_path: Path, numbers: Path, pushdown: str, condition: str
) -> None:
    copy = tmp_path / "t"
    shutil.copytree(numbers, copy)
    for part in ("part-0.parquet", "part-2.parquet"):
        (copy / part).unlink()
    assert ids(read(copy).where(condition)) == list(range(10, 20))


def test_the_option_where_skips_files_and_rows(
    read: Callable[..., DataFrame], tmp_path: Path, numbers: Path, pushdown: str
) -> None:
    copy = tmp_path / "t"
    shutil.copytree(numbers, copy)
    (copy / "part-0.parquet").unlink()
    frame = read(copy, where="id >= 15 AND (p = 'b' OR p IS NULL)")
    assert ids(frame) == list(range(15, 30))
    assert ids(frame.where("id < 17")) == [15, 16]


def test_the_option_columns_chooses_and_orders(read: Callable[..., DataFrame], numbers: Path, pushdown: str) -> None:
    frame = read(numbers, columns="p, ID", where="name = 'n13'")
    assert frame.columns == ["p", "id"]
    assert frame.collect() == [("b", 13)]
    assert frame.where("id = 1").count() == 0


# -------------------------------------------------------------------------------------------------- time travel
def test_version_as_of(read: Callable[..., DataFrame], numbers: Path) -> None:
    assert [read(numbers, versionAsOf=version).count() for version in range(3)] == [10, 20, 30]


@pytest.mark.parametrize(
    ("timestamp", "rows"),
    [("2024-01-01T12:00:00Z", 10), ("2024-01-01 13:59:59.999+00:00", 20), ("2024-01-01T14:00:00.000Z", 30)],
)
def test_timestamp_as_of(read: Callable[..., DataFrame], numbers: Path, timestamp: str, rows: int) -> None:
    assert read(numbers, timestampAsOf=timestamp).count() == rows


def test_timestamp_as_of_in_a_time_zone(read: Callable[..., DataFrame], numbers: Path) -> None:
    assert read(numbers, timestampAsOf="2024-01-01 22:00:00", timeZone="Asia/Tokyo").count() == 20


def test_path_suffixes_travel(read: Callable[..., DataFrame], numbers: Path) -> None:
    assert read(f"{numbers}@v1").count() == 20
    assert read(f"{numbers}@20240101130000000", timeZone="UTC").count() == 20


def test_a_path_that_ends_like_a_suffix_is_a_path(
    read: Callable[..., DataFrame], numbers: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "t@v0"
    shutil.copytree(numbers, copy)
    assert read(copy).count() == 30


def test_a_frame_stays_at_the_version_it_was_made_of(
    read: Callable[..., DataFrame], numbers: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "t"
    shutil.copytree(numbers, copy)
    (copy / "_delta_log" / f"{2:020d}.json").rename(tmp_path / "later.json")
    frame = read(copy)
    (tmp_path / "later.json").rename(copy / "_delta_log" / f"{2:020d}.json")
    assert frame.count() == 20
    assert read(copy).count() == 30


# ------------------------------------------------------------------------------------------------------- errors
def test_errors_of_planning_carry_their_class_in_the_text(plain_spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match=r"\[DELTA_TABLE_NOT_FOUND\] There is no Delta table at"):
        plain_spark.read.format("delta").load(str(tmp_path))


def test_a_missing_table(read: Callable[..., DataFrame], tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError) as raised:
        read(tmp_path)
    assert raised.value.location == str(tmp_path)


def test_a_missing_version(read: Callable[..., DataFrame], numbers: Path) -> None:
    with pytest.raises(VersionNotFoundError) as raised:
        read(numbers, versionAsOf=3)
    assert (raised.value.requested, raised.value.earliest, raised.value.latest) == (3, 0, 2)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"versionAsOf": 1, "timestampAsOf": "2024-01-01"}, "not both"),
        ({"versionAsOf": "one"}, "versionAsOf"),
        ({"timestampAsOf": "one"}, "is not a timestamp"),
        ({"columns": "id,nome"}, "'nome'"),
        ({"readChangeFeed": "true"}, "change data feed"),
        ({"versonAsOf": "1"}, "did you mean 'versionAsOf'"),
    ],
)
def test_bad_options_are_refused(
    read: Callable[..., DataFrame], numbers: Path, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidOptionError, match=says):
        read(numbers, **options)


def test_a_bad_predicate_is_refused(read: Callable[..., DataFrame], numbers: Path) -> None:
    with pytest.raises(InvalidPredicateError, match="nome"), translate():
        read(numbers, where="nome = 1").collect()


def test_a_path_is_needed(read: Callable[..., DataFrame]) -> None:
    with pytest.raises(InvalidOptionError, match="needs a path"):
        read(None)


def test_several_paths_are_refused(plain_spark: SparkSession, numbers: Path) -> None:
    with pytest.raises(InvalidOptionError, match="one path"), translate():
        plain_spark.read.format("delta").load([str(numbers), str(numbers)])


def test_an_error_in_a_worker_comes_back(read: Callable[..., DataFrame], numbers: Path, tmp_path: Path) -> None:
    copy = tmp_path / "t"
    shutil.copytree(numbers, copy)
    (copy / "part-1.parquet").unlink()
    with pytest.raises(DataFileError, match=r"part-1\.parquet"), translate():
        read(copy).collect()


def test_the_schema_of_the_table_may_be_repeated(plain_spark: SparkSession, numbers: Path) -> None:
    frame = plain_spark.read.format("delta").schema("id long, name string, p string").load(str(numbers))
    assert ids(frame) == list(range(30))


@pytest.mark.parametrize(
    "schema", ["id int, name string, p string", "id long, name string", "p string, name string, id long"]
)
def test_another_schema_is_refused(plain_spark: SparkSession, numbers: Path, schema: str) -> None:
    with pytest.raises(SchemaMismatchError, match=r"\.schema\(") as raised, translate():
        plain_spark.read.format("delta").schema(schema).load(str(numbers)).collect()
    assert raised.value.error_class == "DELTA_UNSUPPORTED_SCHEMA_DURING_READ"


# ------------------------------------------------------------------------------------------------------- writes
def test_a_write_to_a_catalog_table_never_loses_rows_silently(plain_spark: SparkSession) -> None:
    with pytest.raises(InvalidOperationError, match="catalog table"), translate():
        plain_spark.range(3).write.format("delta").saveAsTable("lost_by_save")
    assert not plain_spark.catalog.tableExists("lost_by_save")
    plain_spark.sql("CREATE TABLE lost_by_insert (id BIGINT) USING delta")
    try:
        with pytest.raises(InvalidOperationError, match="catalog table"), translate():
            plain_spark.sql("INSERT INTO lost_by_insert VALUES (1)")
        with pytest.raises(InvalidOptionError, match="needs a path"), translate():
            plain_spark.sql("SELECT * FROM lost_by_insert").collect()
    finally:
        plain_spark.sql("DROP TABLE lost_by_insert")


@pytest.mark.parametrize("table_id", ["delta-hist/streaming-dv-rt-append", "kernel-rs-hist/row-tracking-write"])
def test_c327_c328_row_ids_are_read_on_request(
    plain_spark: SparkSession, delta_spark: SparkSession, golden_table: Callable[[str], Path], table_id: str
) -> None:
    path = str(golden_table(table_id))
    expected = read_plan(plan_scan(Table.open(path).snapshot, row_ids=True)).read_all()
    wanted = sorted(zip(expected["_row_id"].to_pylist(), expected["_row_commit_version"].to_pylist(), strict=True))
    assert wanted
    for session in (plain_spark, delta_spark):
        rows = session.read.format("delta").option("includeRowTracking", "true").load(path).collect()
        assert sorted((row["_row_id"], row["_row_commit_version"]) for row in rows) == wanted
