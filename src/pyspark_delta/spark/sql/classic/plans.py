"""Reads the plans that Spark's parser returns: names of tables, expressions as Columns, queries as frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyspark.sql.functions as sf
from pyspark.errors import AnalysisException

from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.spark.conf.probing import probing
from pyspark_delta.spark.frames.catalyst.columns import column_of
from pyspark_delta.spark.frames.catalyst.jvm import Jvm, jvm_of
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of, node_name, texts
from pyspark_delta.spark.frames.catalyst.qualified import frame_of_plan
from pyspark_delta.statements.assignments import is_default_word

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"
_WITH = f"{_LOGICAL}.UnresolvedWith"
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_SUBQUERIES = frozenset(("ScalarSubquery", "Exists", "ListQuery"))


@dataclass(frozen=True)
class NamedTable:
    """A table as a statement names it, with the alias that the statement gives it."""

    parts: tuple[str, ...]
    alias: str | None = None


@dataclass(frozen=True)
class Query:
    """The common table expressions of a statement (`node` is Spark's `UnresolvedWith`), which its queries may name."""

    spark: SparkSession
    node: Any = None

    @property
    def jvm(self) -> Jvm:
        """The JVM of the session."""
        return jvm_of(self.spark)

    def frame(self, plan: Any) -> DataFrame:
        """Return the rows of a query of the statement. Raises Spark's own errors about the query."""
        return frame_of_plan(self.spark, self.hung(plan))

    def one_row(self) -> DataFrame:
        """Return one row without columns, on which constants are computed."""
        return frame_of_plan(self.spark, self.jvm.type(f"{_LOGICAL}.OneRowRelation")())

    def column(self, expression: Any) -> Column:
        """Return an expression of the statement; names in it are not resolved yet."""
        if kind_of(expression) == "UnresolvedAttribute":
            parts = texts(expression.nameParts())
            if is_default_word(parts):
                return sf.col(quoted(parts[0]))  # later checks recognize the word by the name of the Column
        return column_of(self.jvm, self._with_tables(expression))

    def hung(self, plan: Any) -> Any:
        """Return a plan that sees the common table expressions."""
        node = self.node
        if node is None:
            return plan
        recursion = (node.allowRecursion(),) if self.jvm.has_method(_WITH, "allowRecursion") else ()
        return self.jvm.type(_WITH)(plan, node.cteRelations(), *recursion)

    def _with_tables(self, expression: Any) -> Any:
        """Return an expression whose subqueries see the common table expressions."""
        if self.node is None:
            return expression
        before = elements(expression.children())
        after = [self._with_tables(child) for child in before]
        if any(one is not other for one, other in zip(before, after, strict=True)):
            expression = expression.withNewChildren(self.jvm.seq(after))
        if kind_of(expression) in _SUBQUERIES:
            return expression.withNewPlan(self.hung(expression.plan()))
        return expression


def option(value: Any) -> Any:
    """Return the value of a Scala option; None if it has none."""
    return value.get() if value.isDefined() else None


def member(jvm: Jvm, node: Any, name: str, none: Any = None) -> Any:
    """Return a member of a parsed statement; `none` if it has no such member in this release of Spark."""
    return getattr(node, name)() if jvm.has_method(f"{_LOGICAL}.{node_name(node)}", name) else none


def evolves_schema(jvm: Jvm, node: Any) -> bool:
    """Return True for WITH SCHEMA EVOLUTION. Spark parses it in MERGE from 4.0 on, and in INSERT from 4.2 on."""
    return bool(member(jvm, node, "withSchemaEvolution", none=False))


def has_subquery(jvm: Jvm, expression: Any) -> bool:
    """Return True if an expression, or a part of it, is a subquery."""
    return bool(jvm.static(f"{_EXPRESSIONS}.SubqueryExpression", "hasSubquery")(expression))


def named_table(spark: SparkSession, node: Any) -> NamedTable | None:
    """Return the table that a node of a parsed statement names; None for any other node."""
    kind = node_name(node)
    if kind == "SubqueryAlias":
        found = named_table(spark, node.child())
        return None if found is None else NamedTable(found.parts, str(node.alias()))
    if kind == "Filter":  # the rows that ADD CHECK would check
        return named_table(spark, node.child())
    if kind == "UnresolvedRelation":
        return NamedTable(texts(node.multipartIdentifier()))
    if kind in ("UnresolvedTable", "UnresolvedTableOrView"):
        return NamedTable(texts(node.multipartIdentifier()))
    if kind == "UnresolvedIdentifier":
        return NamedTable(texts(node.nameParts()))
    if kind == "PlanWithUnresolvedIdentifier":
        return _computed_name(spark, node)
    return None


def column_name(expression: Any) -> tuple[str, ...]:
    """Return the parts of the name of a column to which a statement assigns a value."""
    return texts(expression.nameParts())


def column_text(parts: Sequence[str]) -> str:
    """Return the name of a column in SQL."""
    return ".".join(map(quoted, parts))


def has_variable_name(node: Any) -> bool:
    """Return True if a node names a table by IDENTIFIER with an expression that is not constant, as a variable."""
    kind = node_name(node)
    if kind in ("SubqueryAlias", "Filter"):
        return has_variable_name(node.child())
    return kind == "PlanWithUnresolvedIdentifier" and not node.identifierExpr().foldable()


def named_relation(jvm: Jvm, node: Any, parts: Sequence[str]) -> Any:
    """Return the relation that a node stands for, whose name by IDENTIFIER has the given parts."""
    if node_name(node) != "PlanWithUnresolvedIdentifier":
        return node
    return node.planBuilder().apply(jvm.seq(parts), jvm.nil)


def _computed_name(spark: SparkSession, node: Any) -> NamedTable | None:
    """Return the name in an IDENTIFIER clause, whose text Spark computes; None if it cannot, and then says why."""
    expression = node.identifierExpr()
    try:
        with probing():
            row = Query(spark).one_row().select(Query(spark).column(expression)).head()
    except AnalysisException:
        return None
    if row is None or row[0] is None:
        return None
    java: Any = spark
    return NamedTable(texts(java._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(row[0])))
