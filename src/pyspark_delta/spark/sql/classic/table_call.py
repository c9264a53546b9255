"""What a statement becomes on Spark 3.5, which has no procedures: a call of a table function, which runs Python once.

The analyzer calls the function, and puts the rows that it returns in the place of the call.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.lru import LruCache
from pyspark_delta.spark.frames.catalyst.jvm import Jvm
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of
from pyspark_delta.spark.frames.catalyst.proxies import JavaProxy, crossing
from pyspark_delta.spark.frames.catalyst.sequences import wrapped
from pyspark_delta.spark.sql.classic.functions import register
from pyspark_delta.spark.sql.classic.sessions import SessionReference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NAME = "pyspark_delta_statement"
_CATALYST = "org.apache.spark.sql.catalyst"
_LOGICAL = f"{_CATALYST}.plans.logical"
_KEPT = 1_000  # statements that are parsed, but not analyzed yet
_numbers = itertools.count(1)


class TableCalls(JavaProxy):
    """A table function whose argument is the number of a statement."""

    class Java:
        implements: ClassVar[tuple[str, ...]] = ("scala.Function1",)

    def __init__(self, session: SessionReference) -> None:
        super().__init__(session.jvm)
        self._runs: LruCache[int, Callable[[], DataFrame | None]] = LruCache(_KEPT)
        self.remove = register(session, self, NAME)

    def call(self, statement: str, run: Callable[[], DataFrame | None]) -> Any:
        """Return the plan that carries out a statement when Spark analyzes it."""
        jvm, number = self._jvm, next(_numbers)
        self._runs.put(number, run)
        argument = jvm.module(f"{_CATALYST}.expressions.Literal").apply(number)
        called = jvm.make(
            f"{_CATALYST}.analysis.UnresolvedTableValuedFunction", jvm.seq([NAME]), jvm.seq([argument]), False
        )
        return _named(jvm, statement, called)

    def not_executed(self, plan: Any) -> Any:
        """Return the plan of a statement that is shown, and not carried out."""
        return _named(self._jvm, str(plan.alias()), _local(self._jvm, self._jvm.nil, self._jvm.nil))

    # ------------------------------------------------------------------------------------------ called by the JVM
    @crossing
    def apply(self, expressions: Any) -> Any:
        """Carry out a statement, and return its rows."""
        jvm = self._jvm
        run = self._runs.get(int(elements(expressions)[0].eval(None)))
        if run is None:
            raise InvalidOperationError(f"{NAME} is called by statements of Delta tables only. Call the statement.")
        frame = run()
        if frame is None:
            return _local(jvm, jvm.nil, jvm.nil)
        execution = frame._jdf.queryExecution()
        plan = execution.analyzed()
        if kind_of(plan) == "LocalRelation":
            return plan
        rows = execution.executedPlan().executeCollect()
        return _local(jvm, plan.output(), wrapped(jvm, rows))


def _named(jvm: Jvm, statement: str, plan: Any) -> Any:
    name = jvm.type(f"{_CATALYST}.AliasIdentifier")(statement, jvm.nil)
    return jvm.type(f"{_LOGICAL}.SubqueryAlias")(name, plan)


def _local(jvm: Jvm, output: Any, rows: Any) -> Any:
    return jvm.make(f"{_LOGICAL}.LocalRelation", output, rows, False, jvm.none)
