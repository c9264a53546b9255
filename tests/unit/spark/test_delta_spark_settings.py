"""Which settings of a builder are for delta-spark."""

from __future__ import annotations

import pytest

from pyspark_delta.spark.session.delta_spark_settings import without_delta_spark


@pytest.mark.parametrize(
    ("key", "value", "kept"),
    [
        ("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension", None),
        ("spark.sql.extensions", "a.B, io.delta.sql.DeltaSparkSessionExtension,c.D", "a.B,c.D"),
        ("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog", None),
        ("spark.sql.catalog.other", "a.b.Catalog", "a.b.Catalog"),
        ("spark.delta.logStore.gs.impl", "io.delta.storage.GCSLogStore", None),
        ("spark.jars.packages", "io.delta:delta-spark_4.2_2.13:4.4.0", None),
        ("spark.jars.packages", "a:b:1,io.delta:delta-spark_2.13:4.0.0", "a:b:1"),
        ("spark.databricks.delta.schema.autoMerge.enabled", "true", "true"),
        ("spark.app.name", "about io.delta.tables", "about io.delta.tables"),
    ],
)
def test_what_names_delta_spark_is_left_out(key: str, value: str, kept: str | None) -> None:
    assert without_delta_spark({key: value, "x": "1"}) == ({"x": "1"} if kept is None else {key: kept, "x": "1"})
