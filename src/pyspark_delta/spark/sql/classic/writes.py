"""Tables that Spark writes to: its interface for writers of version 1 hands the rows over as a frame.

It serves writers that begin in the JVM, and CREATE TABLE and REPLACE TABLE with and without a query. A query is written
in one commit, together with everything that the statement declares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.spark.frames.catalyst.nodes import text_entries
from pyspark_delta.spark.frames.catalyst.proxies import JavaProxy, crossing
from pyspark_delta.spark.sql.classic.relations import CONNECTOR
from pyspark_delta.spark.sql.classic.sessions import SessionReference

_WRITE = "org.apache.spark.sql.connector.write"
_UTILITIES = f"{CONNECTOR}.CatalogV2Util"
_CAPABILITIES = ("V1_BATCH_WRITE", "TRUNCATE", "OVERWRITE_BY_FILTER", "OVERWRITE_DYNAMIC")
Write = Callable[[DataFrame, str, bool | None, dict[str, str]], None]
"""Writes a frame: the mode `append` or `overwrite`, True to overwrite only partitions with new rows, and options."""


@dataclass(frozen=True)
class Target:
    """The table of a write as Spark sees it: the parts of its name, and its columns."""

    name: Sequence[str]
    schema: SparkStruct


class WritableTable(JavaProxy):
    """A table that Spark writes to."""

    class Java:
        implements: ClassVar[tuple[str, ...]] = (f"{CONNECTOR}.SupportsWrite",)

    def __init__(self, session: SessionReference, target: Target, write: Write) -> None:
        super().__init__(session.jvm)
        self._session = session
        self._target = target
        self._write = write

    # ------------------------------------------------------------------------------------------ called by the JVM
    def name(self) -> str:
        return ".".join(self._target.name)

    def id(self) -> None:
        return None

    def version(self) -> None:
        return None

    @crossing
    def schema(self) -> Any:
        return self._jvm.data_type(self._target.schema.json())

    @crossing
    def columns(self) -> Any:
        convert = self._jvm.module(_UTILITIES).structTypeToV2Columns
        keeps = (False,) if self._jvm.parameter_count(f"{_UTILITIES}$", "structTypeToV2Columns") == 2 else ()
        return convert(self.schema(), *keeps)

    def partitioning(self) -> Any:
        return self._jvm.array((), "org.apache.spark.sql.connector.expressions.Transform")

    def properties(self) -> Any:
        return self._jvm.root.java.util.Collections.emptyMap()

    def constraints(self) -> Any:
        return self._jvm.array((), f"{CONNECTOR}.constraints.Constraint")

    def capabilities(self) -> Any:
        kind = self._jvm.type(f"{CONNECTOR}.TableCapability")
        found = self._jvm.root.java.util.HashSet()
        for name in _CAPABILITIES:
            found.add(kind.valueOf(name))
        return found

    @crossing
    def newWriteBuilder(self, info: Any) -> Any:
        return _WriteBuilder(self._session, self._write, text_entries(info.options().asCaseSensitiveMap()))


class StagedDeltaTable(WritableTable):
    """A table that CREATE or REPLACE makes. `finish` runs after the rows were written, or if there are none."""

    class Java:
        implements: ClassVar[tuple[str, ...]] = (f"{CONNECTOR}.SupportsWrite", f"{CONNECTOR}.StagedTable")

    def __init__(self, session: SessionReference, target: Target, write: Write, finish: Callable[[bool], None]) -> None:
        super().__init__(session, target, self._write_once)
        self._write_rows = write
        self._finish = finish
        self._is_written = False

    def _write_once(self, frame: DataFrame, mode: str, dynamic: bool | None, options: dict[str, str]) -> None:
        self._write_rows(frame, mode, dynamic, options)
        self._is_written = True

    # ------------------------------------------------------------------------------------------ called by the JVM
    @crossing
    def commitStagedChanges(self) -> None:
        self._finish(self._is_written)

    def abortStagedChanges(self) -> None:
        return None

    def reportDriverMetrics(self) -> Any:
        return self._jvm.array((), "org.apache.spark.sql.connector.metric.CustomTaskMetric")


class _WriteBuilder(JavaProxy):
    class Java:
        implements: ClassVar[tuple[str, ...]] = (
            f"{_WRITE}.SupportsOverwriteV2",
            f"{_WRITE}.SupportsDynamicOverwrite",
            f"{_WRITE}.V1Write",
        )

    def __init__(self, session: SessionReference, write: Write, options: dict[str, str]) -> None:
        super().__init__(session.jvm)
        self._session = session
        self._write = write
        self._options = options
        self._mode = "append"
        self._dynamic: bool | None = None

    # ------------------------------------------------------------------------------------------ called by the JVM
    @crossing
    def canOverwrite(self, predicates: Any) -> bool:
        return self._condition(predicates) is not None

    @crossing
    def overwrite(self, predicates: Any) -> Any:
        """Replace the rows that meet all predicates."""
        condition = self._condition(predicates)
        assert condition is not None
        self._mode, self._dynamic = "overwrite", False
        self._options = {**self._options, "replaceWhere": condition}
        return self

    def _condition(self, predicates: Any) -> str | None:
        """Return predicates as one condition in SQL; None if Spark cannot make an expression of one."""
        utilities = self._jvm.module("org.apache.spark.sql.catalyst.expressions.V2ExpressionUtils")
        found = [utilities.toCatalyst(one) for one in predicates]
        if not all(one.isDefined() for one in found):
            return None
        return " AND ".join(f"({one.get().sql()})" for one in found)

    def truncate(self) -> Any:
        self._mode = "overwrite"
        self._dynamic = False
        return self

    def overwriteDynamicPartitions(self) -> Any:
        self._mode = "overwrite"
        self._dynamic = True
        return self

    def build(self) -> Any:
        return self

    def description(self) -> str:
        return "Delta"

    def supportedCustomMetrics(self) -> Any:
        return self._jvm.array((), "org.apache.spark.sql.connector.metric.CustomMetric")

    def reportDriverMetrics(self) -> Any:
        return self._jvm.array((), "org.apache.spark.sql.connector.metric.CustomTaskMetric")

    def toInsertableRelation(self) -> Any:
        return _Rows(self._session, self._write, self._mode, self._dynamic, self._options)


class _Rows(JavaProxy):
    class Java:
        implements: ClassVar[tuple[str, ...]] = ("org.apache.spark.sql.sources.InsertableRelation",)

    def __init__(
        self, session: SessionReference, write: Write, mode: str, dynamic: bool | None, options: dict[str, str]
    ) -> None:
        super().__init__(session.jvm)
        self._session = session
        self._call = (mode, dynamic, options)
        self._write = write

    # ------------------------------------------------------------------------------------------ called by the JVM
    @crossing
    def insert(self, rows: Any, overwrite: bool) -> None:
        self._write(DataFrame(rows, self._session.spark), *self._call)
