"""Names of tables that have several parts and qualify columns, as in `main.sales.orders.id`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark_delta.spark.conf.classes import classic_frame, java_name
from pyspark_delta.spark.frames.catalyst.jvm import Jvm, jvm_of
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of, texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Labels: TypeAlias = Mapping[tuple[str, ...], tuple[str, ...]]
"""Names, of one part or none, that take the place of qualifiers."""

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"


def frame_of_plan(spark: SparkSession, plan: Any) -> DataFrame:
    """Return a frame of a classic session for a logical plan. Raises Spark's own errors about the plan."""
    of_rows = jvm_of(spark).static(java_name("Dataset"), "ofRows")
    frame: DataFrame = classic_frame()(of_rows(spark._jsparkSession, plan), spark)
    return frame


def with_qualifier(frame: DataFrame, qualifier: Sequence[str]) -> DataFrame:
    """Return the frame of a classic session with columns that all parts of a name qualify, or the last ones."""
    jvm, java = jvm_of(frame.sparkSession), frame._jdf
    name = jvm.type("org.apache.spark.sql.catalyst.AliasIdentifier")(qualifier[-1], jvm.seq(qualifier[:-1]))
    named = jvm.type(f"{_LOGICAL}.SubqueryAlias")(name, java.queryExecution().analyzed())
    return frame_of_plan(frame.sparkSession, named)


def relabeled(jvm: Jvm, expression: Any, labels: Labels) -> Any:
    """Return a resolved expression in which labels qualify the columns. Plans of subqueries keep their names."""
    if not labels:
        return expression
    if kind_of(expression) == "AttributeReference":
        label = labels.get(texts(expression.qualifier()))
        return expression if label is None else expression.withQualifier(jvm.seq(label))
    before = elements(expression.children())
    after = [relabeled(jvm, child, labels) for child in before]
    if all(one is other for one, other in zip(before, after, strict=True)):
        return expression
    return expression.withNewChildren(jvm.seq(after))
