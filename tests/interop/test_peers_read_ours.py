"""Tables written here, read by deltalake, polars and delta-spark; and written to by turns with delta-spark."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from examples.flights import append_december, load_flights, write_first_months
from pyspark.sql import DataFrame, SparkSession
from tests.interop.conftest import DeltaSparkServer
from tests.interop.content import content

from pyspark_delta.table import Table

EVERY_TYPE = """select * from values
    (1Y, 2S, 3, 4L, 1.5F, 2.5D, 1.10BD, 12345678901234567890123456789012345678BD, true, 'text', X'00FF',
     date'2024-01-31', timestamp'2024-01-31 12:34:56.123456', array(1, null), map('k', array(1L)),
     named_struct('x', 1, 'y', named_struct('z', 'deep', 'w', array(named_struct('v', 1.25BD))))),
    (-128Y, -32768S, -2147483648, -9223372036854775808L, float('NaN'), double('-Infinity'), -1.10BD, -1BD, false, '',
     X'', date'1900-01-01', timestamp'1900-01-03 00:00:00', array(), map(), named_struct('x', null, 'y', null)),
    (null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null)
    as t(b, s, i, l, f, d, de, big, bo, st, bi, da, ts, ar, ma, stru)"""

PARTITIONED = """select * from values
    (1, 'a/b=c %20 "x"', 1Y, 2S, 3, 4L, 1.5F, 2.5D, 1.10BD, true, date'2024-01-31',
     timestamp'2024-01-31 12:34:56.123456'),
    (2, 'ü/日本\\'#?', -1Y, -2S, -3, -4L, -1.5F, -2.5D, -1.10BD, false, date'1969-12-31',
     timestamp'1969-12-31 23:59:59'),
    (3, null, null, null, null, null, null, null, null, null, null, null),
    (4, ' lead:trail ', 0Y, 0S, 0, 0L, 0F, 0D, 0.00BD, true, date'0001-01-01', timestamp'2262-04-11 00:00:00')
    as t(id, s, b, sh, i, l, f, d, de, bo, da, ts)"""


def write(frame: DataFrame, path: Path, mode: str = "error", partition_by: Sequence[str] = (), **options: Any) -> None:
    """Write a frame as users do."""
    frame.write.format("delta").mode(mode).options(**options).partitionBy(*partition_by).save(str(path))


def every_type(spark: SparkSession, path: Path) -> None:
    write(spark.sql(EVERY_TYPE), path)


def partitioned(spark: SparkSession, path: Path) -> None:
    write(spark.sql(PARTITIONED), path, partition_by=("s", "b", "sh", "i", "l", "f", "d", "de", "bo", "da", "ts"))


def appended(spark: SparkSession, path: Path) -> None:
    write(spark.range(0, 100).selectExpr("id", "concat('v', id) as v"), path)
    write(spark.range(100, 150).selectExpr("id", "concat('w', id) as v"), path, "append", userMetadata="second")
    write(spark.range(150, 160).selectExpr("id", "null as v"), path, "append")


def overwritten(spark: SparkSession, path: Path) -> None:
    write(spark.range(0, 100).selectExpr("id", "id % 3 as p"), path, partition_by=("p",))
    write(spark.range(5).selectExpr("id", "id % 2 as p"), path, "overwrite")


def odd_names(spark: SparkSession, path: Path) -> None:
    write(spark.sql("select 1 as `größe`, 2 as `a.b`, 3 as `x-y`, 'p q' as `teil.é`"), path, partition_by=("teil.é",))


def escaped_partition_name(spark: SparkSession, path: Path) -> None:
    write(spark.sql("select 1 as id, 'p q' as `part#%`"), path, partition_by=("part#%",))


def no_rows(spark: SparkSession, path: Path) -> None:
    write(spark.sql("select 1 as a, 'x' as b where false"), path)


def many_files(spark: SparkSession, path: Path) -> None:
    write(spark.range(1000).repartition(3), path, maxRecordsPerFile=100, compression="zstd")


MADE: dict[str, Callable[[SparkSession, Path], None]] = {
    made.__name__: made
    for made in (every_type, partitioned, appended, overwritten, odd_names, escaped_partition_name, no_rows, many_files)
}


@pytest.fixture(scope="session")
def ours(our_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of tables that were written here."""
    folder = tmp_path_factory.mktemp("ours")
    for name, make in MADE.items():
        make(our_spark, folder / name)
    return folder


def read_here(path: Path, version: int | None = None) -> pa.Table:
    """The rows as this package reads them without Spark."""
    return Table.open(path, version=version).scan().to_arrow()


@pytest.mark.parametrize("name", MADE)
def test_spark_reads_what_it_wrote(ours: Path, our_spark: SparkSession, name: str) -> None:
    found = our_spark.read.format("delta").load(str(ours / name)).toArrow()
    assert content(found) == content(read_here(ours / name))


def test_written_rows_are_those_of_the_frame(ours: Path, our_spark: SparkSession) -> None:
    typed = our_spark.sql(EVERY_TYPE).drop("stru").toArrow()  # Spark itself fails to hand over null structs of it
    assert content(read_here(ours / "every_type").drop_columns("stru")) == content(typed)
    assert content(read_here(ours / "partitioned")) == content(our_spark.sql(PARTITIONED).toArrow())
    assert read_here(ours / "appended").num_rows == 160
    assert sorted(read_here(ours / "overwritten").column("id").to_pylist()) == list(range(5))
    assert read_here(ours / "overwritten", 0).num_rows == 100


@pytest.mark.parametrize("name", MADE)
def test_deltalake_reads_ours(ours: Path, name: str) -> None:
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed; `make test` installs it")
    peer = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(ours / name))).execute("select * from t")
    assert content(pa.table(peer.read_all())) == content(read_here(ours / name))


# polars takes the directories of partitions for columns, without undoing the escapes in their names.
@pytest.mark.parametrize("name", [name for name in MADE if name != "escaped_partition_name"])
def test_polars_reads_ours(ours: Path, name: str) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed; `make test` installs it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = polars.read_delta(str(ours / name)).to_arrow()
    expected = read_here(ours / name)
    if "ma" in found.schema.names:  # polars has no maps
        found, expected = found.drop_columns("ma"), expected.drop_columns("ma")
    assert content(found.cast(expected.schema)) == content(expected)


@pytest.mark.parametrize("name", MADE)
def test_delta_spark_reads_ours(ours: Path, delta_spark_server: DeltaSparkServer, name: str) -> None:
    latest = Table.open(ours / name).version
    for version in range(latest + 1):
        found = delta_spark_server.read(ours / name, version)
        assert content(found) == content(read_here(ours / name, version))


def test_f37_delta_spark_shows_our_history(ours: Path, delta_spark_server: DeltaSparkServer) -> None:
    history = delta_spark_server.ask("history", path=str(ours / "appended"))
    assert [(entry["version"], entry["operation"]) for entry in history] == [(0, "WRITE"), (1, "WRITE"), (2, "WRITE")]
    assert history[1]["userMetadata"] == "second"
    assert history[1]["operationParameters"]["mode"] == "Append"
    assert history[1]["operationMetrics"]["numOutputRows"] == "50"
    assert [entry.get("readVersion") for entry in history] == [None, 0, 1]
    assert all(entry["engineInfo"].startswith("pyspark-delta/") for entry in history)
    assert [entry["isBlindAppend"] for entry in history] == [True, True, True]
    own = Table.open(ours / "appended").history()
    assert [entry["version"] for entry in own] == [2, 1, 0]


@pytest.fixture(scope="module")
def flights(our_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table of the demonstration: all flights, as `examples/flights.py` writes them."""
    folder = tmp_path_factory.mktemp("flights")
    frame = load_flights(our_spark, str(folder))
    write_first_months(frame, folder / "table")
    append_december(frame, folder / "table")
    return folder / "table"


def in_order(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows in the types and the column order of a schema, sorted by all columns: equal rows, equal tables."""
    rows = rows.select(schema.names).cast(schema)
    return rows.sort_by([(name, "ascending") for name in schema.names]).combine_chunks()


def test_peers_read_the_table_of_the_demonstration(flights: Path, delta_spark_server: DeltaSparkServer) -> None:
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed; `make test` installs it")
    polars = pytest.importorskip("polars", reason="polars is not installed; `make test` installs it")
    rows = read_here(flights)
    expected = in_order(rows, rows.schema)
    assert expected.num_rows == 336_776
    assert read_here(flights, 0).num_rows == 308_641
    table = deltalake.DeltaTable(str(flights))
    found = pa.table(deltalake.QueryBuilder().register("t", table).execute("select * from t").read_all())
    assert in_order(found, rows.schema).equals(expected), "deltalake"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = polars.read_delta(str(flights)).to_arrow()
    assert in_order(found, rows.schema).equals(expected), "polars"
    found = delta_spark_server.read(flights)
    assert in_order(found, rows.schema).equals(expected), "delta-spark"
    assert delta_spark_server.read(flights, 0).num_rows == 308_641


def test_delta_spark_and_this_package_write_by_turns(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, tmp_path: Path
) -> None:
    path = tmp_path / "by turns"
    write(our_spark.range(10).selectExpr("id", "'ours' as v", "id % 2 as p"), path, partition_by=("p",))
    delta_spark_server.ask(
        "append", path=str(path), select="select id + 10 as id, 'theirs' v, id % 3 as p from range(5)"
    )
    delta_spark_server.sql(f"update delta.`{path}` set v = 'updated' where id = 3")
    assert content(read_here(path)) == content(delta_spark_server.read(path))
    write(our_spark.range(20, 25).selectExpr("id", "'ours again' as v", "7L as p"), path, "append")
    delta_spark_server.sql(f"delete from delta.`{path}` where id = 20", f"optimize delta.`{path}`")
    write(our_spark.range(30, 31).selectExpr("id", "'last' as v", "null as p"), path, "append")
    found = read_here(path)
    assert content(found) == content(delta_spark_server.read(path))
    assert content(found) == content(our_spark.read.format("delta").load(str(path)).toArrow())
    expected = dict.fromkeys(range(10), "ours") | dict.fromkeys(range(10, 15), "theirs") | {3: "updated"}
    expected |= dict.fromkeys(range(21, 25), "ours again") | {30: "last"}
    assert dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == expected


def test_appends_to_a_table_of_delta_spark_with_a_checkpoint(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, tmp_path: Path
) -> None:
    path = tmp_path / "theirs"
    delta_spark_server.sql(
        f"create table delta.`{path}` (id long, s string) using delta tblproperties ('delta.checkpointInterval' = '2')",
        *(f"insert into delta.`{path}` values ({n}, 'n{n}')" for n in range(3)),
    )
    write(our_spark.range(100, 103).selectExpr("id", "'ours' as s"), path, "append")
    delta_spark_server.ask("append", path=str(path), select="select 200L as id, 'after' as s")
    write(our_spark.range(300, 301).selectExpr("id", "'end' as s"), path, "append")
    assert content(read_here(path)) == content(delta_spark_server.read(path))
    assert sorted(read_here(path)["id"].to_pylist()) == [0, 1, 2, 100, 101, 102, 200, 300]
    operations = [entry["operation"] for entry in delta_spark_server.ask("history", path=str(path))]
    assert operations == ["CREATE TABLE", "WRITE", "WRITE", "WRITE", "WRITE", "WRITE", "WRITE"]
