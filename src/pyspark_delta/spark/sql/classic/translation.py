"""Which parsed statements are ours: those whose target is a Delta table become calls of Python.

The target is resolved by its name, with the current catalog and schema. In a script, a statement before it may change
both, or create the table, so there the decision is made when the statement runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark_delta.parser.statements import Clone, CommitTransaction, ConvertToDelta, DeltaStatement
from pyspark_delta.parser.values import TableName
from pyspark_delta.spark.frames.catalyst.jvm import Jvm
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of, node_name, texts
from pyspark_delta.spark.frames.catalyst.qualified import frame_of_plan
from pyspark_delta.spark.sql.classic import inserts, row_changes
from pyspark_delta.spark.sql.classic.alterations import (
    ALTERED,
    IN_TRANSACTIONS,
    ON_ALL_TABLES,
    ON_SESSION_TABLES,
    refreshing,
)
from pyspark_delta.spark.sql.classic.call import Procedures
from pyspark_delta.spark.sql.classic.conversion import convert_table, names_table
from pyspark_delta.spark.sql.classic.described import show_tables_extended
from pyspark_delta.spark.sql.classic.like import LIKE_NODES, LikeStatement, create_like, makes_delta_table
from pyspark_delta.spark.sql.classic.plans import NamedTable, Query, has_variable_name, named_table, option
from pyspark_delta.spark.sql.classic.row_changes import Target
from pyspark_delta.spark.sql.classic.sessions import SessionReference
from pyspark_delta.spark.sql.classic.table_call import TableCalls
from pyspark_delta.spark.sql.classic.views import refuse_permanent_view, table_of_view
from pyspark_delta.spark.sql.execute import execute, is_of_spark
from pyspark_delta.spark.sql.targets import (
    find_table,
    is_delta_name,
    is_path_name,
    is_permanent_view,
    is_session_table,
    is_temporary_view,
)
from pyspark_delta.spark.sql.transactions import is_open, remembering_failure, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Run: TypeAlias = "Callable[[Query, Any, Target], DataFrame | None]"

# By Spark's node: the field with the target, and what carries the statement out.
_STATEMENTS: dict[str, tuple[str, _Run]] = {
    "DeleteFromTable": ("table", row_changes.delete),
    "UpdateTable": ("table", row_changes.update),
    "MergeIntoTable": ("targetTable", row_changes.merge),
    "TruncateTable": ("table", row_changes.truncate),
    "InsertIntoStatement": ("table", inserts.insert),
    "OverwriteByExpression": ("table", inserts.replace_where),
}
_ROW_CHANGES = ("DeleteFromTable", "UpdateTable", "MergeIntoTable")
_THROUGH_VIEWS = (*_ROW_CHANGES, "InsertIntoStatement", "OverwriteByExpression")
_LISTINGS = ("ShowTablesExtended", "ShowTableExtended")  # the latter of Spark 3.5
_EXPLAIN = "org.apache.spark.sql.execution.command.ExplainCommand"
_WITH_BODY = ("WhileStatement", "RepeatStatement", "LoopStatement", "ForStatement")
_WITH_BRANCHES = ("IfElseStatement", "SearchedCaseStatement", "SimpleCaseStatement")


@dataclass(frozen=True)
class Translator:
    """Translates the plans that Spark's parser returns for one session."""

    session: SessionReference
    calls: Procedures | TableCalls

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.session.spark

    @property
    def _jvm(self) -> Jvm:
        return self.session.jvm

    def translated(self, plan: Any, statements: Mapping[str, DeltaStatement]) -> Any:
        """Return the plan of a text, with calls of Python for statements that change Delta tables.

        `statements` are Delta's own in a script, by the names of procedures that the plan calls in place of them.
        """
        kind = node_name(plan)
        if kind == "CompoundBody":
            self._translate_script(plan, statements)
            return plan
        if kind == "ExplainCommand":
            return self._explained(plan)
        found = self._call(kind, plan)
        return plan if found is None else found

    def own(self, statement: DeltaStatement) -> Any:
        """Return the call for a statement of Delta's own grammar; None for one of Spark's (`is_of_spark`)."""
        if is_of_spark(self.spark, statement):
            return None
        return self.calls.call(type(statement).__name__, partial(self._execute, statement))

    def _execute(self, statement: DeltaStatement) -> DataFrame | None:
        if isinstance(statement, ConvertToDelta) and names_table(self.spark, statement):
            convert_table(self.spark, statement)
            return None
        if isinstance(statement, CommitTransaction):
            return self._committed(statement)
        table = statement.target if isinstance(statement, Clone) else getattr(statement, "table", None)
        if not isinstance(table, TableName) or not is_session_table(self.spark, table.parts):
            return execute(self.spark, statement)
        changed = find_table(self.spark, table.parts)
        assert changed is not None
        with refreshing(Query(self.spark), changed):
            return execute(self.spark, statement)

    def _committed(self, statement: CommitTransaction) -> DataFrame | None:
        table = table_of(self.spark)
        if table is None:
            return execute(self.spark, statement)
        with refreshing(Query(self.spark), table):
            return execute(self.spark, statement)

    def explained(self, plan: Any, statement: Any) -> Any:
        """Return the EXPLAIN of a call, in the mode of another EXPLAIN. The statement is not carried out."""
        return self._jvm.type(_EXPLAIN)(self.calls.not_executed(statement), plan.mode())

    def _call(self, kind: str, plan: Any, *, decides_later: bool = False) -> Any:
        """Return the call for a statement; None if it is not ours.

        With `decides_later`, that is found out when the statement runs.
        """
        query, statement = Query(self.spark), plan
        if kind == "UnresolvedWith":
            query, statement = Query(self.spark, plan), plan.child()
            kind = node_name(statement)
        if kind == "Union":
            return self._several_inserts(query, statement)
        known = _STATEMENTS.get(kind)
        if known is None:
            return self._command(kind, statement, query, decides_later=decides_later)
        field, run = known
        target = getattr(statement, field)()
        if decides_later and has_variable_name(target):
            return self.calls.call(kind, partial(self._run_variable, kind, plan, query, statement, target, run))
        named = named_table(self.spark, target)
        if named is None:
            return None
        if decides_later and not is_path_name(named.parts):
            return self.calls.call(kind, partial(self._run_either, kind, plan, query, statement, named, run))
        if not self._is_ours(kind, named):
            return None
        return self.calls.call(kind, partial(self._run, query, statement, named, run))

    def _command(self, kind: str, node: Any, query: Query, *, decides_later: bool) -> Any:
        """Return the call for a command that Spark would carry out wrongly on a Delta table; None for any other."""
        if kind in LIKE_NODES:
            return self._like(node, decides_later=decides_later)
        if kind in _LISTINGS:
            return self.calls.call(kind, partial(show_tables_extended, query, node))
        known = ON_SESSION_TABLES.get(kind) or ON_ALL_TABLES.get(kind) or IN_TRANSACTIONS.get(kind)
        if known is None:
            return None
        field, run = known
        named = named_table(self.spark, getattr(node, field)())
        if named is None:
            return None
        parts = named.parts

        def is_ours() -> bool:
            if kind in IN_TRANSACTIONS and not is_open(self.spark):
                return False
            is_spark_s = kind in ON_SESSION_TABLES and not (kind in ALTERED and is_open(self.spark))
            is_known = is_session_table if is_spark_s else is_delta_name
            return not is_temporary_view(self.spark, parts) and is_known(self.spark, parts)

        def carry_out() -> DataFrame | None:
            if not is_ours():
                return frame_of_plan(self.spark, node)
            table = find_table(self.spark, parts)
            assert table is not None
            return run(query, node, table)

        if not decides_later and not is_ours():
            return None
        return self.calls.call(kind, carry_out)

    def _like(self, node: Any, *, decides_later: bool) -> Any:
        """Return the call for a CREATE TABLE LIKE that makes a Delta table; None for any other."""
        statement = LikeStatement.of(self.spark, node)

        def carry_out() -> DataFrame | None:
            if not makes_delta_table(self.spark, statement):
                return frame_of_plan(self.spark, node)
            create_like(self.spark, statement)
            return None

        if not decides_later and not makes_delta_table(self.spark, statement):
            return None
        return self.calls.call("CreateTableLike", carry_out)

    def _several_inserts(self, query: Query, union: Any) -> Any:
        """Return the call for FROM ... INSERT ... INSERT ..., in which each INSERT is a commit; None if none is ours.

        One call has no rows, as Spark's own. A script would return the rows of a union of calls.
        """
        inserts = elements(union.children())
        if any(node_name(insert) != "InsertIntoStatement" for insert in inserts):
            return None
        hung = [query.hung(insert) for insert in inserts]
        found = [self._call(node_name(insert), insert) for insert in hung]
        if all(one is None for one in found):
            return None

        def run() -> None:
            for one, insert in zip(found, hung, strict=True):
                frame_of_plan(self.spark, insert if one is None else one)

        return self.calls.call("InsertIntoStatements", run)

    def _is_ours(self, kind: str, named: NamedTable) -> bool:
        if is_temporary_view(self.spark, named.parts):
            return kind in _THROUGH_VIEWS and table_of_view(self.spark, named.parts) is not None
        if is_delta_name(self.spark, named.parts):
            return True
        if kind in _ROW_CHANGES and is_permanent_view(self.spark, named.parts):
            refuse_permanent_view(self.spark, named.parts)
        return False

    def _run(self, query: Query, statement: Any, named: NamedTable, run: _Run) -> DataFrame | None:
        alias, is_view = named.alias, is_temporary_view(self.spark, named.parts)
        if is_view:
            table, alias = table_of_view(self.spark, named.parts), alias or named.parts[-1]
        else:
            table = find_table(self.spark, named.parts)
        assert table is not None
        with refreshing(query, table), remembering_failure(self.spark):
            return run(query, statement, Target(table, alias, is_view=is_view))

    def _run_either(
        self, kind: str, plan: Any, query: Query, statement: Any, named: NamedTable, run: _Run
    ) -> DataFrame | None:
        if self._is_ours(kind, named):
            return self._run(query, statement, named, run)
        return frame_of_plan(self.spark, plan)

    def _run_variable(
        self, kind: str, plan: Any, query: Query, statement: Any, target: Any, run: _Run
    ) -> DataFrame | None:
        """Carry out a statement of a script whose variables, as they are now, name the target."""
        named = named_table(self.spark, target)
        if named is None:
            return frame_of_plan(self.spark, plan)
        return self._run_either(kind, plan, query, statement, named, run)

    # ------------------------------------------------------------------------------------------ EXPLAIN and scripts
    def _explained(self, plan: Any) -> Any:
        explained = plan.logicalPlan()
        found = self._call(node_name(explained), explained)
        return plan if found is None else self.explained(plan, found)

    def _translate_script(self, node: Any, statements: Mapping[str, DeltaStatement]) -> None:
        """Translate the statements of a script in place: Spark has just parsed it, and nobody else has it."""
        kind = node_name(node)
        if kind == "SingleStatement":
            plan = node.parsedPlan()
            own = statements.get(_called(plan)) if statements else None
            found = self._call(node_name(plan), plan, decides_later=True) if own is None else self.own(own)
            if found is not None:
                self._jvm.field(node, "parsedPlan").set(node, found)
            return
        for part in _parts(kind, node):
            self._translate_script(part, statements)


def _called(plan: Any) -> str:
    """Return the name of the procedure that a parsed CALL calls; empty for any other plan."""
    return texts(plan.procedure().nameParts())[-1] if kind_of(plan) == "Call" else ""


def _parts(kind: str, node: Any) -> list[Any]:
    """Return the nodes of a script below one of them, except for conditions."""
    if kind == "CompoundBody":
        return [*elements(node.collection()), *(handler.body() for handler in elements(node.handlers()))]
    if kind in _WITH_BODY:
        return [node.body()]
    if kind in _WITH_BRANCHES:
        otherwise = option(node.elseBody())
        return [*elements(node.conditionalBodies()), *([] if otherwise is None else [otherwise])]
    return []
