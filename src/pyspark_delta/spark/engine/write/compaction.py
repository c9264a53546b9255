"""Auto compaction after the commits of a session: by its settings, then by the properties of the table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.maintenance.auto_compaction import DEFAULT, AutoCompaction, compact_after
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.engine.write.rewriting import placed
from pyspark_delta.transaction.commit_info import engine_info

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = "spark.databricks.delta.autoCompact."


def compact_commit(
    spark: SparkSession,
    settings: AutoCompaction,
    current: Callable[[], Snapshot],
    version: int | None,
    configuration: TableConfiguration | None,
) -> None:
    """Compact what a commit left in too many small files, as `compact_after`: in tasks of the session if it is much."""
    engine = engine_info(f"PySpark/{spark.version}")
    compact_after(current, version, configuration, settings, place=partial(placed, spark), engine_info=engine)


def auto_compaction(spark: SparkSession) -> AutoCompaction:
    """Return the settings of a session. Call it before the commit, so that a bad setting fails before it.

    Raises InvalidOptionError.
    """
    enabled = spark.conf.get(f"{_SETTINGS}enabled", None)
    if enabled is not None and enabled.strip().lower() not in ("true", "false", "auto", "legacy"):
        raise InvalidOptionError(f"The session setting {_SETTINGS}enabled is true or false, found '{enabled}'.")
    return AutoCompaction(
        enabled=None if enabled is None else enabled.strip().lower() != "false",
        min_files=_number(spark, "minNumFiles") or DEFAULT.min_files,
        target_size=_number(spark, "maxFileSize") or DEFAULT.target_size,
        min_size=_number(spark, "minFileSize"),
    )


def _number(spark: SparkSession, name: str) -> int | None:
    value = spark.conf.get(_SETTINGS + name, None)
    if value is None:
        return None
    if not value.strip().isdigit() or int(value) < 1:
        raise InvalidOptionError(f"The session setting {_SETTINGS}{name} is a number above 0, found '{value}'.")
    return int(value)
