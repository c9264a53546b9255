"""Temporary views as the targets of statements: a view that shows all rows and columns of one Delta table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark_delta.errors import InvalidOperationError, PathAccessError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.frames.catalyst.jvm import jvm_of
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of
from pyspark_delta.spark.frames.catalyst.qualified import frame_of_plan
from pyspark_delta.spark.frames.read_marks import frame_plan, marks_in
from pyspark_delta.spark.frames.reading import read_snapshot
from pyspark_delta.spark.sql.targets import SqlTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ANALYSIS = "org.apache.spark.sql.catalyst.analysis"
_NAMES = ("SubqueryAlias", "View")


def table_of_view(spark: SparkSession, parts: Sequence[str]) -> SqlTable | None:
    """Return the Delta table behind a view; None if the view reads no Delta table.

    Raises InvalidOperationError for a view that shows other rows or columns than its table: a filter, a projection, a
    join, or an older version.
    """
    relation = jvm_of(spark).type(f"{_ANALYSIS}.UnresolvedRelation")(
        jvm_of(spark).seq(parts), _no_options(spark), False
    )
    frame = frame_of_plan(spark, relation)
    if not _reads_delta(frame_plan(frame)):
        return None
    table = _whole_table(spark, frame)
    if table is not None:
        return SqlTable(tuple(parts), table)
    what = "is not simply all rows and columns of the newest version of one Delta table, so rows cannot be changed"
    raise view_refusal(parts, f"{what} through it")


def _whole_table(spark: SparkSession, frame: DataFrame) -> str | None:
    """Return the location of the table that a frame shows as it is now; None if it shows anything else.

    The plan does not say how a catalog knows its table, so that a table which only its catalog can open is not found.
    """
    locations = {mark.location for mark in marks_in(frame)}
    if len(locations) != 1:
        return None
    try:
        snapshot = Snapshot.load(location := locations.pop())
    except PathAccessError:
        return None
    whole = frame_plan(read_snapshot(spark, snapshot))
    is_whole = _is_same(_shown(frame_plan(frame)), _shown(whole)) and tuple(frame.columns) == snapshot.schema.names
    return location if is_whole else None


def refuse_permanent_view(spark: SparkSession, parts: Sequence[str]) -> None:
    """Raise InvalidOperationError if a view in the session catalog shows a Delta table."""
    if table_of_view(spark, parts) is not None:
        raise view_refusal(parts, "is a view, and only temporary views can stand for their table")


def view_refusal(parts: Sequence[str], what: str) -> InvalidOperationError:
    """Return the error for a view as a target; `what` says why it cannot be one."""
    name = ".".join(parts)
    return InvalidOperationError(
        f"'{name}' {what}. Nothing was changed. Name the table itself, as in delta.`/path/to/table`.",
        error_class="DELTA_CANNOT_WRITE_INTO_VIEW",
        sqlstate="0A000",
        view=name,
    )


def _no_options(spark: SparkSession) -> Any:
    return jvm_of(spark).type("org.apache.spark.sql.util.CaseInsensitiveStringMap").empty()


def _reads_delta(plan: Any) -> bool:
    """Return True if a plan reads files of a Delta table through a file index in Python."""
    for leaf in elements(plan.collectLeaves()):
        if kind_of(leaf) == "LogicalRelation" and kind_of(leaf.relation()) == "HadoopFsRelation":
            index = leaf.relation().location()
            if "Proxy" in kind_of(index) and str(index.toString()).startswith("Delta["):
                return True
    return False


def _shown(plan: Any) -> Any:
    """Return a plan without names, and without projections that keep all columns under their names."""
    while True:
        if kind_of(plan) in _NAMES or (kind_of(plan) == "Project" and _keeps_all(plan)):
            plan = plan.child()
        else:
            return plan


def _keeps_all(project: Any) -> bool:
    before = [str(column.name()) for column in elements(project.child().output())]
    columns = elements(project.projectList())
    return [_kept(column) for column in columns] == before and [str(column.name()) for column in columns] == before


def _kept(column: Any) -> str | None:
    """Return the name of the column that a projection keeps; None for an expression."""
    while kind_of(column) in ("Alias", "Cast", "UpCast"):
        if kind_of(column) != "Alias" and str(column.dataType().json()) != str(column.child().dataType().json()):
            return None
        column = column.child()
    return str(column.name()) if kind_of(column) == "AttributeReference" else None


def _is_same(plan: Any, other: Any) -> bool:
    return list(_kinds(plan)) == list(_kinds(other))


def _kinds(plan: Any) -> Iterator[str]:
    yield kind_of(plan)
    for child in elements(plan.children()):
        yield from _kinds(child)
