"""Which Python the workers of Spark run: scripts of a virtual environment that is not activated, and wrong choices."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.user_scripts import answer_of, run

import pyspark_delta
from pyspark_delta.spark.conf import sessions, worker_python
from pyspark_delta.spark.conf.worker_python import use_running_python
from pyspark_delta.spark.session.enable import configure_spark_with_delta_pip
from pyspark_delta.table import Table


def test_local_workers_run_the_python_of_an_environment_that_is_not_activated(
    other_python: Path, tmp_path: Path
) -> None:
    code = """
spark = pyspark_delta.enable(builder.master("local[1]").getOrCreate())
spark.range(5).repartition(1).write.format("delta").save(path)
spark.sql(f"CREATE TEMPORARY VIEW v USING delta OPTIONS (path '{path}')")
worker = spark.range(1).select(udf(lambda _: sys.executable)("id")).first()[0]
print(json.dumps([worker, spark.table("v").count(), spark.read.format("delta").load(path).count()]))
"""
    assert answer_of(run(code, other_python, tmp_path / "t")) == [sys.executable, 5, 5]


class TestPlainSession:
    """At the full length: each session of its own takes half a minute of a core."""

    USUAL = ()

    def test_the_python_data_source_is_found_from_an_environment_that_is_not_activated(
        self, other_python: Path, tmp_path: Path
    ) -> None:
        Table.create(tmp_path / "t", "id BIGINT").append({"id": list(range(5))})
        code = """
spark = pyspark_delta.configure_spark_with_delta_pip(builder.master("local[1]")).getOrCreate()
print(spark.read.format("delta").load(path).count())
"""
        assert answer_of(run(code, other_python, tmp_path / "t")) == 5


def test_workers_without_the_package_are_refused_in_one_sentence(other_python: Path, tmp_path: Path) -> None:
    code = """
spark = pyspark_delta.enable(builder.remote("local[1]").getOrCreate())
try:
    spark.range(5).repartition(1).write.format("delta").save(path)
except pyspark_delta.MissingDependencyError as error:
    print(json.dumps(str(error)))
"""
    done = run(code, other_python, tmp_path / "t")
    said = answer_of(done)
    assert "does not find the package" in said
    assert f"this process runs {sys.executable}" in said
    assert "\tat " not in done.stderr, "Spark logs no stack"
    assert not (tmp_path / "t" / "_delta_log").exists()


def test_a_chosen_python_without_the_package_is_refused_in_one_sentence(
    delta_spark: SparkSession, other_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_answers", {})
    monkeypatch.setattr(delta_spark.sparkContext, "pythonExec", str(other_python))
    with pytest.raises(pyspark_delta.MissingDependencyError, match="does not find the package") as raised:
        delta_spark.range(5).repartition(1).write.format("delta").save(str(tmp_path / "t"))
    assert f"this process runs {sys.executable}" in str(raised.value)
    assert not (tmp_path / "t" / "_delta_log").exists()


def test_the_python_that_the_user_chose_stays(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    context = spark.sparkContext
    monkeypatch.setattr(context, "pythonExec", "chosen")
    assert not use_running_python(spark), "the environment names one"
    assert context.pythonExec == "chosen"
    monkeypatch.delenv("PYSPARK_PYTHON")
    context._conf.set("spark.pyspark.python", "by setting")
    try:
        assert use_running_python(spark)
        assert context.pythonExec == "by setting"
    finally:
        context._conf._jconf.remove("spark.pyspark.python")
    assert use_running_python(spark)
    assert context.pythonExec == sys.executable


def test_workers_of_another_version_are_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_python, "__version__", "0.0.0")
    with pytest.raises(pyspark_delta.MissingDependencyError, match=r"and this process has 0\.0\.0"):
        worker_python._check(spark)


def test_other_workers_are_asked_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, count_jobs: Any) -> None:
    monkeypatch.setattr(sessions, "_answers", {})
    assert count_jobs(lambda: worker_python.prepare_workers(spark)) == 0, "local workers run this Python"
    python = Path(sys.executable)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", f"{python.parent}/./{python.name}")
    assert count_jobs(lambda: worker_python.prepare_workers(spark)) == 1
    assert count_jobs(lambda: worker_python.prepare_workers(spark)) == 0


@pytest.mark.parametrize(
    ("options", "environment", "expected"),
    [
        ({"spark.master": "local[*]"}, {}, sys.executable),
        ({"spark.remote": "local"}, {}, sys.executable),
        ({"spark.master": "spark://host:7077"}, {}, None),
        ({}, {}, None),
        ({"spark.master": "local", "spark.pyspark.python": "mine"}, {}, None),
        ({"spark.master": "local"}, {"PYSPARK_PYTHON": "mine"}, "mine"),
        ({"spark.master": "local"}, {"PYSPARK_DRIVER_PYTHON": "mine"}, None),
    ],
    ids=str,
)
def test_a_builder_with_a_local_master_starts_the_running_python(
    options: dict[str, str], environment: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "")  # so that it is restored whatever the function does
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    builder = SparkSession.Builder()
    builder._options = options
    assert configure_spark_with_delta_pip(builder) is builder
    assert os.environ.get("PYSPARK_PYTHON") == expected
