"""The table functions `table_changes` and `table_changes_by_path`: the change data feed in SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from pyspark_delta.changes.versions import ChangeRequest
from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.schema.timestamps import parse_timestamp
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.sessions import session_time_zone
from pyspark_delta.spark.frames.catalyst.nodes import elements
from pyspark_delta.spark.frames.catalyst.proxies import JavaProxy, crossing
from pyspark_delta.spark.frames.change_feed import read_change_feed
from pyspark_delta.spark.sql.classic.relations import CATALYST
from pyspark_delta.spark.sql.classic.sessions import SessionReference

BY_NAME, BY_PATH = "table_changes", "table_changes_by_path"
_VERSIONS = frozenset(("tinyint", "smallint", "int", "bigint"))
_DAY_MS = 86_400_000


class ChangesFunction(JavaProxy):
    """A table function. `open_table` returns the latest snapshot of the table that its first argument names."""

    class Java:
        implements: ClassVar[tuple[str, ...]] = ("scala.Function1",)

    def __init__(self, session: SessionReference, name: str, open_table: Callable[[str], Snapshot]) -> None:
        super().__init__(session.jvm)
        self._session = session
        self._name = name
        self._open_table = open_table

    # ------------------------------------------------------------------------------------------ called by the JVM
    @crossing
    def apply(self, expressions: Any) -> Any:
        """Return the analyzed plan of a call."""
        values = [self._value(expression) for expression in elements(expressions)]
        if not 2 <= len(values) <= 3 or not isinstance(values[0], str):
            example = "'/path/to/table'" if self._name == BY_PATH else "'schema.table'"
            raise InvalidOptionError(
                f"{self._name} takes the table, the first version or time and, if wanted, the last one, as in "
                f"{self._name}({example}, 3, 7) or {self._name}({example}, '2024-01-01'); found {len(values)} "
                "arguments.",
                error_class="INCORRECT_NUMBER_OF_ARGUMENTS",
            )
        table, start, end = values[0], values[1], values[2] if len(values) == 3 else None
        spark = self._session.spark
        request = ChangeRequest(
            starting_version=start if isinstance(start, int) else None,
            starting_timestamp=self._time(start),
            ending_version=end if isinstance(end, int) else None,
            ending_timestamp=self._time(end),
        )
        frame: Any = read_change_feed(spark, self._open_table(table), request)
        return frame._jdf.queryExecution().analyzed()

    # --------------------------------------------------------------------------------------------------- details
    def _value(self, expression: Any) -> object:
        """Return the value of an argument: text, a version as an int, or a time as a float of ms since the epoch."""
        if not expression.foldable():
            raise InvalidOptionError(
                f"The arguments of {self._name} are constants, found {expression.sql()}.",
                error_class="DELTA_UNSUPPORTED_EXPRESSION",
            )
        value, kind = expression.eval(None), str(expression.dataType().simpleString())
        if value is None or kind == "void":
            return None
        if kind in _VERSIONS:
            return int(value)
        if kind == "string":
            return str(value.toString()) if hasattr(value, "toString") else str(value)
        if kind in ("timestamp", "timestamp_ntz"):
            return float(value // 1000)
        if kind == "date":
            return float(value * _DAY_MS)
        raise InvalidOptionError(
            f"An argument of {self._name} is a version, a time or text, found {expression.sql()} of type {kind}."
        )

    def _time(self, value: object) -> int | None:
        if isinstance(value, str):
            return parse_timestamp(value, time_zone=session_time_zone(self._session.spark))
        return int(value) if isinstance(value, float) else None


def register(session: SessionReference, function: JavaProxy, name: str) -> Callable[[], None]:
    """Register a table function under its name among Spark's own; return a function that removes it."""
    jvm, some = session.jvm, session.jvm.root.scala.Option.apply
    registry = session.state.tableFunctionRegistry()
    # Spark looks a function of its own up by all three parts of its name, older releases by its last part.
    where = (some("builtin"), some("system")) if registry.listFunction().head().database().isDefined() else ()
    identifier = jvm.type(f"{CATALYST}.FunctionIdentifier")(name, *where)
    info = jvm.type(f"{CATALYST}.expressions.ExpressionInfo")(f"io.pyspark.delta.{type(function).__name__}", name)
    registry.registerFunction(identifier, info, function)

    def remove() -> None:
        registry.dropFunction(identifier)

    return remove
