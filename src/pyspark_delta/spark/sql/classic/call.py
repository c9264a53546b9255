"""What a statement becomes: Spark's own node of `CALL`, which runs Python once and returns rows.

Spark invokes the procedure while it analyzes the plan, and keeps the rows. So `collect`, `count` and `show` of the
result do not run the statement again. A node that is not to be executed is what EXPLAIN shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.spark.frames.catalyst.error_relay import RelayedError
from pyspark_delta.spark.frames.catalyst.jvm import Jvm
from pyspark_delta.spark.frames.catalyst.nodes import node_name
from pyspark_delta.spark.frames.catalyst.proxies import JavaProxy, converted, crossing
from pyspark_delta.spark.sql.classic.conditions import as_condition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"
_CONNECTOR = "org.apache.spark.sql.connector"
_RESOLVED = "org.apache.spark.sql.catalyst.analysis.ResolvedProcedure"
_PARAMETER = f"{_CONNECTOR}.catalog.procedures.ProcedureParameter"


class Procedures(JavaProxy):
    """The catalog that the procedures of statements name. It has none to look up."""

    class Java:
        implements: ClassVar[tuple[str, ...]] = (f"{_CONNECTOR}.catalog.ProcedureCatalog",)

    def call(self, statement: str, run: Callable[[], DataFrame | None]) -> Any:
        """Return the plan that carries out a statement when Spark analyzes it."""
        jvm = self._jvm
        identifier = jvm.once(("statement", statement), lambda: _identifier(jvm, statement))
        procedure = jvm.type(_RESOLVED)(self, identifier, StatementProcedure(jvm, statement, run))
        return jvm.type(f"{_LOGICAL}.Call")(procedure, jvm.nil, True)

    def not_executed(self, plan: Any) -> Any:
        """Return the plan of a statement that is shown, and not carried out."""
        return self._jvm.type(f"{_LOGICAL}.Call")(plan.procedure(), plan.args(), False)

    # ------------------------------------------------------------------------------------------ called by the JVM
    def name(self) -> str:
        return "delta"

    def initialize(self, name: str, options: Any) -> None:
        return None

    @crossing
    def defaultNamespace(self) -> Any:
        return self._jvm.array([], "java.lang.String")

    @crossing
    def listProcedures(self, namespace: Any) -> Any:
        return self._jvm.array([], f"{_CONNECTOR}.catalog.Identifier")

    @crossing
    def loadProcedure(self, identifier: Any) -> Any:
        raise InvalidOperationError(
            f"There is no procedure {identifier.toString()}: Delta's statements are called by their own names."
        )


class StatementProcedure(JavaProxy):
    """A statement as a procedure without parameters. `run` carries it out; it returns the rows, or None for no rows."""

    class Java:
        implements: ClassVar[tuple[str, ...]] = (f"{_CONNECTOR}.catalog.procedures.BoundProcedure",)

    def __init__(self, jvm: Jvm, statement: str, run: Callable[[], DataFrame | None]) -> None:
        super().__init__(jvm)
        self._statement, self._run = statement, run

    def name(self) -> str:
        return self._statement

    def description(self) -> str:
        return self._statement

    def isDeterministic(self) -> bool:
        return False

    @crossing
    def parameters(self) -> Any:
        return self._jvm.once("no parameters", lambda: self._jvm.array([], _PARAMETER))

    def call(self, values: Any) -> Any:
        try:
            scans, frame = self._jvm.type("java.util.ArrayList")(), self._run()
            if frame is not None:
                scans.add(ResultRows(self._jvm, frame))
            return scans.iterator()
        except RelayedError:
            raise
        except Exception as error:
            raise as_condition(self._jvm, converted(error)) from None


class ResultRows(JavaProxy):
    """The rows of a statement's result, which are collected when the statement has run."""

    class Java:
        implements: ClassVar[tuple[str, ...]] = (f"{_CONNECTOR}.read.LocalScan",)

    def __init__(self, jvm: Jvm, frame: DataFrame) -> None:
        super().__init__(jvm)
        execution = frame._jdf.queryExecution()
        plan = execution.analyzed()
        self._schema = plan.schema()
        # Spark plans the result again when it is collected. Rows that a plan already holds need no plan of their own.
        is_local = node_name(plan) == "LocalRelation"
        self._rows = jvm.row_array(plan.data()) if is_local else execution.executedPlan().executeCollect()

    def readSchema(self) -> Any:
        return self._schema

    def rows(self) -> Any:
        return self._rows

    def description(self) -> str:
        return "rows of a statement"


def has_procedures(jvm: Jvm) -> bool:
    """Return True if this Spark has procedures (Spark 4)."""
    return jvm.has_class(_RESOLVED)


def _identifier(jvm: Jvm, statement: str) -> Any:
    return jvm.type(f"{_CONNECTOR}.catalog.Identifier").of(jvm.array([], "java.lang.String"), statement)
