"""`install_as_delta`: what delta-spark's users import is ours, and only where delta-spark is not installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import pyspark_delta
from pyspark_delta import InvalidOperationError, disable, install_as_delta

# The public names of delta-spark 4.4's modules.
NAMES = {
    "delta": {"DeltaTable", "configure_spark_with_delta_pip", "__version__"},
    "delta.tables": {
        "DeltaTable",
        "DeltaMergeBuilder",
        "DeltaOptimizeBuilder",
        "DeltaTableBuilder",
        "IdentityGenerator",
    },
    "delta.exceptions": {
        "DeltaConcurrentModificationException",
        "ConcurrentWriteException",
        "MetadataChangedException",
        "ProtocolChangedException",
        "ConcurrentAppendException",
        "ConcurrentDeleteReadException",
        "ConcurrentDeleteDeleteException",
        "ConcurrentTransactionException",
    },
    "delta.pip_utils": {"configure_spark_with_delta_pip"},
    "delta.version": {"__version__"},
}
TUTORIAL = """
import delta
from delta import DeltaTable, configure_spark_with_delta_pip
from delta.tables import *
from delta.exceptions import ConcurrentAppendException

spark = configure_spark_with_delta_pip(builder).getOrCreate()
spark.range(5).write.format("delta").save(path)
table = DeltaTable.forPath(spark, path)
table.update(condition="id % 2 = 0", set={"id": "id + 100"})
(
    table.alias("t")
    .merge(spark.range(1, 7).alias("s"), "t.id = s.id")
    .whenMatchedDelete()
    .whenNotMatchedInsertAll()
    .execute()
)
rows = sorted(row.id for row in table.toDF().collect())
"""


@pytest.fixture(autouse=True)
def _modules_as_before() -> Iterator[None]:
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "delta"}
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "delta"]:
        del sys.modules[name]
    sys.modules.update(before)


def test_every_module_has_the_names_of_delta_spark() -> None:
    install_as_delta()
    for name, names in NAMES.items():
        module = import_module(name)
        assert set(module.__all__) == names
        assert all(getattr(module, each) is not None for each in names)
    import delta  # type: ignore[import-untyped, unused-ignore]

    assert delta.tables.DeltaTable is delta.DeltaTable is pyspark_delta.DeltaTable
    assert delta.exceptions.ConcurrentAppendException is pyspark_delta.ConcurrentAppendException
    before = sys.modules["delta"]
    install_as_delta()
    assert sys.modules["delta"] is before


def test_a_tutorial_for_delta_spark_runs_unchanged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings that it gives the builder name classes that Spark does not find; they do not reach the session."""
    session = spark.newSession()
    monkeypatch.setattr(SparkSession, "_instantiatedSession", session)
    builder = (
        SparkSession.builder.appName("quickstart")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.databricks.delta.schema.autoMerge.enabled", "true")
    )
    install_as_delta()
    names = {"builder": builder, "path": str(tmp_path / "t")}
    try:
        exec(TUTORIAL, names)
        assert names["spark"] is session
        assert names["rows"] == [2, 4, 5, 6, 100, 102, 104]
        assert session.conf.get("spark.databricks.delta.schema.autoMerge.enabled") == "true"
        assert session.conf.get("spark.sql.catalog.spark_catalog", "builtin") == "builtin"
    finally:
        disable(session)
        session.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (
            {"delta_spark-4.4.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: delta-spark\nVersion: 4.4.0\n"},
            "delta-spark 4.4.0 is installed",
        ),
        ({"delta/__init__.py": ""}, "another module 'delta' is at"),
    ],
)
def test_another_delta_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], says: str
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(content)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InvalidOperationError, match=says):
        install_as_delta()
    assert "delta" not in sys.modules


def test_a_folder_named_delta_is_no_reason_to_refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "delta").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    install_as_delta()
    assert import_module("delta").DeltaTable is pyspark_delta.DeltaTable
