"""The Catalyst scan inside Spark's planner: what is skipped, pruned, reused, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from tests.spark.made_tables import DataFile, field_json, make_table

from pyspark_delta.errors import DataFileError, DeletionVectorError, InvalidOperationError, SchemaMismatchError
from pyspark_delta.scan.file_source import file_source
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.engine.write.save import save
from pyspark_delta.spark.frames.public_scan import data_frame, frame_can_read
from pyspark_delta.spark.session.enable import disable, enable


@pytest.fixture(scope="module")
def metered(spark: SparkSession) -> Iterator[SparkSession]:
    """An enabled session whose plans are not changed while they run, so that their metrics can be found."""
    session = enable(spark.newSession())
    session.conf.set("spark.sql.adaptive.enabled", "false")
    yield session
    disable(session)


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Twelve files of ten rows: `id` is clustered, `day` is the partition column with three files each."""
    files = [
        DataFile(
            pa.table({"id": list(range(n * 10, n * 10 + 10)), "name": [f"n{i}" for i in range(10)]}),
            {"day": None if n // 3 == 3 else f"2024-01-0{n // 3 + 1}"},
        )
        for n in range(12)
    ]
    return make_table(tmp_path_factory.mktemp("days") / "t", files, partition_by={"day": "date"})


def load(session: SparkSession, path: str) -> DataFrame:
    return session.read.format("delta").load(path)


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())  # type: ignore[operator]


def files_read(frame: DataFrame) -> list[int]:
    """Runs the frame; the number of files that each scan in its plan read."""
    frame = frame.select("*")  # metrics of the driver are sent once for each plan
    frame.collect()
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()  # type: ignore[operator]
    counts = []
    for index in range(leaves.size()):
        metric = leaves.apply(index).metrics().get("numFiles")
        if metric.isDefined():
            counts.append(metric.get().value())
    return counts


@pytest.mark.parametrize("mode", ["simple", "extended", "formatted"])
def test_plans_name_the_table_and_its_version(
    metered: SparkSession, days: str, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    load(metered, days).where("id > 5").explain(mode=mode)
    assert f"Scan parquet delta.{days}@v0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("condition", "files", "rows"),
    [
        ("id = 57", 1, 1),
        ("id BETWEEN 35 AND 44", 2, 10),
        ("id IN (1, 2, 118)", 2, 3),
        (f"id IN ({', '.join(str(i) for i in range(20, 40))})", 2, 20),
        ("id > 1000", 0, 0),
        ("id % 1000 = 57", 12, 1),
        ("cast(id AS string) = '57'", 12, 1),
        ("day = DATE '2024-01-02'", 3, 30),
        ("day = DATE '2024-01-02' AND id < 40", 1, 10),
        ("day IS NULL", 3, 30),
        ("day IS NOT NULL AND id >= 80", 1, 10),
        ("day > DATE '2024-01-01' OR id = 5", 12, 61),  # Spark hands over only what names either kind
        ("dayofmonth(day) = 3", 3, 30),  # no counterpart in the predicate tree: evaluated by Catalyst
        ("date_format(day, 'yyyy') = '2024' AND NOT day <=> DATE '2024-01-01'", 6, 60),
        ("name LIKE 'n1%'", 12, 12),
        ("name = 'x'", 0, 0),
        ("name LIKE 'x%'", 0, 0),
        ("rand() < 2 AND id < 10", 1, 10),
    ],
)
def test_files_are_skipped(metered: SparkSession, days: str, condition: str, files: int, rows: int) -> None:
    frame = load(metered, days).where(condition)
    assert sum(files_read(frame)) == files
    assert frame.count() == rows


def test_files_are_skipped_in_sql_over_views_and_joins(metered: SparkSession, days: str) -> None:
    load(metered, days).createOrReplaceTempView("days")
    assert files_read(metered.sql("SELECT count(*) FROM days d WHERE d.id < 10")) == [1]
    joined = metered.sql("SELECT a.id FROM days a JOIN days b ON a.id = b.id WHERE a.id = 3 AND b.day IS NOT NULL")
    assert files_read(joined) == [1, 1]
    assert [row.id for row in joined.collect()] == [3]


def test_time_zone_of_the_session_does_not_change_an_instant(spark: SparkSession, tmp_path: Path) -> None:
    """The literal means 01:00 UTC in Berlin's zone, so only the second file may be left."""
    type_ = pa.timestamp("us", tz="UTC")
    files = [DataFile(pa.table({"id": [n]}), {"at": f"1970-01-01T0{n}:00:00.000000Z"}) for n in range(3)]
    path = make_table(tmp_path / "t", files, partition_by={"at": "timestamp"})
    session = enable(spark.newSession())
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        frame = load(session, path).where("at = TIMESTAMP '1970-01-01 02:00:00'")
        assert files_read(frame) == [1]
        assert frame.toArrow()["at"].to_pylist() == pa.array([3_600_000_000], type_).to_pylist()
    finally:
        disable(session)


def test_dynamic_partition_pruning(metered: SparkSession, days: str, tmp_path: Path) -> None:
    load(metered, days).createOrReplaceTempView("facts")
    labels = pa.table({"label": ["x", "y"]})
    path = make_table(
        tmp_path / "labels",
        [DataFile(labels.slice(n, 1), {"day": f"2024-01-0{n + 2}"}) for n in range(2)],
        partition_by={"day": "date"},
    )
    load(metered, path).createOrReplaceTempView("labels")
    frame = metered.sql("SELECT f.id FROM facts f JOIN labels l ON f.day = l.day WHERE l.label = 'x'")
    assert "dynamicpruning" in plan(frame)
    assert files_read(frame) == [3]
    assert len(frame.collect()) == 30


def test_columns_are_pruned(metered: SparkSession, days: str) -> None:
    assert "ReadSchema: struct<id:bigint>" in plan(load(metered, days).select("id", "day"))
    assert "ReadSchema: struct<>" in plan(load(metered, days).select("day"))


def test_projection_that_keeps_writes_out_of_views_is_not_executed(metered: SparkSession, days: str) -> None:
    frame = load(metered, days)
    assert "Project" in str(frame._jdf.queryExecution().analyzed().toString())  # type: ignore[operator]
    assert "Project" not in plan(frame)
    assert "FileScan" in plan(frame)


def test_nested_columns_are_pruned_under_column_mapping(metered: SparkSession, tmp_path: Path) -> None:
    inner = [
        field_json("a", "long", **{"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "p2"}),
        field_json("b", "string", **{"delta.columnMapping.id": 3, "delta.columnMapping.physicalName": "p3"}),
    ]
    mapped = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "p1"}
    rows = pa.table({"p1": pa.array([{"p2": 1, "p3": "x"}, None, {"p2": None, "p3": "y"}])})
    path = make_table(
        tmp_path / "t",
        [DataFile(rows)],
        fields=[field_json("s", {"type": "struct", "fields": inner}, comment="kept", **mapped)],
        configuration={"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"},
        features=("columnMapping",),
    )
    frame = load(metered, path)
    assert [row.asDict(recursive=True) for row in frame.collect()] == [
        {"s": {"a": 1, "b": "x"}},
        {"s": None},
        {"s": {"a": None, "b": "y"}},
    ]
    assert "ReadSchema: struct<p1:struct<p2:bigint>>" in plan(frame.select("s.a"))
    assert frame.schema["s"].metadata == {"comment": "kept"}


def test_deletion_vectors_touch_only_their_files(metered: SparkSession, tmp_path: Path) -> None:
    files = [
        DataFile(pa.table({"id": list(range(100))}), deleted=[0, 63, 64, 99]),
        DataFile(pa.table({"id": list(range(100, 200))})),
        DataFile(pa.table({"id": list(range(200, 300))}), deleted=list(range(100))),
    ]
    frame = load(metered, make_table(tmp_path / "t", files))
    kept = sorted(row.id for row in frame.collect())
    assert kept == [i for i in range(200) if i not in (0, 63, 64, 99)]
    assert sorted(files_read(frame)) == [1, 2]
    scans = [line for line in plan(frame).splitlines() if "FileScan" in line]
    assert ["_tmp_metadata_row_index" in line for line in scans] == [False, True]
    assert sorted(files_read(frame.where("id = 64"))) == [0, 1]
    assert frame.where("id IN (64, 65)").count() == 1


def test_missing_deletion_vector_file_is_an_error_before_any_row(
    metered: SparkSession, golden_table: Callable[[str], Path]
) -> None:
    frame = load(metered, str(golden_table("delta-spark/table-with-dv-small")))
    with pytest.raises(DeletionVectorError, match="does not exist"):
        frame.collect()
    with pytest.raises(DeletionVectorError):
        frame.limit(1).collect()


def test_row_ids_and_commit_versions(metered: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "stored": pa.array([None, 77])})
    files = [
        DataFile(rows, base_row_id=10, default_row_commit_version=4),
        DataFile(pa.table({"id": [3, 4]}), deleted=[0], base_row_id=20, default_row_commit_version=5),
    ]
    path = make_table(
        tmp_path / "t",
        files,
        fields=[field_json("id", "long")],
        configuration={"delta.enableRowTracking": "true", "delta.rowTracking.materializedRowIdColumnName": "stored"},
        features=("deletionVectors", "rowTracking", "domainMetadata"),
    )
    frame = metered.read.format("delta").option("includeRowTracking", "true").load(path)
    assert sorted(tuple(row) for row in frame.collect()) == [(1, 10, 4), (2, 77, 4), (4, 21, 5)]
    assert frame.columns == ["id", "_row_id", "_row_commit_version"]
    frame = load(metered, path)
    assert frame.columns == ["id"]
    ids = frame.select("id", "_metadata.row_id", "_metadata.row_commit_version", "_metadata.base_row_id")
    assert sorted(tuple(row) for row in ids.collect()) == [(1, 10, 4, 10), (2, 77, 4, 10), (4, 21, 5, 20)]
    assert [row.id for row in frame.where("_metadata.row_id = 77").collect()] == [2]
    version = frame.where("id = 4").select("_metadata.default_row_commit_version").first()
    assert version is not None
    assert version.default_row_commit_version == 5
    assert "ReadSchema: struct<id:bigint>" in plan(frame)


def test_the_metadata_of_rows_has_ids_if_a_column_has_their_name(metered: SparkSession, tmp_path: Path) -> None:
    rows = metered.sql("select id, 'x' _row_id from range(0, 2, 1, 1)")
    save(rows, str(tmp_path), options={"delta.enableRowTracking": "true"})
    ids = load(metered, str(tmp_path)).where("_metadata.row_id = 1").select("_row_id", "_metadata.row_commit_version")
    assert ids.collect() == [("x", 0)]
    reader = metered.read.format("delta").option("includeRowTracking", "true")
    with pytest.raises(InvalidOperationError, match="has a column '_row_id'"):
        reader.load(str(tmp_path))


def test_row_ids_of_a_table_without_are_refused(metered: SparkSession, days: str) -> None:
    with pytest.raises(InvalidOperationError, match="row tracking"):
        metered.read.format("delta").option("includeRowTracking", "true").load(days)


@pytest.mark.parametrize(
    "name",
    [
        "a b.parquet",
        "50%.parquet",
        "ü/ñ é.parquet",
        "_x.parquet",
        "a#b?c.parquet",
        "q'\"\\.parquet",
        "{a}[b]*.parquet",
        "a:b.parquet",
    ],
)
def test_special_file_names(metered: SparkSession, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "sp ace %41 é"
    path = make_table(folder, [DataFile(pa.table({"id": [1, 2]}), name=name)])
    frame = load(metered, path)
    assert [row.id for row in frame.collect()] == [1, 2]
    assert len(frame.inputFiles()) == 1
    snapshot = Snapshot.load(path)
    readable = frame_can_read(metered, file_source(snapshot), snapshot.files(columns=("path",)))
    assert readable is not name.startswith("_")
    if not name.startswith("_"):
        assert [row.id for row in data_frame(metered, snapshot).collect()] == [1, 2]


def test_columns_are_nullable_whatever_files_there_are(metered: SparkSession, days: str) -> None:
    """A table with files of one partition alone has a constant in its place."""
    whole, part = Snapshot.load(days), "day = '2024-01-01'"
    for frame in (data_frame(metered, whole), data_frame(metered, whole, where=part)):
        assert frame.schema == load(metered, days).schema
    assert data_frame(metered, whole, where=part).count() == 30


def test_metadata_of_files(metered: SparkSession, days: str) -> None:
    row = load(metered, days).where("id = 57").select("_metadata.file_name", "_metadata.file_modification_time").first()
    assert row is not None
    assert row.file_name == "part-00005.parquet"
    assert row.file_modification_time.timestamp() == 1_700_000_000


@pytest.mark.since("4.0")  # for DataFrame.metadataColumn
@pytest.mark.parametrize("deleted", [((), ()), ((0, 2), ()), ((0, 2), (1,))], ids=["in no file", "in one", "in all"])
def test_metadata_is_what_spark_shows_of_the_files(
    metered: SparkSession, tmp_path: Path, deleted: tuple[tuple[int, ...], ...]
) -> None:
    tables = [pa.table({"id": [0, 1, 2], "x": [5, 6, 7]}), pa.table({"id": [3, 4], "x": [8, 9]})]
    files = [DataFile(rows, deleted=gone) for rows, gone in zip(tables, deleted, strict=True)]
    path = make_table(tmp_path / "t a", files)
    frame = load(metered, path)
    assert frame.columns == ["id", "x"]
    names = ["file_path", "file_name", "file_size", "file_block_start", "file_block_length", "row_index"]
    fields = ["id", *(f"_metadata.{name}" for name in names)]
    plain = metered.read.parquet(*(str(tmp_path / "t a" / f"part-0000{n}.parquet") for n in range(2)))
    gone = set(deleted[0]) | {3 + index for index in deleted[1]}
    expected = plain.where(~F.col("id").isin(gone) if gone else F.lit(True)).select(*fields).sort("id").collect()
    assert frame.select(*fields).sort("id").collect() == expected
    assert frame.select("*", "_metadata.file_name").columns == ["id", "x", "file_name"]
    assert [row.id for row in frame.where("_metadata.file_name LIKE '%1.parquet' AND id = 3").collect()] == [3]
    assert {row.name for row in frame.select(frame.metadataColumn("_metadata").file_name.alias("name")).collect()} == {
        "part-00000.parquet",
        "part-00001.parquet",
    }
    whole = frame.where("id = 3").select("_metadata").first()
    assert whole is not None
    assert whole._metadata.asDict()["row_index"] == 0
    twice = frame.select("id", "_metadata.row_index")
    assert twice.join(twice, "id").count() == frame.count()


def test_column_by_the_name_of_the_metadata_is_the_column(metered: SparkSession, tmp_path: Path) -> None:
    files = [DataFile(pa.table({"_metadata": [1, 2]}), deleted=[0]), DataFile(pa.table({"_metadata": [3]}))]
    frame = load(metered, make_table(tmp_path / "t", files))
    assert sorted(frame.select("_metadata").collect()) == [(2,), (3,)]


def test_equal_frames_share_cache_and_exchanges(metered: SparkSession, days: str) -> None:
    first = load(metered, days).groupBy("day").count().persist()
    try:
        first.collect()
        assert "InMemoryTableScan" in plan(load(metered, days).groupBy("day").count())
    finally:
        first.unpersist(blocking=True)
    metered.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        counts = [load(metered, days).groupBy("name").count() for _ in range(2)]
        joined = counts[0].join(counts[1].withColumnRenamed("count", "again"), "name")
        assert "ReusedExchange" in plan(joined)
    finally:
        metered.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_frame_stays_at_its_version(metered: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    metered.range(3).write.format("delta").save(path)
    frame = load(metered, path)
    metered.range(3, 5).write.format("delta").mode("append").save(path)
    assert frame.count() == 3
    assert load(metered, path).count() == 5
    assert load(metered, path + "@v0").count() == 3


def test_queries_in_many_threads(metered: SparkSession, days: str) -> None:
    def query(number: int) -> Any:
        return load(metered, days).where(F.col("id") >= number * 10).agg(F.count("*")).collect()[0][0]

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(query, range(12))) == [120 - 10 * n for n in range(12)]


def test_many_partitions_plan_in_one_call(metered: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"id": [1]})
    files = [DataFile(rows, {"p": str(n), "q": f"text {n}"}, name=f"{n}.parquet") for n in range(3000)]
    path = make_table(tmp_path / "t", files, partition_by={"p": "integer", "q": "string"})
    frame = load(metered, path)
    assert frame.where("p % 1000 = 7").select("q").collect() == [(f"text {n}",) for n in (7, 1007, 2007)]
    assert files_read(frame.where("p = 5")) == [1]
    assert frame.agg(F.sum("p")).collect()[0][0] == sum(range(3000))


def test_reading_starts_no_job_before_the_query(
    metered: SparkSession, days: str, count_jobs: Callable[[Callable[[], object]], int]
) -> None:
    assert count_jobs(lambda: load(metered, days).where("day IS NULL").schema) == 0
    assert count_jobs(lambda: load(metered, days).collect()) == 1


def test_schema_given_by_the_user(metered: SparkSession, days: str) -> None:
    reader = metered.read.format("delta")
    assert reader.schema("id BIGINT, name STRING, day DATE").load(days).count() == 120
    with pytest.raises(SchemaMismatchError, match="id") as raised:
        metered.read.format("delta").schema("id INT, name STRING, day DATE").load(days)
    assert raised.value.error_class == "DELTA_UNSUPPORTED_SCHEMA_DURING_READ"


def test_settings_of_the_session_do_not_hide_missing_files(metered: SparkSession, tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", [DataFile(pa.table({"id": [1]})), DataFile(pa.table({"id": [2]}))])
    (tmp_path / "t" / "part-00001.parquet").unlink()
    metered.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(DataFileError, match=r"part-00001\.parquet' of version 0 does not exist") as raised:
            load(metered, path).collect()
        assert raised.value.error_class == "DELTA_FILE_NOT_FOUND_DETAILED"
    finally:
        metered.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_damaged_data_files_are_named(metered: SparkSession, tmp_path: Path) -> None:
    path = make_table(tmp_path / "t a", [DataFile(pa.table({"id": [1]})), DataFile(pa.table({"id": [2]}))])
    damaged = tmp_path / "t a" / "part-00001.parquet"
    damaged.write_bytes(b"x" * damaged.stat().st_size)
    for run in (DataFrame.collect, DataFrame.toArrow):
        with pytest.raises(DataFileError, match=r"part-00001\.parquet' of version 0 cannot be read.*magic number"):
            run(load(metered, path))
    other = metered.read.schema("id long").parquet(str(damaged.rename(tmp_path / "other.parquet")))
    # It is not of a table that was read here.
    with pytest.raises(Py4JJavaError, match=r"FAILED_READ_FILE|other\.parquet is not"):
        other.collect()


def test_deletion_vector_beyond_the_end_of_its_file_is_an_error(metered: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3]})
    fitting = load(metered, make_table(tmp_path / "fitting", [DataFile(rows, deleted=[2])]))
    assert fitting.count() == 2
    frame = load(metered, make_table(tmp_path / "beyond", [DataFile(rows, deleted=[1, 3])]))
    with pytest.raises(DeletionVectorError, match=r"part-00000\.parquet' contains row 3, .* only 3 rows"):
        frame.collect()


@pytest.mark.since("4.0")  # for variants
def test_a_value_that_cannot_be_cast_is_no_damage_of_its_file(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Spark casts variants while it reads the file."""
    path = str(tmp_path / "t")
    save(delta_spark.sql("select parse_json('[1]') v"), path)
    frame = delta_spark.read.format("delta").load(path)
    with pytest.raises(SparkRuntimeException, match="INVALID_VARIANT_CAST"):
        frame.selectExpr("variant_get(v, '$', 'int')").collect()
