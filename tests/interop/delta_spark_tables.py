"""Makes tables with delta-spark, for what the golden tables lack: `python delta_spark_tables.py OUT JARS...`.

Runs in a virtual environment of its own (delta-spark's PySpark). Below OUT it leaves one folder per table, and beside
it `NAME.json` with the versions and `NAME.vN.arrow` with the rows that delta-spark reads at version N (for tables with
row tracking, the row ids and row commit versions too; for those with a change data feed, it is in
`NAME.changes.arrow`). A table that cannot be made has an "error" in its json.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql import types as T  # noqa: N812

ROW_TRACKING = ("_metadata.row_id as row_id", "_metadata.row_commit_version as row_commit_version")
ROW_IDS = ("row_tracking", "many_features_together")
# Variants are left as JSON text: this PySpark cannot convert null ones to Arrow.
VARIANTS = {
    "variant_unshredded": {"v": "to_json(v)", "nested": "to_json(nested.w)"},
    "variant_shredded": {"v": "to_json(v)"},
}
# Their change data feeds, from the first version on, are read too.
CHANGE_FEEDS = ("change_feed", "change_feed_with_deletion_vectors")
BUILDERS: dict[str, Callable[[SparkSession, str], None]] = {}


def table(build: Callable[[SparkSession, str], None]) -> Callable[[SparkSession, str], None]:
    """Register a builder under its name."""
    BUILDERS[build.__name__] = build
    return build


def sql(spark: SparkSession, path: str, *statements: str) -> None:
    """Run statements in which {t} stands for the table."""
    for statement in statements:
        spark.sql(statement.replace("{t}", f"delta.`{path}`"))


@table
def type_widening(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        """create table {t} (b byte, s short, i int, f float, d date, dec decimal(6,2), i2 int, i3 int, l long,
           nested struct<x: short, y: array<int>>, m map<byte, float>) using delta
           tblproperties ('delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported')""",
        """insert into {t} values (1, 2, 3, 1.5, date'2024-01-31', 12.34, 7, 8, 9, struct(4s, array(5, null)), map(6Y, 0.25)),
           (null, null, null, null, null, null, null, null, null, null, null)""",
        """alter table {t} alter column b type int, s type long, i type double, f type double, d type timestamp_ntz,
           dec type decimal(12,4), i2 type long""",
        """alter table {t} alter column i3 type decimal(12,1), l type decimal(22,2), nested.x type int,
           nested.y.element type long, m.key type short, m.value type double""",
        """insert into {t} values (100000, 5000000000, 3.25, 1e300, timestamp_ntz'2024-02-29 12:30:00.123456', 12345678.1234,
           5000000000, 12345678901.5, 12345678901234567890.25, struct(100000, array(5000000000L)), map(300s, 1e300))""",
    )


@table
def type_widening_partitioned(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        """create table {t} (v int, p int) using delta partitioned by (p)
           tblproperties ('delta.enableTypeWidening' = 'true')""",
        "insert into {t} values (1, 1), (2, 2), (3, null)",
        "alter table {t} change column p type long",
        "alter table {t} change column v type long",
        "insert into {t} values (5000000000, 5000000000)",
    )


@table
def variant_unshredded(spark: SparkSession, path: str) -> None:
    spark.conf.set("spark.sql.variant.writeShredding.enabled", "false")
    sql(
        spark,
        path,
        "create table {t} (id int, v variant, nested struct<w: variant>) using delta",
        """insert into {t} select id, parse_json(j), named_struct('w', parse_json(j)) from values
           (1, '{"a": 1, "b": [1, "x", null, 1.5], "c": {"d": true}}'), (2, '"text"'), (3, '12345678901'), (4, null),
           (5, '{"a": "other type", "e": 1e30}'), (6, '[]'), (7, 'null'), (8, '{}') as t(id, j)""",
    )


@table
def variant_shredded(spark: SparkSession, path: str) -> None:
    spark.conf.set("spark.sql.variant.writeShredding.enabled", "true")
    spark.conf.set("spark.sql.variant.inferShreddingSchema", "true")
    sql(
        spark,
        path,
        "create table {t} (id int, v variant) using delta tblproperties ('delta.enableVariantShredding' = 'true')",
        """insert into {t} select id, parse_json(case
             when id % 11 = 0 then null
             when id % 7 = 0 then '[1, "two", {"three": 3}]'
             when id % 5 = 0 then '{"a": "not a number", "b": {"c": 1.25, "d": [1, 2]}, "z": null}'
             else concat('{"a": ', id, ', "b": {"c": "text ', id, '", "d": [', id, ', 2]}, "e": true}') end)
           from range(200)""",
    )


@table
def deletion_vectors(spark: SparkSession, path: str) -> None:
    spark.range(20000).selectExpr("id", "id % 3 as k", "cast(id as string) as s").repartition(4).write.format(
        "delta"
    ).option("delta.enableDeletionVectors", "true").save(path)
    sql(
        spark,
        path,
        "delete from {t} where id % 100 = 7",
        "delete from {t} where id between 5000 and 5099",
        "update {t} set s = 'changed' where id % 1000 = 1",
        "delete from {t} where k = 2",
    )


@table
def deletion_vectors_partitioned_mapped(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        """create table {t} (id long, `a b` string, p date) using delta partitioned by (p)
           tblproperties ('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name')""",
        """insert into {t} select id, concat('x', id), case when id % 4 = 0 then null
           else date_add(date'2024-01-01', cast(id % 4 as int)) end from range(100)""",
        "alter table {t} rename column `a b` to renamed",
        "delete from {t} where id % 10 = 3",
    )


@table
def column_mapping_id(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        """create table {t} (a int, s struct<b: string, c: array<struct<d: int>>>, m map<string, struct<e: int>>) using delta
           tblproperties ('delta.columnMapping.mode' = 'id')""",
        "insert into {t} values (1, struct('x', array(struct(2))), map('k', struct(3)))",
        "alter table {t} rename column a to a2",
        "alter table {t} rename column s.b to b2",
        "alter table {t} add column s.c.element.f string",
        "insert into {t} values (10, struct('y', array(struct(20, 'new'))), map('l', struct(30)))",
        "alter table {t} drop column m",
        "alter table {t} add column m int",
        "insert into {t} values (100, null, 5)",
    )


@table
def column_mapping_enabled_later(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        "create table {t} (a int, b string, p int) using delta partitioned by (p)",
        "insert into {t} values (1, 'x', 7)",
        """alter table {t} set tblproperties ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2',
           'delta.minWriterVersion' = '5')""",
        "alter table {t} rename column b to c",
        "alter table {t} rename column p to q",
        "insert into {t} values (2, 'y', 8)",
    )


@table
def row_tracking(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        "create table {t} (id long, v string) using delta tblproperties ('delta.enableRowTracking' = 'true')",
        "insert into {t} select id, 'first' from range(10)",
        "insert into {t} select id + 10, 'second' from range(10)",
        "update {t} set v = 'updated' where id % 5 = 0",
        "optimize {t}",
        "delete from {t} where id = 7",
        "merge into {t} t using (select id from range(18, 22)) s on t.id = s.id "
        "when matched then update set v = 'merged' when not matched then insert (id, v) values (s.id, 'inserted')",
    )


@table
def v2_checkpoint_json(spark: SparkSession, path: str) -> None:
    _v2_checkpoint(spark, path, "json")


@table
def v2_checkpoint_parquet(spark: SparkSession, path: str) -> None:
    _v2_checkpoint(spark, path, "parquet")


def _v2_checkpoint(spark: SparkSession, path: str, top_level: str) -> None:
    spark.conf.set("spark.databricks.delta.checkpointV2.topLevelFileFormat", top_level)
    spark.conf.set("spark.databricks.delta.checkpoint.partSize", "5")
    sql(
        spark,
        path,
        """create table {t} (id long, p int) using delta partitioned by (p)
           tblproperties ('delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2')""",
        "insert into {t} select id, cast(id as int) from range(12)",
        "delete from {t} where p = 3",
        "insert into {t} values (1, 1)",
    )
    spark.conf.unset("spark.databricks.delta.checkpoint.partSize")


@table
def multi_part_checkpoint(spark: SparkSession, path: str) -> None:
    spark.conf.set("spark.databricks.delta.checkpoint.partSize", "3")
    sql(
        spark,
        path,
        "create table {t} (id long, p string) using delta partitioned by (p) tblproperties ('delta.checkpointInterval' = '2')",
        "insert into {t} select id, concat('p ', id) from range(7)",
        "delete from {t} where p = 'p 3'",
        "insert into {t} values (9, 'p 9')",
    )
    spark.conf.unset("spark.databricks.delta.checkpoint.partSize")


@table
def in_commit_timestamps_midway(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        "create table {t} (id long) using delta",
        "insert into {t} values (1)",
        "alter table {t} set tblproperties ('delta.enableInCommitTimestamps' = 'true')",
        "insert into {t} values (2)",
        "insert into {t} values (3)",
    )


@table
def writer_features(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        """create table {t} (id long generated always as identity, ts timestamp, day date generated always as (cast(ts as date)),
           n int not null, c char(5), vc varchar(10)) using delta tblproperties ('delta.enableChangeDataFeed' = 'true')""",
        "alter table {t} add constraint positive check (n > 0)",
        "insert into {t} (ts, n, c, vc) values (timestamp'2024-01-01 10:00:00.123456', 1, 'abcde', 'cd'), (null, 2, null, null)",
        "update {t} set n = 5 where n = 2",
    )


@table
def column_defaults(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        "create table {t} (a int, b int default 42) using delta tblproperties ('delta.feature.allowColumnDefaults' = 'supported')",
        "insert into {t} (a) values (1)",
        "insert into {t} values (2, null)",
    )


@table
def clustered(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        "create table {t} (id long, k int) using delta cluster by (k)",
        "insert into {t} select id, id % 10 from range(1000)",
        "optimize {t}",
    )


@table
def partitions_of_every_type(spark: SparkSession, path: str) -> None:
    frame = spark.sql(
        """select * from values
        (1, 'a/b=c %20 "x"', 1Y, 2S, 3, 4L, 1.5F, 2.5D, 1.10BD, true, date'2024-01-31', timestamp'2024-01-31 12:34:56.123456',
         timestamp_ntz'2024-01-31 12:34:56.123456'),
        (2, 'ü/日本', -1Y, -2S, -3, -4L, -1.5F, -2.5D, -1.10BD, false, date'1969-12-31', timestamp'1969-12-31 23:59:59',
         timestamp_ntz'1969-12-31 23:59:59'),
        (3, null, null, null, null, null, null, null, null, null, null, null, null)
        as t(id, s, b, sh, i, l, f, d, de, bo, da, ts, ntz)"""
    )
    frame.write.format("delta").partitionBy("s", "b", "sh", "i", "l", "f", "d", "de", "bo", "da", "ts", "ntz").save(
        path
    )


@table
def every_type(spark: SparkSession, path: str) -> None:
    spark.sql(
        """select * from values
        (1Y, 2S, 3, 4L, 1.5F, 2.5D, 1.10BD, 12345678901234567890123456789012345678BD, true, 'text', X'00FF', date'2024-01-31',
         timestamp'2024-01-31 12:34:56.123456', timestamp_ntz'2024-01-31 12:34:56.123456', array(1, null), map('k', array(1)),
         named_struct('x', 1, 'y', named_struct('z', 'deep'))),
        (-128Y, -32768S, -2147483648, -9223372036854775808L, float('NaN'), double('-Infinity'), -1.10BD, -1BD, false, '', X'',
         date'0001-01-01', timestamp'0001-01-03 00:00:00', timestamp_ntz'9999-12-31 23:59:59.999999', array(), map(),
         named_struct('x', null, 'y', null)),
        (null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null)
        as t(b, s, i, l, f, d, de, big, bo, st, bi, da, ts, ntz, ar, ma, stru)"""
    ).write.format("delta").save(path)


@table
def int96_timestamps(spark: SparkSession, path: str) -> None:
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    spark.sql(
        """select * from values (1, timestamp'2024-01-31 12:34:56.123456'), (2, timestamp'9999-12-31 23:59:59.999999'),
        (3, timestamp'1900-01-01 00:00:00'), (4, null), (5, timestamp'1500-03-01 00:00:00') as t(id, ts)"""
    ).write.format("delta").save(path)
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")


@table
def iceberg_compat_v2(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        """create table {t} (id long, a array<int>, m map<string, int>, p int) using delta partitioned by (p) tblproperties
           ('delta.columnMapping.mode' = 'name', 'delta.enableIcebergCompatV2' = 'true')""",
        "insert into {t} values (1, array(1, 2), map('k', 3), 1), (2, null, null, null)",
    )


@table
def iceberg_compat_v1(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        "create table {t} (id long, p int) using delta partitioned by (p) tblproperties ('delta.enableIcebergCompatV1' = 'true')",
        "insert into {t} values (1, 1), (2, null)",
    )


@table
def iceberg_compat_v3(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        """create table {t} (id long, a array<struct<x: int>>, p int) using delta partitioned by (p)
           tblproperties ('delta.enableIcebergCompatV3' = 'true')""",
        "insert into {t} values (1, array(struct(1)), 1), (2, null, null)",
    )


@table
def vacuum_protocol_check(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        "create table {t} (id long) using delta tblproperties ('delta.feature.vacuumProtocolCheck' = 'supported')",
        "insert into {t} values (1), (2)",
    )


@table
def schema_evolution(spark: SparkSession, path: str) -> None:
    spark.range(3).selectExpr("id", "named_struct('a', id) as s").write.format("delta").save(path)
    spark.range(3, 6).selectExpr("id", "named_struct('a', id, 'b', 'new') as s", "'more' as extra").write.format(
        "delta"
    ).mode("append").option("mergeSchema", "true").save(path)
    spark.range(2).withColumn("other", F.lit(1)).write.format("delta").mode("overwrite").option(
        "overwriteSchema", "true"
    ).save(path)


@table
def many_features_together(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        """create table {t} (id long, k int, v string) using delta cluster by (k) tblproperties (
           'delta.enableInCommitTimestamps' = 'true', 'delta.enableRowTracking' = 'true',
           'delta.enableDeletionVectors' = 'true', 'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '3',
           'delta.columnMapping.mode' = 'name')""",
        "insert into {t} select id, id % 7, concat('v', id) from range(200)",
        "update {t} set v = 'updated' where id % 20 = 4",
        "alter table {t} rename column v to renamed",
        "delete from {t} where k = 1",
        "insert into {t} values (1000, null, null)",
    )


@table
def dropped_feature(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        """create table {t} (id long) using delta tblproperties (
           'delta.enableDeletionVectors' = 'true', 'delta.feature.checkpointProtection' = 'supported')""",
        "insert into {t} select id from range(20)",
        "delete from {t} where id < 5",
        "alter table {t} drop feature deletionVectors",
        "insert into {t} values (100)",
    )


@table
def old_invariants(spark: SparkSession, path: str) -> None:
    invariant = json.dumps({"expression": {"expression": "id > 0"}})
    schema = T.StructType(
        [T.StructField("id", T.LongType(), True, {"delta.invariants": invariant}), T.StructField("v", T.StringType())]
    )
    spark.createDataFrame([(1, "a"), (2, None)], schema).coalesce(1).write.format("delta").save(path)
    spark.createDataFrame([(3, "c")], schema).coalesce(1).write.format("delta").mode("append").save(path)


@table
def append_only(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        "create table {t} (id long, p string) using delta partitioned by (p) tblproperties ('delta.appendOnly' = 'true')",
        "insert into {t} values (1, 'x'), (2, '')",
        "insert into {t} values (3, null)",
    )


@table
def two_checkpoints_of_a_version(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        "create table {t} (id long) using delta tblproperties ('delta.checkpointInterval' = '1000')",
        "insert into {t} select /*+ repartition(4) */ id from range(8)",
        "insert into {t} values (8)",
    )
    for part_size in (None, "2"):
        if part_size:
            spark.conf.set("spark.databricks.delta.checkpoint.partSize", part_size)
        _delta_log(spark, path).checkpoint()
    spark.conf.unset("spark.databricks.delta.checkpoint.partSize")
    sql(spark, path, "delete from {t} where id = 2", "insert into {t} values (9)")


@table
def log_compaction(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        "create table {t} (id long, p int) using delta partitioned by (p)",
        *(f"insert into {{t}} values ({n}, {n % 2})" for n in range(3)),
        "delete from {t} where p = 1",
        "insert into {t} values (9, 1)",
    )
    # delta-spark writes no compactions; the kernel beside it does.
    jvm, kernel = spark._jvm, spark._jvm.io.delta.kernel
    engine = kernel.defaults.engine.DefaultEngine.create(spark._jsparkSession.sessionState().newHadoopConf())
    folder, log = kernel.internal.fs.Path(f"file:{path}"), kernel.internal.fs.Path(f"file:{path}/_delta_log")
    for start, end in ((1, 2), (2, 4)):
        writer = jvm.io.delta.kernel.internal.compaction.LogCompactionWriter(folder, log, start, end, 0)
        writer.writeLogCompactionFile(engine)


@table
def random_prefixes_with_mapping(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        """create table {t} (id long, `p q` string) using delta partitioned by (`p q`) tblproperties (
           'delta.columnMapping.mode' = 'name', 'delta.randomizeFilePrefixes' = 'true', 'delta.randomPrefixLength' = '3',
           'delta.enableDeletionVectors' = 'true')""",
        "insert into {t} select id, concat('p/', id % 3) from range(30)",
        "delete from {t} where id % 5 = 0",
    )


@table
def shallow_clone(spark: SparkSession, path: str) -> None:
    origin = f"{path}_origin"
    sql(
        spark,
        origin,
        """create table {t} (id long, p string) using delta partitioned by (p)
           tblproperties ('delta.enableDeletionVectors' = 'true')""",
        "insert into {t} values (1, 'a b'), (2, 'a b'), (3, '%'), (4, null)",
        "delete from {t} where id = 1",
    )
    spark.sql(f"create table delta.`{path}` shallow clone delta.`{origin}`")
    sql(spark, path, "insert into {t} values (5, 'own')", "delete from {t} where id = 3")


@table
def void_columns(spark: SparkSession, path: str) -> None:
    spark.sql("select 1 as id, null as n, named_struct('a', 1, 'v', null) as s").coalesce(1).write.format("delta").save(
        path
    )
    sql(spark, path, "insert into {t} (id, s) values (2, named_struct('a', 2, 'v', null))")


@table
def nested_mapping_with_renamed_partitions(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        """create table {t} (s struct<a: int, inner: struct<b: string>>, arr array<struct<x: int>>, p int, q date)
           using delta partitioned by (p, q) tblproperties (
           'delta.columnMapping.mode' = 'id', 'delta.enableDeletionVectors' = 'true')""",
        """insert into {t} select named_struct('a', cast(id as int), 'inner', named_struct('b', concat('b', id))),
           array(named_struct('x', cast(id as int))), cast(id % 2 as int), date'2024-01-01' from range(20)""",
        "alter table {t} rename column p to part",
        "alter table {t} rename column s.inner to within",
        "alter table {t} rename column q to `the day`",
        "delete from {t} where s.a % 4 = 1",
        "alter table {t} drop column s.a",
        "insert into {t} values (struct(struct('new')), array(), null, null)",
    )


@table
def materialized_partition_columns(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        """create table {t} (id long, p string) using delta partitioned by (p)
           tblproperties ('delta.feature.materializePartitionColumns' = 'supported')""",
        "insert into {t} values (1, 'a'), (2, null), (3, 'a=b')",
    )


@table
def change_feed(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        """create table {t} (id long, name string, p string) using delta partitioned by (p)
           tblproperties ('delta.enableChangeDataFeed' = 'true')""",
        "insert into {t} values (1, 'one', 'a b'), (2, 'two', 'a b'), (3, 'three', null), (4, 'four', 'd')",
        "update {t} set name = upper(name) where id in (2, 3)",
        "delete from {t} where p = 'd'",
        """merge into {t} t using (select * from values (1, 'x'), (2, 'y'), (9, 'z') as s(key, name)) s on t.id = s.key
           when matched and t.id = 1 then delete when matched then update set t.name = s.name, t.p = 'moved'
           when not matched then insert (id, name, p) values (s.key, s.name, 'new')""",
        "alter table {t} add columns (extra struct<n: int>)",
        "insert into {t} values (5, 'five', 'a b', struct(5))",
        "optimize {t}",
        "insert overwrite {t} values (6, 'six', '', null)",
    )


@table
def change_feed_with_deletion_vectors(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        path,
        """create table {t} (id long, `the name` string) using delta tblproperties (
           'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true',
           'delta.columnMapping.mode' = 'name', 'delta.enableInCommitTimestamps' = 'true')""",
        "insert into {t} select id, concat('n', id) from range(0, 20, 1, 1)",
        "delete from {t} where id in (3, 5)",
        "delete from {t} where id = 7",
        "update {t} set `the name` = 'changed' where id = 8",
        "restore table {t} to version as of 2",
        "alter table {t} add columns (extra int)",
        "insert into {t} values (100, 'more', 1)",
        "delete from {t} where id >= 0",
    )


def _delta_log(spark: SparkSession, path: str) -> Any:
    """The JVM's log of the table."""
    log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
    log.update(False, spark._jvm.scala.Option.empty(), spark._jvm.scala.Option.empty())
    return log


def main() -> None:
    """Make all tables, or those named after `--only`."""
    from delta_spark_session import session  # beside this file, which tests import too

    out, jars = Path(sys.argv[1]), [argument for argument in sys.argv[2:] if argument.endswith(".jar")]
    only = sys.argv[sys.argv.index("--only") + 1 :] if "--only" in sys.argv else list(BUILDERS)
    spark = session(jars)
    make_tables(spark, out, only)
    spark.stop()


def make_tables(spark: SparkSession, out: Path, only: Collection[str] = BUILDERS) -> None:
    """Make the tables below a folder. The session is left with other settings."""
    out.mkdir(parents=True, exist_ok=True)
    for name in BUILDERS:
        if name not in only:
            continue
        description: dict[str, object] = {"name": name, "row_ids": name in ROW_IDS}
        start = time.monotonic()
        try:
            BUILDERS[name](spark, str(out / name))
            description["versions"] = _expected_rows(spark, out, name)
            if name in CHANGE_FEEDS:
                _write_rows(_changes(spark, str(out / name)), out / f"{name}.changes.arrow")
        except Exception as error:
            description["error"] = str(error).splitlines()[0]
        description["seconds"] = round(time.monotonic() - start, 1)
        (out / f"{name}.json").write_text(json.dumps(description))


def _expected_rows(spark: SparkSession, out: Path, name: str) -> list[int]:
    path = str(out / name)
    latest = max(int(commit.stem) for commit in (out / name / "_delta_log").glob("*.json") if commit.stem.isdigit())
    versions = []
    for version in sorted({latest // 2, latest}):
        frame = spark.read.format("delta").option("versionAsOf", version).load(path)
        if name in ROW_IDS:
            frame = frame.selectExpr("*", *ROW_TRACKING)
        for column, text in VARIANTS.get(name, {}).items():
            frame = frame.withColumn(column, F.expr(text))
        _write_rows(frame.toArrow(), out / f"{name}.v{version}.arrow")
        versions.append(version)
    return versions


def _changes(spark: SparkSession, path: str) -> pa.Table:
    reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    return reader.load(path).toArrow()


def _write_rows(rows: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)


if __name__ == "__main__":
    main()
