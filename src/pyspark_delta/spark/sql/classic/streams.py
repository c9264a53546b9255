"""Delta tables that a query reads as a stream, as in `SELECT * FROM STREAM main.sales.orders`.

Spark would ask the data source of the table for a stream by the name of a class, which a source in Python has not. So
the relation in the parsed plan becomes that of `spark.readStream.table`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.spark.frames.catalyst.jvm import jvm_of
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of, texts
from pyspark_delta.spark.frames.catalyst.qualified import with_qualifier
from pyspark_delta.spark.session.identifiers import identify

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WITH = "org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith"
_STREAM = re.compile(r"\bSTREAM\b", re.IGNORECASE)


def with_streams(spark: SparkSession, text: str, plan: Any) -> Any:
    """Return a plan that Spark has parsed from a text, with the streams of Delta tables.

    Spark has no streams in subqueries of expressions. A text without the word costs nothing. Raises as
    `spark.readStream.table`.
    """
    return plan if _STREAM.search(text) is None else _with_streams(spark, plan)


def _with_streams(spark: SparkSession, plan: Any) -> Any:
    if kind_of(plan) == "UnresolvedRelation":
        return _stream(spark, plan) if plan.isStreaming() else plan
    if kind_of(plan) == "UnresolvedWith":
        plan = _with_streams_in_named(spark, plan)
    before = elements(plan.children())
    after = [_with_streams(spark, child) for child in before]
    if all(one is other for one, other in zip(before, after, strict=True)):
        return plan
    return plan.withNewChildren(jvm_of(spark).seq(after))


def _with_streams_in_named(spark: SparkSession, plan: Any) -> Any:
    """Return WITH, with the streams in its named queries, which are not among the children of the plan."""
    jvm, named = jvm_of(spark), elements(plan.cteRelations())
    triple = jvm.type("scala.Tuple3")
    relations = [triple(one._1(), _with_streams(spark, one._2()), one._3()) for one in named]
    recursion = (plan.allowRecursion(),) if jvm.has_method(_WITH, "allowRecursion") else ()
    return plan.copy(plan.child(), jvm.seq(relations), *recursion)


def _stream(spark: SparkSession, relation: Any) -> Any:
    parts = texts(relation.multipartIdentifier())
    name = ".".join(map(quoted, parts))
    if identify(spark, name) is None:
        return relation
    options = {str(key): str(value) for key, value in dict(relation.options().asCaseSensitiveMap()).items()}
    frame = spark.readStream.options(**options).table(name)
    return with_qualifier(frame, parts)._jdf.queryExecution().analyzed()
