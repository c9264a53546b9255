"""What a statement becomes on Spark 3.5, which has no procedures: a table of the catalog `delta`.

Spark loads the table while it analyzes the plan. The catalog then carries the statement out, and the table has its
rows. A table function would not do: Spark calls it under a lock that the jobs of the statement need.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.lru import LruCache
from pyspark_delta.spark.frames.catalyst.nodes import kind_of
from pyspark_delta.spark.frames.catalyst.qualified import frame_of_plan
from pyspark_delta.spark.frames.catalyst.sequences import wrapped
from pyspark_delta.spark.sql.classic.paths import PATH_CATALOG, STATEMENTS
from pyspark_delta.spark.sql.classic.relations import Description, Relations
from pyspark_delta.spark.sql.classic.sessions import SessionReference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CATALYST = "org.apache.spark.sql.catalyst"
_LOGICAL = f"{_CATALYST}.plans.logical"
_KEPT = 1_000  # statements that are parsed, but not analyzed yet
_numbers = itertools.count(1)


class TableCalls:
    """The statements of a session that are parsed, by number."""

    def __init__(self, session: SessionReference, relations: Relations) -> None:
        self._session, self._relations = session, relations
        self._runs: LruCache[str, Callable[[], DataFrame | None]] = LruCache(_KEPT)

    def call(self, statement: str, run: Callable[[], DataFrame | None]) -> Any:
        """Return the plan that carries out a statement when Spark analyzes it."""
        jvm, number = self._session.jvm, str(next(_numbers))
        self._runs.put(number, run)
        options = jvm.type("org.apache.spark.sql.util.CaseInsensitiveStringMap").empty()
        name = jvm.seq([PATH_CATALOG, STATEMENTS, number])
        return self._named(statement, jvm.type(f"{_CATALYST}.analysis.UnresolvedRelation")(name, options, False))

    def not_executed(self, plan: Any) -> Any:
        """Return the plan of a statement that is shown, and not carried out."""
        return self._named(str(plan.alias()), self._no_rows())

    def load(self, number: str) -> Any:
        """Carry out a statement, once, and return the table with its rows. Raises as the statement."""
        run, key = self._runs.get(number), (STATEMENTS, number)
        if run is None:
            raise InvalidOperationError(f"There is no statement {number}. Write the statement itself.")
        rows = frame_of_plan(self._session.spark, self._rows(run()))
        self._runs.put(number, lambda: rows)
        return self._relations.of_frame(rows, Description(name=(PATH_CATALOG, *key), schema=rows.schema), key)

    def _rows(self, frame: DataFrame | None) -> Any:
        if frame is None:
            return self._no_rows()
        jvm, execution = self._session.jvm, frame._jdf.queryExecution()
        plan = execution.analyzed()
        if kind_of(plan) == "LocalRelation":
            return plan
        rows = wrapped(jvm, execution.executedPlan().executeCollect())
        return jvm.make(f"{_LOGICAL}.LocalRelation", plan.output(), rows, False, jvm.none)

    def _no_rows(self) -> Any:
        jvm = self._session.jvm
        return jvm.make(f"{_LOGICAL}.LocalRelation", jvm.nil, jvm.nil, False, jvm.none)

    def _named(self, statement: str, plan: Any) -> Any:
        jvm = self._session.jvm
        name = jvm.type(f"{_CATALYST}.AliasIdentifier")(statement, jvm.nil)
        return jvm.type(f"{_LOGICAL}.SubqueryAlias")(name, plan)
