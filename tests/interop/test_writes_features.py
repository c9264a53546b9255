"""Tables of delta-spark that ask something of their rows, written here and by delta-spark in turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType
from tests.interop.conftest import DeltaSparkServer
from tests.interop.content import content
from tests.lengths import FULL

from pyspark_delta.errors import ConstraintViolationError
from pyspark_delta.spark.engine.write.save import save
from pyspark_delta.table import Table

EVERY_TYPE = """select * from values
    (1Y, 2S, 3, 4L, 1.5F, 2.5D, 1.10BD, -12345678901234567890.5BD, true, 'ä𝄞 text that is longer than thirty-two ...',
     X'00FF', date'2024-01-31', timestamp'2024-01-31 12:34:56.123456', timestamp_ntz'2024-01-31 12:34:56.123456',
     array(1, null), map('k', array(1L)),
     named_struct('x', 1, 'y', named_struct('z', 'deep', 'n', cast(7 as decimal(10,0))))),
    (-128Y, -32768S, -2147483648, -9223372036854775808L, -0.5F, -2.5e300D, -1.10BD, 99BD, false, '', X'',
     date'1900-01-01', timestamp'1900-01-03 00:00:00.000001', timestamp_ntz'0001-01-01 00:00:00', array(), map(),
     named_struct('x', null, 'y', null)),
    (null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null)
    as t(b, s, i, l, f, d, de, big, bo, st, bi, da, ts, nt, ar, ma, stru)"""
COLUMNS = """b byte, s short, i int, l long, f float, d double, de decimal(3,2), big decimal(38,1), bo boolean,
    st string, bi binary, da date, ts timestamp, nt timestamp_ntz, ar array<int>, ma map<string, array<long>>,
    stru struct<x: int, y: struct<z: string, n: decimal(10,0)>>"""


def append(spark: SparkSession, path: Path, select: str) -> None:
    spark.sql(select).coalesce(1).write.format("delta").mode("append").save(str(path))


def stats_of(path: Path, version: int) -> list[dict[str, Any]]:
    """The statistics of the files that a version added."""
    lines = (path / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    return [json.loads(action["add"]["stats"]) for line in lines if "add" in (action := json.loads(line))]


@pytest.mark.parametrize("mapping", ["none", "id"])
def test_c241_c404_c415_files_and_statistics_are_those_of_delta_spark(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, tmp_path: Path, mapping: str
) -> None:
    path = tmp_path / "t"
    delta_spark_server.sql(
        f"create table delta.`{path}` ({COLUMNS}, p string) using delta partitioned by (p) "
        f"tblproperties ('delta.columnMapping.mode' = '{mapping}')"
    )
    rows = (
        "select * except (de, big), cast(de as decimal(3,2)) as de, cast(big as decimal(38,1)) as big, 'a b' as p "
        f"from ({EVERY_TYPE})"
    )
    append(our_spark, path, rows)
    delta_spark_server.ask("append", path=str(path), select=rows.replace("select *", "select /*+ coalesce(1) */ *", 1))
    found = delta_spark_server.read(path)
    assert content(found) == content(Table.open(path).scan().to_arrow())
    assert content(delta_spark_server.read(path, 1)) * 2 == content(found) or found.num_rows == 6
    [ours], [theirs] = stats_of(path, 1), stats_of(path, 2)
    assert ours["numRecords"] == theirs["numRecords"] == 3
    assert ours["nullCount"] == theirs["nullCount"]
    assert _same_bounds(ours["minValues"], theirs["minValues"])
    assert _same_bounds(ours["maxValues"], theirs["maxValues"])


def _same_bounds(ours: Any, theirs: Any) -> bool:
    """Whether bounds are equal but for where they may differ: we round times up, and cut texts by code points."""
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(_same_bounds(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, str) and len(ours) > 20:
        return bool(ours[:22] == theirs[:22])
    return bool(ours == theirs)


def test_c385_c390_c392_rules_of_delta_spark_bind_here(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    delta_spark_server.ask(
        "rules",
        path=str(path),
    )
    append(our_spark, path, "select 3 as a, timestamp'2024-05-06 07:08:09' as ts")
    append(our_spark, path, "select 4 as a, timestamp'2024-05-06 07:08:09' as ts, date'2024-05-06' as day")
    delta_spark_server.ask("append", path=str(path), select="select 5 as a, timestamp'2024-05-07 07:08:09' as ts")
    append(our_spark, path, "select 6 as a, null as ts")
    for broken in ("0 as a, null as ts", "null as a, null as ts", "1 as a, null as ts, date'2020-01-01' as day"):
        with pytest.raises(ConstraintViolationError):
            append(our_spark, path, f"select {broken}")
    found = delta_spark_server.read(path)
    assert content(found) == content(Table.open(path).scan().to_arrow())
    assert sorted(found["a"].to_pylist()) == [3, 4, 5, 6]
    assert len(set(found["id"].to_pylist())) == 4
    assert all((number - 100) % 10 == 0 and number >= 100 for number in found["id"].to_pylist())
    by_write = [found["id"][found["a"].to_pylist().index(a)].as_py() for a in (3, 4, 5, 6)]
    assert by_write == sorted(by_write)


def test_variants_written_here_are_read_by_delta_spark(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    delta_spark_server.sql(f"create table delta.`{path}` (id int, v variant, s struct<w: variant>) using delta")
    values = "(1, '{\"a\": [1, null, \"x\"]}'), (2, null), (3, '12345678901'), (4, 'null')"
    append(
        our_spark,
        path,
        f"select id, parse_json(j) as v, named_struct('w', parse_json(j)) as s from values {values} as t(id, j)",
    )
    as_text = {"text": "to_json(v)", "absent": "v is null", "v": "to_json(s.w)", "s": "1"}
    found = sorted(delta_spark_server.read(path, texts=as_text).to_pylist(), key=lambda row: row["id"])
    texts = ['{"a":[1,null,"x"]}', None, "12345678901", "null"]
    assert [(row["text"], row["v"]) for row in found] == [(text, text) for text in texts]
    assert [row["absent"] for row in found] == [False, True, False, False]
    [stats] = stats_of(path, 1)
    assert stats["nullCount"] == {"id": 0, "v": 1, "s": {"w": 1}}


@pytest.mark.parametrize("mode", ["none", "id"] if FULL else ["id"])
def test_vectors_go_to_and_fro(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, tmp_path: Path, mode: str
) -> None:
    """What delta-spark writes of our rows is as long as ours: both take a vector for one column."""
    path, schema = str(tmp_path / "t"), StructType([StructField("id", LongType()), StructField("v", VectorUDT())])
    rows = [(1, Vectors.dense([1.0, 2.0])), (2, None), (3, Vectors.sparse(3, [1], [5.0]))]
    save(our_spark.createDataFrame(rows, schema).coalesce(1), path, options={"delta.columnMapping.mode": mode})
    delta_spark_server.sql(f"insert into delta.`{path}` select id + 10, v from delta.`{path}`")
    expected = [*rows, *((number + 10, vector) for number, vector in rows)]
    found = our_spark.read.format("delta").load(path).orderBy("id").collect()
    assert [tuple(row) for row in found] == expected
    theirs = delta_spark_server.query(f"select id, cast(v as string) as v from delta.`{path}` where v is not null")
    assert sorted(map(tuple, zip(*theirs.to_pydict().values(), strict=True))) == [
        (number, str(vector)) for number, vector in expected if vector is not None
    ]
    ours, others = (json.loads(text) for text in Table.open(path).snapshot.files(["stats"])["stats"].to_pylist())
    assert sorted(ours["nullCount"].values()) == sorted(others["nullCount"].values()) == [0, 1]
