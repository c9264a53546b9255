"""DELETE, UPDATE, MERGE and TRUNCATE: from the nodes that Spark has parsed to the statements of the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.spark.api.merge_builder import DeltaMergeBuilder
from pyspark_delta.spark.engine.dml.engines import delete_statement, truncate_statement, update_statement
from pyspark_delta.spark.engine.dml.execution import plan_statement
from pyspark_delta.spark.engine.dml.merge import merge_statement
from pyspark_delta.spark.frames.catalyst.nodes import elements, node_name
from pyspark_delta.spark.sql.classic.plans import (
    Query,
    column_name,
    column_text,
    evolves_schema,
    option,
)
from pyspark_delta.spark.sql.classic.written import written
from pyspark_delta.spark.sql.targets import SqlTable
from pyspark_delta.spark.sql.transactions import run

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_DISTINCT_LABEL = "__pyspark_delta_table"


@dataclass(frozen=True)
class Target:
    """The table that a statement changes, and how its conditions name it: by an alias, or by its whole name.

    `label` stands for the name in SQL text. `is_view` is True if the statement names a temporary view of the table.
    """

    table: SqlTable
    alias: str | None = None
    label: str = ""
    is_view: bool = False

    @property
    def name(self) -> str:
        """The name of one part."""
        return self.alias or self.label or self.table.name[-1]

    @property
    def qualifier(self) -> tuple[str, ...]:
        """The name of several parts; empty if there is an alias."""
        return () if self.alias is not None else self.table.name

    def column(self, parts: Sequence[str]) -> str:
        """Return the name of an assigned column. The parts may begin with those of the table's name, or the last."""
        folded = [part.casefold() for part in parts]
        qualifier = [part.casefold() for part in self.qualifier]
        for length in range(len(qualifier), 1, -1):
            if len(parts) > length and folded[:length] == qualifier[-length:]:
                return column_text((self.name, *parts[length:]))
        if qualifier and len(parts) > 1 and folded[0] == qualifier[-1]:
            return column_text((self.name, *parts[1:]))
        return column_text(parts)


def delete(query: Query, node: Any, target: Target) -> DataFrame:
    """Carry out a DELETE. Raises as `DeltaTable.delete`."""
    condition = None if _is_true(node.condition()) else _given(query, node.condition(), target)
    statement = delete_statement(query.spark, condition, target.name, target.qualifier)
    return run(query.spark, target.table, statement)


def truncate(query: Query, node: Any, target: Target) -> None:
    """Carry out a TRUNCATE TABLE: delete all rows. Raises as `DeltaTable.delete`."""
    run(query.spark, target.table, truncate_statement(query.spark))


def update(query: Query, node: Any, target: Target) -> DataFrame:
    """Carry out an UPDATE. Raises as `DeltaTable.update`, and InvalidOperationError for a column set twice."""
    condition = option(node.condition())
    statement = update_statement(
        query.spark,
        _assigned(query, node.assignments(), target, "UPDATE"),
        None if condition is None else _given(query, condition, target),
        target.name,
        target.qualifier,
    )
    return run(query.spark, target.table, statement)


def merge(query: Query, node: Any, target: Target) -> DataFrame:
    """Carry out a MERGE. Raises as `DeltaMergeBuilder.execute`, and InvalidOperationError for subqueries in it."""
    source = query.frame(node.sourceTable())
    if target.alias is None and _may_be_named(source, target.name):
        target = Target(target.table, label=_DISTINCT_LABEL)
    _refuse_subqueries(node)
    condition = _given(query, node.mergeCondition(), target)
    statement = merge_statement(query.spark, source, condition, target.name, target.qualifier)
    builder = DeltaMergeBuilder(
        statement,
        lambda merge: run(query.spark, target.table, merge),
        lambda merge: plan_statement(query.spark, target.table.snapshot, merge),
    )
    for action in elements(node.matchedActions()):
        builder = _matched(builder, query, action, target)
    for action in elements(node.notMatchedActions()):
        builder = _not_matched(builder, query, action, target)
    for action in elements(node.notMatchedBySourceActions()):
        builder = _not_matched_by_source(builder, query, action, target)
    if evolves_schema(query.jvm, node):
        builder = builder.withSchemaEvolution()
    return builder.execute()


# ------------------------------------------------------------------------------------------------ clauses of a MERGE
def _matched(builder: DeltaMergeBuilder, query: Query, action: Any, target: Target) -> DeltaMergeBuilder:
    condition = _clause_condition(query, action, target)
    match node_name(action):
        case "DeleteAction":
            return builder.whenMatchedDelete(condition)
        case "UpdateStarAction":
            return builder.whenMatchedUpdateAll(condition)
    return builder.whenMatchedUpdate(condition, _clause_values(query, action, target))


def _not_matched(builder: DeltaMergeBuilder, query: Query, action: Any, target: Target) -> DeltaMergeBuilder:
    condition = _clause_condition(query, action, target)
    if node_name(action) == "InsertStarAction":
        return builder.whenNotMatchedInsertAll(condition)
    return builder.whenNotMatchedInsert(condition, _clause_values(query, action, target))


def _not_matched_by_source(builder: DeltaMergeBuilder, query: Query, action: Any, target: Target) -> DeltaMergeBuilder:
    condition = _clause_condition(query, action, target)
    if node_name(action) == "DeleteAction":
        return builder.whenNotMatchedBySourceDelete(condition)
    return builder.whenNotMatchedBySourceUpdate(condition, _clause_values(query, action, target))


def _clause_condition(query: Query, action: Any, target: Target) -> Column | str | None:
    condition = option(action.condition())
    return None if condition is None else _given(query, condition, target)


def _clause_values(query: Query, action: Any, target: Target) -> dict[str, Column | str]:
    return dict(_assigned(query, action.assignments(), target, "MERGE"))


def _refuse_subqueries(node: Any) -> None:
    """Raise InvalidOperationError for a subquery in a clause: the rows of a MERGE come from its source alone."""
    if not node.subqueries().isEmpty():
        raise InvalidOperationError(
            "Subqueries are not supported in the conditions and values of MERGE. Nothing was changed. Join what the "
            "subquery reads into the source: MERGE INTO t USING (SELECT ... FROM s JOIN ...) AS s ON ...",
            error_class="DELTA_UNSUPPORTED_SUBQUERY",
            sqlstate="0AKDC",
        )


def _may_be_named(source: DataFrame, name: str) -> bool:
    """Return True unless the columns of the source certainly have another name of one part before them."""
    plan = source._jdf.queryExecution().analyzed()
    return node_name(plan) != "SubqueryAlias" or str(plan.alias()).casefold() == name.casefold()


def _assigned(query: Query, assignments: Any, target: Target, statement: str) -> Mapping[str, Column | str]:
    values: dict[str, Column | str] = {}
    for assignment in elements(assignments):
        name = target.column(column_name(assignment.key()))
        if name in values:
            raise InvalidOperationError(
                f"{statement} gives the column {name} two values. Give it one. Nothing was changed.",
                error_class="DELTA_CONFLICT_SET_COLUMN",
                column=name,
            )
        values[name] = _given(query, assignment.value(), target)
    return values


def _given(query: Query, expression: Any, target: Target) -> Column | str:
    """Return a condition or a value as text if it is the same as text; a label for the table is in no text."""
    if target.label:
        return query.column(expression)
    return written(query, expression, is_qualified=bool(target.qualifier))


def _is_true(expression: Any) -> bool:
    return node_name(expression) == "Literal" and str(expression.sql()) == "true"  # the string is 'true' in SQL
