"""Names of paths that Spark's analyzer would not look up in the catalog `delta`, renamed in plans that it has parsed.

Spark looks up catalogs by the exact case of their names, so ``DELTA.`/path` `` is no name of the catalog `delta`. And
while the time of a time travel is an unresolved expression, Spark takes a name of two parts for a file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark_delta.spark.frames.catalyst.jvm import Jvm, jvm_of
from pyspark_delta.spark.frames.catalyst.nodes import kind_of, texts
from pyspark_delta.spark.sql.classic.paths import PATH_CATALOG, RENAMED
from pyspark_delta.spark.sql.classic.plans import has_subquery, named_table
from pyspark_delta.spark.sql.targets import is_path_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPACE = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)+"
_AS_OF = rf"AS{_SPACE}OF\b"
_CONCERNED = re.compile(
    rf"(?i:\b(?:TIMESTAMP|SYSTEM_TIME){_SPACE}{_AS_OF}|\bIDENTIFIER\b.*\b{_AS_OF})"
    rf"|(?!delta\b)(?i:\bdelta\b)`?(?:{_SPACE})?\.",
    re.DOTALL,
)
_CATALYST = "org.apache.spark.sql.catalyst"
_TREE = f"{_CATALYST}.trees.TreeNode"
_EXPRESSION = f"{_CATALYST}.expressions.Expression"
_SEVERAL = ("scala.collection.immutable.Seq", "scala.Option", "scala.Tuple2", "scala.Tuple3", "scala.Tuple4")
# By Spark's node: the field with the parts of the name.
_NAMED = {
    "UnresolvedRelation": "multipartIdentifier",
    "UnresolvedTable": "multipartIdentifier",
    "UnresolvedTableOrView": "multipartIdentifier",
    "UnresolvedIdentifier": "nameParts",
}


def rename_paths(spark: SparkSession, text: str, plan: Any) -> None:
    """Rename paths in a plan, in place: Spark has just parsed it from the text, and nobody else has it.

    The text decides whether the plan may have such names: a plan of another text costs nothing.
    """
    if _CONCERNED.search(text) is not None:
        _visit(spark, plan, is_timed=False)


def _visit(spark: SparkSession, value: Any, *, is_timed: bool) -> None:
    """Visit a field of a node: a node, or a collection of nodes. Subqueries are fields of expressions."""
    jvm = jvm_of(spark)
    if not hasattr(value, "getClass"):
        return
    if _is(jvm, value, _TREE):
        if _is(jvm, value, _EXPRESSION) and not has_subquery(jvm, value):
            return
        kind = kind_of(value)
        if kind in _NAMED:
            _rename(jvm, value, _NAMED[kind], is_timed=is_timed)
            return
        is_timed = kind == "RelationTimeTravel" and value.timestamp().isDefined()
        if kind == "RelationTimeTravel":
            _compute_name(spark, value)
    elif not any(_is(jvm, value, several) for several in _SEVERAL):
        return
    fields = value.iterator() if _is(jvm, value, _SEVERAL[0]) else value.productIterator()
    while fields.hasNext():
        _visit(spark, fields.next(), is_timed=is_timed)


def _compute_name(spark: SparkSession, travel: Any) -> None:
    """Put the relation in the place of IDENTIFIER(expression): Spark does not compute the name under a time travel."""
    if kind_of(travel.relation()) != "PlanWithUnresolvedIdentifier":
        return
    named, jvm = named_table(spark, travel.relation()), jvm_of(spark)
    if named is not None:
        options = jvm.type("org.apache.spark.sql.util.CaseInsensitiveStringMap").empty()
        relation = jvm.type(f"{_CATALYST}.analysis.UnresolvedRelation")(jvm.seq(named.parts), options, False)
        jvm.field(travel, "relation").set(travel, relation)


def _rename(jvm: Jvm, node: Any, field: str, *, is_timed: bool) -> None:
    place = jvm.field(node, field)
    parts = texts(place.get(node))
    renamed = _renamed(parts, is_timed=is_timed)
    if renamed != parts:
        place.set(node, jvm.seq(renamed))


def _renamed(parts: Sequence[str], *, is_timed: bool) -> Sequence[str]:
    if not is_path_name(parts) or parts[0].lower() != PATH_CATALOG:
        return parts
    return (PATH_CATALOG, RENAMED, parts[1]) if is_timed else (PATH_CATALOG, parts[1])


def _is(jvm: Jvm, value: Any, name: str) -> bool:
    return bool(jvm.once(("class", name), lambda: jvm.load_class(name)).isInstance(value))
