"""The two sides of a MERGE in one frame, whose columns can be told apart whatever users call theirs.

Beside the columns by which users speak of a side, each has copies under names of our own, and a column that is true:
where it is null after an outer join, the side has no row there. A key of a matched row may be null as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyspark.sql.functions as sf
from pyspark.errors import AnalysisException

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.schema.types import StructType
from pyspark_delta.spark.dml.merge_clauses import Clause, RowKind
from pyspark_delta.spark.dml.one_side import OneSide
from pyspark_delta.spark.dml.target import Condition, Target
from pyspark_delta.spark.probing import probing
from pyspark_delta.spark.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TARGET, _SOURCE, _EARLY = (f"__pyspark_delta_{name}_{{}}" for name in ("target", "source", "early"))
_IN_TARGET, _IN_SOURCE = "__pyspark_delta_in_target", "__pyspark_delta_in_source"


@dataclass(frozen=True)
class Sides:
    """The target and the source of a merge, and values that are computed on one of them before they are joined."""

    target: Target
    source: DataFrame
    schema: StructType  # of the source
    early: Mapping[RowKind, Sequence[Column]] = field(default_factory=dict)

    def old(self, name: str) -> Column:
        """What a column of the table was; null in rows that the source alone has."""
        return sf.col(_TARGET.format(self.target.configuration.schema.names.index(name)))

    def given(self, name: str) -> Column | None:
        """The column of the source of that name, None where it has none, or several."""
        found = self.schema.find(name)
        if found is None or not self._is_unique(found.name):
            return None
        return sf.col(_SOURCE.format(self.schema.names.index(found.name)))

    def shared(self, kind: RowKind) -> dict[str, str]:
        """The copies of columns that clauses of a kind may call by names that the other side has too."""
        names = {name.casefold(): i for i, name in enumerate(self.target.configuration.schema.names)}
        given = {name.casefold(): i for i, name in enumerate(self.schema.names) if self._is_unique(name)}
        copies, numbers = (_SOURCE, given) if kind is RowKind.NOT_MATCHED else (_TARGET, names)
        return {name: copies.format(numbers[name]) for name in names.keys() & given.keys()}

    def joined(self, rows: DataFrame, condition: Condition, how: str) -> DataFrame:
        """The rows of the table and the source side by side; of one side alone where the join is anti or semi."""
        target, source = self._marked_target(rows), self._marked_source()
        on = sf.expr(condition) if isinstance(condition, str) else condition
        if how == "source_anti":
            return source.join(target, on, "left_anti")
        return target.join(source, on, how)

    def meeting(self, rows: DataFrame, condition: Condition) -> DataFrame:
        """The rows of the table that match one of the source, which is sent to all of them."""
        on = sf.expr(condition) if isinstance(condition, str) else condition
        return rows.join(sf.broadcast(self.source), on, "left_semi")

    def is_kind(self, kind: RowKind) -> Column:
        """Whether a row of the joined frame is of that kind."""
        target, source = sf.col(_IN_TARGET), sf.col(_IN_SOURCE)
        match kind:
            case RowKind.MATCHED:
                return target.isNotNull() & source.isNotNull()
            case RowKind.NOT_MATCHED:
                return target.isNull()
            case RowKind.BY_SOURCE:
                return source.isNull()

    def _marked_target(self, rows: DataFrame) -> DataFrame:
        names = self.target.configuration.schema.names
        copies = [sf.col(quoted(name)).alias(_TARGET.format(i)) for i, name in enumerate(names)]
        return rows.select("*", *copies, sf.lit(True).alias(_IN_TARGET), *self._early(RowKind.BY_SOURCE))

    def _marked_source(self) -> DataFrame:
        copies = [
            sf.col(quoted(name)).alias(_SOURCE.format(i))
            for i, name in enumerate(self.schema.names)
            if self._is_unique(name)
        ]
        early = self._early(RowKind.NOT_MATCHED)
        return self.source.select("*", *copies, sf.lit(True).alias(_IN_SOURCE), *early)

    def _early(self, kind: RowKind) -> list[Column]:
        return [value.alias(_early_name(kind, i)) for i, value in enumerate(self.early.get(kind, ()))]

    def _is_unique(self, name: str) -> bool:
        return Counter(other.casefold() for other in self.schema.names)[name.casefold()] == 1


@dataclass(frozen=True)
class Scopes:
    """What conditions and values of clauses may speak of: frames without rows, and without columns of our own."""

    target: DataFrame
    source: DataFrame

    @cached_property
    def joined(self) -> DataFrame:
        """Both sides."""
        return self.target.join(self.source)

    def of(self, kind: RowKind) -> DataFrame:
        """What clauses of a kind see."""
        match kind:
            case RowKind.MATCHED:
                return self.joined
            case RowKind.NOT_MATCHED:
                return self.source
            case RowKind.BY_SOURCE:
                return self.target

    def settle(self, clauses: Sequence[Clause], sides: Sides) -> tuple[tuple[Clause, ...], dict[RowKind, list[Column]]]:
        """The clauses with names that are clear where both sides are there, and what is computed early for that.

        A clause that sees one side may call a column by a name that both have, and speaks of copies then. Expressions
        that cannot be told like that are computed before the join: for all rows of the side, so that one may fail for
        a row that the clause does not take. Raises InvalidOperationError for what cannot be resolved.
        """
        settled: list[Clause] = []
        early: dict[RowKind, list[Column]] = {}
        for clause in clauses:
            given = _expressions(clause)
            if not given:
                settled.append(clause)
                continue
            resolve(self.of(clause.kind), given, clause.name)
            if clause.kind is RowKind.MATCHED or not _is_ambiguous(self.joined, given):
                settled.append(clause)
                continue
            told = self._told(given, clause.kind, sides)
            if told is None:
                known = early.setdefault(clause.kind, [])
                told = [_move(known, clause.kind, expression) for expression in given]
            condition = None if clause.condition is None else told.pop(0)
            values = None if clause.values is None else dict(zip(clause.values, told, strict=True))
            settled.append(Clause(clause.kind, clause.action, condition, values))
        return tuple(settled), early

    def _told(self, expressions: Sequence[Condition], kind: RowKind, sides: Sides) -> list[Column] | None:
        """The expressions by the names of copies; None where not all of them are clear then."""
        joined = sides.joined(self.target, sf.lit(True), "inner")
        side = OneSide(self.target.sparkSession, sides.shared(kind), lambda name: not _is_ambiguous(joined, [name]))
        told = [side.told(expression) for expression in expressions]
        clear = [one for one in told if one is not None]
        return clear if len(clear) == len(told) and not _is_ambiguous(joined, clear) else None


def resolve(frame: DataFrame, expressions: Sequence[Condition], where: str) -> None:
    """Raise InvalidOperationError for an unknown column, and what Spark says about other mistakes."""
    try:
        with probing():
            _ = frame.select(*_named(expressions)).schema
    except AnalysisException as error:
        if not (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
            raise
        parameters = error.getMessageParameters() or {}
        proposal = parameters.get("proposal")
        raise InvalidOperationError(
            f"Cannot resolve the column {parameters.get('objectName', '')} in {where}. "
            + (f"Did you mean one of {proposal}?" if proposal else "There are no columns that it could mean."),
            error_class="DELTA_MERGE_UNRESOLVED_EXPRESSION",
            sqlstate="42601",
        ) from None


def _is_ambiguous(frame: DataFrame, expressions: Sequence[Condition]) -> bool:
    try:
        with probing():
            _ = frame.select(*_named(expressions)).schema
    except AnalysisException:
        return True
    return False


def _named(expressions: Sequence[Condition]) -> list[Column]:
    return [_column(expression).alias(f"c{number}") for number, expression in enumerate(expressions)]


def _expressions(clause: Clause) -> list[Condition]:
    return [*([] if clause.condition is None else [clause.condition]), *(clause.values or {}).values()]


def _move(early: list[Column], kind: RowKind, expression: Condition) -> Column:
    early.append(_column(expression))
    return sf.col(_early_name(kind, len(early) - 1))


def _early_name(kind: RowKind, number: int) -> str:
    return _EARLY.format(f"{kind.name.lower()}_{number}")


def _column(expression: Condition) -> Column:
    return sf.expr(expression) if isinstance(expression, str) else expression
