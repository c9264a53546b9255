"""Spark's catalog fails after a commit: the change is done, and the caller learns that."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_delta import Table
from pyspark_delta.errors import CatalogError, DeltaWarning


@contextmanager
def meanwhile(spark: SparkSession, statement: str) -> Iterator[None]:
    """Let another session run a statement when the next commit is made."""
    other, left = spark.newSession(), [statement]

    class Another(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("Committed") and left:
                other.sql(left.pop())

    log, handler = logging.getLogger("pyspark_delta"), Another(logging.INFO)
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield
    log.setLevel(level)
    log.removeHandler(handler)
    assert not left


@pytest.fixture
def schema(delta_spark: SparkSession) -> Iterator[str]:
    delta_spark.sql("CREATE SCHEMA after_commit")
    yield "after_commit"
    delta_spark.sql("DROP SCHEMA after_commit CASCADE")


def test_rows_are_not_appended_again_because_their_table_has_no_name(
    delta_spark: SparkSession, schema: str, tmp_path: Path
) -> None:
    name, path = f"{schema}.t", str(tmp_path / "t")
    with (
        meanwhile(delta_spark, f"CREATE VIEW {name} AS SELECT 'a view'"),
        pytest.warns(DeltaWarning, match=rf"'{path}' is written, but .* a view of this name now. Do not write"),
    ):
        delta_spark.range(2).write.format("delta").mode("append").option("path", path).saveAsTable(name)
    assert Table.open(path).scan().to_arrow().num_rows == 2
    assert delta_spark.table(name).collect()[0][0] == "a view"
    delta_spark.sql(f"DROP VIEW {name}")
    delta_spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{path}'")  # as the warning says
    assert delta_spark.table(name).count() == 2


def _save(spark: SparkSession, name: str) -> None:
    spark.range(2).write.format("delta").saveAsTable(name)


def _create(spark: SparkSession, name: str) -> None:
    spark.sql(f"CREATE TABLE {name} USING delta AS SELECT 1 AS id")


@pytest.mark.parametrize("make", [_save, _create])
def test_the_error_about_a_name_says_that_the_table_is_written(
    delta_spark: SparkSession, schema: str, make: Callable[[SparkSession, str], None]
) -> None:
    name = f"{schema}.t"
    with (
        meanwhile(delta_spark, f"CREATE VIEW {name} AS SELECT 'a view'"),
        pytest.raises(CatalogError, match=rf"is written, but .* Give .* its name with CREATE TABLE {name} USING"),
    ):
        make(delta_spark, name)
    assert delta_spark.table(name).collect()[0][0] == "a view"
    delta_spark.sql(f"DROP VIEW {name}")
    delta_spark.sql(f"CREATE TABLE {name} USING delta")
    assert delta_spark.table(name).count() > 0


@pytest.mark.since("4.0")  # the grammar has identity columns
@pytest.mark.parametrize("statement", ["INSERT INTO {} (x) VALUES (1)", "ALTER TABLE {} ADD COLUMN y INT"])
def test_a_copy_in_the_catalog_that_is_not_updated_is_no_error(
    delta_spark: SparkSession, schema: str, tmp_path: Path, statement: str
) -> None:
    name, path = f"{schema}.t", str(tmp_path / "t")
    delta_spark.sql(
        f"CREATE TABLE {name} (id BIGINT GENERATED ALWAYS AS IDENTITY, x INT) USING delta LOCATION '{path}'"
    )
    with (
        meanwhile(delta_spark, f"DROP TABLE {name}"),
        pytest.warns(DeltaWarning, match="is changed, but the copy .* has no table .* any more. Do not repeat"),
    ):
        delta_spark.sql(statement.format(name))
    assert Table.open(path).version == 1
