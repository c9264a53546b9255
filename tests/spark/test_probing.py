"""What Spark refuses while an expression is only tried leaves no line in the log."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from pyspark_delta.errors import InvalidOperationError, InvalidPredicateError
from pyspark_delta.spark.api.table import DeltaTable
from pyspark_delta.spark.conf.probing import PySparkLogger


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What PySpark logs of errors with a query context."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("DataFrame", "SQL")]
    for logger in loggers:
        logger.addHandler(handler)
    yield text
    for logger in loggers:
        logger.removeHandler(handler)


@pytest.mark.since("4.0")  # 3.5 logs no such lines
def test_errors_of_ours_come_without_a_line_of_sparks(
    delta_spark: SparkSession, tmp_path: Path, logged: io.StringIO
) -> None:
    path = str(tmp_path / "t")
    delta_spark.sql("SELECT 1 AS id, 'a' AS v").write.format("delta").save(path)
    table = DeltaTable.forPath(delta_spark, path)
    merge = table.alias("t").merge(delta_spark.range(1).alias("s"), "t.id = s.id")
    with pytest.raises(InvalidOperationError, match="Cannot resolve the column"):
        merge.whenMatchedDelete("t.nope = 1").execute()
    with pytest.raises(InvalidPredicateError, match="cannot be evaluated"):
        table.alter().addConstraint("c", "abs(array(id)) > 1")
    overwrite = delta_spark.range(1).write.format("delta").mode("overwrite")
    with pytest.raises(InvalidPredicateError):
        overwrite.option("replaceWhere", "no_function(id)").save(path)
    with pytest.raises(InvalidOperationError, match="is not a type"):
        table.alter().addColumn("x", "no type")
    assert logged.getvalue() == ""
    with pytest.raises(AnalysisException):
        delta_spark.sql("SELECT no_function(1)")
    assert "UNRESOLVED_ROUTINE" in logged.getvalue(), "errors of Spark's own are logged as ever"
