"""INSERT, DELETE, UPDATE, MERGE and TRUNCATE on Spark Connect, by the methods of `DeltaTable` and the writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from pyspark.sql import Column, DataFrame

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.interpreter.qualifiers import qualifiers, requalify, unqualified
from pyspark_delta.parser.common_tables import cte_names, with_ctes
from pyspark_delta.parser.row_statements import (
    Assignment,
    DeleteFrom,
    MergeAction,
    MergeClause,
    MergeInto,
    MergeRows,
    UpdateTable,
)
from pyspark_delta.parser.values import Path, SqlText, TableName
from pyspark_delta.schema.column_paths import column_path_text, quoted
from pyspark_delta.spark.api.merge_builder import DeltaMergeBuilder
from pyspark_delta.spark.engine.dml.engines import delete_statement, update_statement
from pyspark_delta.spark.engine.dml.execution import plan_statement
from pyspark_delta.spark.engine.dml.merge import merge_statement
from pyspark_delta.spark.sql import transactions
from pyspark_delta.spark.sql.connect.names import Names
from pyspark_delta.spark.sql.connect.rewrite import Spliced, splice
from pyspark_delta.spark.sql.targets import SqlTable

RunQuery = Callable[[str | Spliced], DataFrame]
"""Runs a query in which tables may be Delta tables."""

_TARGET, _SOURCE = "_delta_target", "_delta_source"
_MODE = "spark.sql.sources.partitionOverwriteMode"


class Conditions:
    """Conditions and values of a statement as the methods take them: qualified by aliases.

    Delta tables in their subqueries are temporary views while the statement runs.
    """

    def __init__(
        self, names: Names, stack: ExitStack, aliases: dict[tuple[Path, ...], str], ctes: SqlText | None
    ) -> None:
        self._names, self._stack, self._aliases, self._ctes = names, stack, aliases, ctes

    def text(self, text: SqlText) -> str:
        """Return the SQL of a condition or a value."""
        found = text.text
        if "select" in found.casefold():  # a subquery
            found = found if self._ctes is None else with_ctes(found, self._ctes)
            query = self._stack.enter_context(splice(self._names, f"SELECT {found}").as_views())
            found = query.removeprefix("SELECT ")
        for qualified, alias in self._aliases.items():
            found = requalify(found, qualified, alias) if qualified else found
        return found

    def optional(self, text: SqlText | None) -> str | None:
        """Return the SQL of a condition, if there is one."""
        return None if text is None else self.text(text)

    def values(self, assignments: Sequence[Assignment], target: tuple[Path, ...]) -> dict[str, str | Column]:
        """Return the values by the names of columns. Raises InvalidOperationError for a column with two values."""
        values: dict[str, str | Column] = {}
        for one in assignments:
            name = column_path_text(unqualified(one.column, target))
            if name in values:
                raise InvalidOperationError(
                    f"The column {name} gets two values. Nothing was changed. Give it one.",
                    error_class="DELTA_CONFLICT_SET_COLUMN",
                    column=name,
                )
            values[name] = self.text(one.value)
        return values


@contextmanager
def _conditions(names: Names, aliases: dict[tuple[Path, ...], str], ctes: SqlText | None) -> Iterator[Conditions]:
    with ExitStack() as stack:
        yield Conditions(names, stack, aliases, ctes)


def delete(names: Names, statement: DeleteFrom, table: SqlTable) -> DataFrame:
    """Carry out a DELETE. Raises as `DeltaTable.delete`."""
    found = qualifiers(statement.table, statement.alias)
    with _conditions(names, {found: _TARGET}, statement.ctes) as conditions:
        condition = conditions.optional(statement.where)
        return transactions.run(names.spark, table, delete_statement(names.spark, condition, _TARGET))


def update(names: Names, statement: UpdateTable, table: SqlTable) -> DataFrame:
    """Carry out an UPDATE. Raises as `DeltaTable.update`."""
    found = qualifiers(statement.table, statement.alias)
    with _conditions(names, {found: _TARGET}, statement.ctes) as conditions:
        values, condition = conditions.values(statement.assignments, found), conditions.optional(statement.where)
        return transactions.run(names.spark, table, update_statement(names.spark, values, condition, _TARGET))


def merge(names: Names, statement: MergeInto, table: SqlTable, run: RunQuery) -> DataFrame:
    """Carry out a MERGE. Raises as `DeltaMergeBuilder.execute`."""
    targets = qualifiers(statement.target, statement.target_alias)
    sources: tuple[Path, ...]
    if isinstance(statement.source, SqlText):
        ctes = "" if statement.ctes is None else f"{statement.ctes.text} "
        text = f"{ctes}SELECT * FROM ({statement.source.text})" if ctes else statement.source.text
        source, sources = run(text), (((statement.source_alias,),) if statement.source_alias else ())
    else:
        source = _source_table(names, statement, run)
        sources = qualifiers(statement.source, statement.source_alias)
    with _conditions(names, {sources: _SOURCE, targets: _TARGET}, statement.ctes) as conditions:
        spark, condition = names.spark, conditions.text(statement.condition)
        builder = DeltaMergeBuilder(
            merge_statement(spark, source.alias(_SOURCE), condition, _TARGET),
            lambda merge: transactions.run(spark, table, merge),
            lambda merge: plan_statement(spark, table.snapshot, merge),
        )
        for clause in statement.clauses:
            builder = _with_clause(builder, clause, conditions, targets)
        return (builder.withSchemaEvolution() if statement.evolves else builder).execute()


def _source_table(names: Names, statement: MergeInto, run: RunQuery) -> DataFrame:
    source = statement.source
    assert not isinstance(source, SqlText)
    name = source if isinstance(source, TableName) else TableName(("delta", source.path))
    if statement.ctes is not None and len(name.parts) == 1 and name.parts[0].casefold() in cte_names(statement.ctes):
        return run(f"{statement.ctes.text} TABLE {quoted(name.parts[0])}")
    frame = names.frame(name, statement.source_time)
    return run(f"TABLE {'.'.join(map(quoted, name.parts))}") if frame is None else frame


def _with_clause(
    builder: DeltaMergeBuilder, clause: MergeClause, conditions: Conditions, targets: tuple[Path, ...]
) -> DeltaMergeBuilder:
    condition = conditions.optional(clause.condition)
    values = None if clause.assignments is None else conditions.values(clause.assignments, targets)
    match clause.rows, clause.action:
        case MergeRows.MATCHED, MergeAction.DELETE:
            return builder.whenMatchedDelete(condition)
        case MergeRows.MATCHED, _:
            if values is None:
                return builder.whenMatchedUpdateAll(condition)
            return builder.whenMatchedUpdate(condition, values)
        case MergeRows.NOT_MATCHED, _:
            if values is None:
                return builder.whenNotMatchedInsertAll(condition)
            return builder.whenNotMatchedInsert(condition, values)
        case MergeRows.NOT_MATCHED_BY_SOURCE, MergeAction.DELETE:
            return builder.whenNotMatchedBySourceDelete(condition)
    return builder.whenNotMatchedBySourceUpdate(condition, values)
