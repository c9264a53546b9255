"""What the history says of the same operations, done here and by delta-spark on a table each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark.sql.functions as sf
import pytest
from pyspark.sql import SparkSession
from tests.interop.conftest import DeltaSparkServer

from pyspark_delta import DeltaTable
from pyspark_delta.spark.api.alter import DeltaTableAlter

Act = Callable[[SparkSession, str], object]


@dataclass(frozen=True)
class Step:
    """One commit: `ours` makes it here, `theirs` asks delta-spark for it."""

    name: str
    ours: Act
    theirs: Callable[[DeltaSparkServer, str], object]


def write(name: str, select: str, mode: str = "append", *partition_by: str, **options: Any) -> Step:
    """A write with DataFrameWriter."""

    def ours(spark: SparkSession, path: str) -> None:
        writer = spark.sql(select).coalesce(1).write.format("delta").mode(mode).options(**options)
        (writer.partitionBy(*partition_by) if partition_by else writer).save(path)

    def theirs(server: DeltaSparkServer, path: str) -> None:
        server.ask("write", path=path, select=select, mode=mode, partition_by=partition_by, options=options)

    return Step(name, ours, theirs)


def sql(name: str, statement: str, ours: Act) -> Step:
    """A statement of delta-spark, in which {t} is the table, and what stands for it here."""
    return Step(name, ours, lambda server, path: server.sql(statement.replace("{t}", f"delta.`{path}`")))


def alter(statement: str, change: Callable[[DeltaTableAlter], object]) -> Step:
    """ALTER TABLE."""
    return sql(
        statement, f"alter table {{t}} {statement}", lambda spark, path: change(DeltaTable.forPath(spark, path).alter())
    )


def both(statement: str) -> Step:
    """A statement that is the same here and for delta-spark."""
    return sql(statement, statement, lambda spark, path: spark.sql(statement.replace("{t}", f"delta.`{path}`")))


def create(spark: SparkSession, path: str) -> None:
    builder = DeltaTable.create(spark).location(path).addColumn("id", "bigint", comment="number")
    builder = builder.addColumn("p", "string").addColumn("k", "int", nullable=False)
    builder.partitionedBy("p").property("mine", "x").comment("what it is").execute()


def replace_by_query(spark: SparkSession, path: str) -> None:
    writer = spark.sql("select 1L id, 'x' p").coalesce(1).writeTo(f"delta.`{path}`").using("delta")
    writer.tableProperty("mine", "x").partitionedBy(sf.col("p")).createOrReplace()


WRITES = [
    write("new table", "select id, id % 2 p from range(6)", "overwrite", "p"),
    write("append", "select 6L id, 0L p"),
    write("append a column", "select 7L id, 1L p, 'x' s", mergeSchema="true"),
    write("replace a partition", "select 8L id, 0L p, 'y' s", "overwrite", replaceWhere="p = 0"),
    write("replace rows", "select 1L id, 1L p, 'z' s", "overwrite", replaceWhere="id = 1"),
    write("replace no rows", "select 90L id, 1L p, 'z' s", "overwrite", replaceWhere="id = 90"),
    write("dynamic", "select 9L id, 1L p, 'd' s", "overwrite", partitionOverwriteMode="dynamic"),
    write("overwrite", "select 2L id, 2L p, 'o' s", "overwrite"),
    write("overwrite the schema", "select 2L id, 'o' s", "overwrite", overwriteSchema="true"),
]
CHANGES = [
    sql(
        "create table",
        "create table {t} (id bigint comment 'number', p string, k int not null) using delta partitioned by (p) "
        "comment 'what it is' tblproperties ('mine' = 'x')",
        create,
    ),
    alter("set tblproperties ('delta.appendOnly' = 'false', 'a' = 'b')", lambda a: a.setProperties(
        {"delta.appendOnly": "false", "a": "b"})),
    alter("unset tblproperties ('a')", lambda a: a.unsetProperties("a")),
    alter("unset tblproperties if exists ('b')", lambda a: a.unsetProperties("b", ifExists=True)),
    alter("add columns (n int comment 'some')", lambda a: a.addColumn("n", "int", comment="some")),
    alter("add columns (s struct<a: int> after id)", lambda a: a.addColumn("s", "struct<a: int>", after="id")),
    alter("add columns (s.b int first)", lambda a: a.addColumn("s.b", "int", first=True)),
    alter("alter column n comment 'another'", lambda a: a.setColumnComment("n", "another")),
    alter("alter column n first", lambda a: a.moveColumn("n", first=True)),
    alter("alter column k drop not null", lambda a: a.dropNotNull("k")),
    alter("add constraint positive check (id > 0)", lambda a: a.addConstraint("positive", "id > 0")),
    alter("drop constraint positive", lambda a: a.dropConstraint("positive")),
    alter(
        "set tblproperties ('delta.columnMapping.mode' = 'name')",
        lambda a: a.setProperties({"delta.columnMapping.mode": "name"}),
    ),
    alter("rename column n to `a number`", lambda a: a.renameColumn("n", "a number")),
    alter("drop columns (`a number`)", lambda a: a.dropColumns("`a number`")),
    sql("add a feature", "alter table {t} set tblproperties ('delta.feature.vacuumProtocolCheck' = 'supported')",
        lambda spark, path: DeltaTable.forPath(spark, path).alter().setProperties(
            {"delta.feature.vacuumProtocolCheck": "supported"})),
    sql(
        "create or replace as select",
        "create or replace table {t} using delta partitioned by (p) tblproperties ('mine' = 'x') "
        "as select 1L id, 'x' p",
        replace_by_query,
    ),
]  # fmt: skip

DEFINITIONS = [
    both(
        "create table {t} (id bigint generated by default as identity, p string) using delta comment 'what it is' "
        "tblproperties ('mine' = 'x', 'delta.feature.deletionVectors' = 'supported', 'delta.minReaderVersion' = '3', "
        "'delta.minWriterVersion' = '7')"
    ),
    write("rows with given numbers", "select 100L id, 'x' p"),
    both("alter table {t} alter column id sync identity"),
    write("rows without numbers", "select 'y' p"),
    both("truncate table {t}"),
]
MAPPED = [
    both("create table {t} (a int) using delta tblproperties ('delta.columnMapping.mode' = 'name')"),
    both("create or replace table {t} using delta tblproperties ('delta.appendOnly' = 'true') as select 1 a"),
]


# Of a step and a key: why the two differ.
TOLERATED = {
    ("unset tblproperties ('a')", "parameter ifExists"): "Spark's parser always says so to delta-spark",
    ("add a feature", "parameter properties"): "delta-spark writes names of features in small letters",
}
SIZES = ("numOutputBytes", "numRemovedBytes", "executionTimeMs")  # other writers of Parquet, other sizes and times


def commits(path: Path) -> list[dict[str, Any]]:
    """The commitInfo of every version."""
    found = []
    for file in sorted((path / "_delta_log").glob("*.json")):
        lines = (json.loads(line) for line in file.read_text().splitlines())
        found.append(next(line["commitInfo"] for line in lines if "commitInfo" in line))
    return found


def facts(info: Mapping[str, Any]) -> dict[str, Any]:
    """What the two should agree on. Texts that hold JSON are compared by what they hold, and null is like nothing."""
    metrics = {name: value for name, value in info.get("operationMetrics", {}).items() if name not in SIZES}
    sizes = {name: True for name in info.get("operationMetrics", {}) if name in SIZES}
    return {
        "operation": info["operation"],
        **{f"parameter {name}": _decoded(value) for name, value in info["operationParameters"].items()},
        **{f"metric {name}": value for name, value in {**metrics, **sizes}.items()},
    }


def _decoded(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) and value[:1] in "[{" else value
    except json.JSONDecodeError:
        return value


@pytest.mark.parametrize(
    "steps", [WRITES, CHANGES, DEFINITIONS, MAPPED], ids=["writes", "changes", "definitions", "mapped"]
)
def test_c192_c193_parameters_and_metrics_are_those_of_delta_spark(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, tmp_path: Path, steps: list[Step]
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for step in steps:
        step.ours(our_spark, str(ours))
        step.theirs(delta_spark_server, str(theirs))
    found = []
    for step, own, other in zip(steps, commits(ours), commits(theirs), strict=True):
        own, other = facts(own), facts(other)
        for key in sorted(own.keys() | other.keys()):
            here, there = own.get(key), other.get(key)
            if here != there and (step.name, key) not in TOLERATED:
                found.append(f"{step.name}: {key} is {here!r} here and {there!r} there")
    assert found == []


def test_c192_the_version_that_new_tables_have_read(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, tmp_path: Path
) -> None:
    """Clones and conversions begin at version -1; created tables have read no version."""
    runs: dict[str, Callable[[str], object]] = {"ours": our_spark.sql, "theirs": delta_spark_server.sql}
    found = {}
    for name, run in runs.items():
        folder = tmp_path / name
        our_spark.range(2).write.parquet(str(folder / "parquet"))
        run(f"create table delta.`{folder / 'source'}` using delta as select 1 a")
        run(f"create table delta.`{folder / 'clone'}` shallow clone delta.`{folder / 'source'}`")
        run(f"convert to delta parquet.`{folder / 'parquet'}`")
        infos = [commits(folder / table)[0] for table in ("source", "clone", "parquet")]
        found[name] = [(info["operation"], info.get("readVersion", "none")) for info in infos]
    assert found["ours"] == found["theirs"]
    assert found["ours"] == [("CREATE TABLE AS SELECT", "none"), ("CLONE", -1), ("CONVERT", -1)]
