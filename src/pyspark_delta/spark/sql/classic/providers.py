"""The format after USING, on Spark 3.5: it has no Python Data Source, so it would not find the format `delta`.

Before Spark passes a new table of the session catalog to the catalog, it looks up the format. So a format of Spark that
nobody creates tables of stands in for `delta` in the plan, and the catalog takes it for `delta`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_delta.spark.conf.classes import has_data_sources
from pyspark_delta.spark.conf.sessions import STAND_IN, is_delta
from pyspark_delta.spark.frames.catalyst.jvm import jvm_of
from pyspark_delta.spark.frames.catalyst.nodes import node_name
from pyspark_delta.spark.sql.classic.plans import option

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CREATING = frozenset(("CreateTable", "CreateTableAsSelect", "ReplaceTable", "ReplaceTableAsSelect"))


def replace_provider(spark: SparkSession, plan: Any) -> None:
    """Replace the format of a new Delta table in a plan, in place: Spark has just parsed it."""
    if has_data_sources() or node_name(plan) not in _CREATING:
        return
    jvm, specification = jvm_of(spark), plan.tableSpec()
    if is_delta(spark, option(specification.provider())):
        jvm.field(specification, "provider").set(specification, jvm.root.scala.Option.apply(STAND_IN))


def provider_name(provider: str | None) -> str | None:
    """Return a format in lower case as the statement has it."""
    if provider is None:
        return None
    return "delta" if provider == STAND_IN else provider.lower()
