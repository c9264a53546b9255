"""The two sides of a MERGE in one frame, with columns that stay distinct even if their names are equal.

Each side has its columns under the names that users know, copies of them under internal names, and a column that is
always true. If that column is null after an outer join, the side has no row there. Keys cannot show this, because the
key of a matched row may be null too.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyspark.sql.functions as sf
from pyspark.errors import AnalysisException

from pyspark_delta.errors import InvalidOperationError, InvalidOptionError
from pyspark_delta.schema.column_paths import parse_column_path, quoted
from pyspark_delta.schema.types import StructType
from pyspark_delta.spark.conf.conditions import condition_of
from pyspark_delta.spark.conf.probing import probing
from pyspark_delta.spark.engine.dml.hidden_columns import hidden_column_remedy
from pyspark_delta.spark.engine.dml.target import SparkTarget
from pyspark_delta.spark.frames.catalyst.columns import column_of, tree_of
from pyspark_delta.spark.frames.catalyst.jvm import Jvm, jvm_of
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of, texts
from pyspark_delta.spark.frames.catalyst.qualified import Labels
from pyspark_delta.spark.frames.column_text import name_parts, text_on, value_text
from pyspark_delta.spark.frames.plain_columns import aliased, column_at
from pyspark_delta.statements.merge.clauses import Clause, RowKind
from pyspark_delta.statements.target import Condition

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_TARGET, _SOURCE, _EARLY = (f"__pyspark_delta_{name}_{{}}" for name in ("target", "source", "early"))
_IN_TARGET, _IN_SOURCE = "__pyspark_delta_in_target", "__pyspark_delta_in_source"


@dataclass(frozen=True)
class Sides:
    """The target and the source of a merge, and values that are computed on one of them before they are joined."""

    target: SparkTarget
    source: DataFrame
    schema: StructType  # of the source
    early: Mapping[RowKind, Sequence[Column]] = field(default_factory=dict)

    def old(self, name: str) -> Column:
        """Return the old value of a column of the table; null in rows that only the source has."""
        number = self.target.configuration.schema.names.index(name)
        return column_at(self.target.spark, _TARGET.format(number))

    def given(self, name: str) -> Column | None:
        """Return the source column of a name; None if the source has no such column, or several."""
        found = self.schema.find(name)
        if found is None or not self._is_unique(found.name):
            return None
        return column_at(self.target.spark, _SOURCE.format(self.schema.names.index(found.name)))

    def shared(self, kind: RowKind) -> dict[str, str]:
        """Return the copies to use in clauses of a kind for columns that both sides have, by casefolded name."""
        names = {name.casefold(): i for i, name in enumerate(self.target.configuration.schema.names)}
        given = {name.casefold(): i for i, name in enumerate(self.schema.names) if self._is_unique(name)}
        copies, numbers = (_SOURCE, given) if kind is RowKind.NOT_MATCHED else (_TARGET, names)
        return {name: copies.format(numbers[name]) for name in names.keys() & given.keys()}

    def joined(self, rows: DataFrame, condition: Condition, how: str) -> DataFrame:
        """Return the join of the rows of the table and of the source.

        `how` is a join type of PySpark, or `source_anti` for the source rows that no row of the table matches.
        """
        target, source = self._marked_target(rows), self._marked_source()
        on = sf.expr(condition) if isinstance(condition, str) else condition
        if how == "source_anti":
            return source.join(target, on, "left_anti")
        return target.join(source, on, how)

    def meeting(self, rows: DataFrame, condition: Condition) -> DataFrame:
        """Return the rows of the table that match a row of the source. Spark broadcasts the source."""
        on = sf.expr(condition) if isinstance(condition, str) else condition
        return rows.join(sf.broadcast(self.source), on, "left_semi")

    def is_kind(self, kind: RowKind) -> Column:
        """Return a condition that is true for rows of that kind in the joined frame."""
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
        copies = [column_at(self.target.spark, quoted(name), _TARGET.format(i)) for i, name in enumerate(names)]
        return rows.select("*", *copies, sf.lit(True).alias(_IN_TARGET), *self._early(RowKind.BY_SOURCE))

    def _marked_source(self) -> DataFrame:
        copies = [
            column_at(self.target.spark, quoted(name), _SOURCE.format(i))
            for i, name in enumerate(self.schema.names)
            if self._is_unique(name)
        ]
        early = self._early(RowKind.NOT_MATCHED)
        return self.source.select("*", *copies, sf.lit(True).alias(_IN_SOURCE), *early)

    def _early(self, kind: RowKind) -> list[Column]:
        return [aliased(value, _early_name(kind, i)) for i, value in enumerate(self.early.get(kind, ()))]

    def _is_unique(self, name: str) -> bool:
        return self._counts[name.casefold()] == 1

    @cached_property
    def _counts(self) -> Counter[str]:
        return Counter(name.casefold() for name in self.schema.names)


@dataclass(frozen=True)
class Scopes:
    """The columns that conditions and values of clauses may name: frames without rows and without internal columns."""

    target: DataFrame
    source: DataFrame

    @cached_property
    def joined(self) -> DataFrame:
        """Both sides."""
        return self.target.join(self.source)

    def of(self, kind: RowKind) -> DataFrame:
        """Return the frame whose columns clauses of a kind may use."""
        match kind:
            case RowKind.MATCHED:
                return self.joined
            case RowKind.NOT_MATCHED:
                return self.source
            case RowKind.BY_SOURCE:
                return self.target

    def qualify(
        self, clauses: Sequence[Clause], sides: Sides
    ) -> tuple[tuple[Clause, ...], dict[RowKind, list[Column]]]:
        """Return the clauses with names that are unambiguous after the join, and the values to compute before it.

        A clause that sees one side may use a column name that both sides have; the name of the copy replaces it. If an
        expression of a clause cannot be rewritten, all its expressions are computed before the join, for all rows of
        the side. So they may fail for a row to which the clause does not apply. Raises InvalidOperationError for names
        that cannot be resolved.
        """
        qualified: list[Clause] = []
        early: dict[RowKind, list[Column]] = {}
        for clause in clauses:
            given = _expressions(clause)
            if not given:
                qualified.append(clause)
                continue
            resolve(self.of(clause.kind), given, clause.name)
            if clause.kind is RowKind.MATCHED or not _is_ambiguous(self.joined, given):
                qualified.append(clause)
                continue
            expressions = self._qualified(given, clause.kind, sides)
            if expressions is None:
                known = early.setdefault(clause.kind, [])
                expressions = [_move(known, clause.kind, expression) for expression in given]
            condition = None if clause.condition is None else expressions.pop(0)
            values = None if clause.values is None else dict(zip(clause.values, expressions, strict=True))
            qualified.append(Clause(clause.kind, clause.action, condition, values))
        return tuple(qualified), early

    def _qualified(self, expressions: Sequence[Condition], kind: RowKind, sides: Sides) -> list[Column] | None:
        """Return the expressions with the names of copies; None if one cannot be rewritten or stays ambiguous."""
        joined = sides.joined(self.target, sf.lit(True), "inner")
        side = OneSide(self.target.sparkSession, sides.shared(kind), lambda name: not _is_ambiguous(joined, [name]))
        qualified = [side.qualified(expression) for expression in expressions]
        clear = [one for one in qualified if one is not None]
        return clear if len(clear) == len(qualified) and not _is_ambiguous(joined, clear) else None


def resolve(frame: DataFrame, expressions: Sequence[Condition], where: str) -> None:
    """Check that Spark can resolve expressions on a frame; `where` names their place in the message.

    Raises InvalidOperationError for an unknown column, and Spark's own error about any other mistake.
    """
    try:
        with probing():
            _ = frame.select(*_named(expressions)).schema
    except AnalysisException as error:
        if not condition_of(error).startswith("UNRESOLVED_COLUMN"):
            raise
        parameters = error.getMessageParameters() or {}
        name, proposal = parameters.get("objectName", ""), parameters.get("proposal")
        hint = f"Did you mean one of {proposal}?" if proposal else "No column has a similar name."
        raise InvalidOperationError(
            f"Cannot resolve the column {name} in {where}. {hidden_column_remedy(name) or hint}",
            error_class="DELTA_MERGE_UNRESOLVED_EXPRESSION",
            sqlstate="42601",
        ) from None


def clause_text(clause: Clause, scopes: Scopes, labels: Labels) -> Clause | None:
    """Return the clause with its condition and values in SQL; None if one has no SQL text, or if Spark rejects it.

    `labels` as in `text_on`.
    """
    frame, values = scopes.of(clause.kind), None
    try:
        condition = None if clause.condition is None else text_on(frame, clause.condition, labels)
        if clause.values is not None:
            values = {name: _value_text(frame, value, labels) for name, value in clause.values.items()}
    except (InvalidOptionError, AnalysisException):
        return None
    if values is not None and None in values.values():
        return None
    return replace(clause, condition=condition, values=values)


def _value_text(frame: DataFrame, value: Condition, labels: Labels) -> str | None:
    parts = None if isinstance(value, str) else name_parts(value)
    is_qualified = bool(labels) and parts is not None and len(parts) > 1
    return value_text(frame, value, labels) if parts is None or is_qualified else ".".join(map(quoted, parts))


def _is_ambiguous(frame: DataFrame, expressions: Sequence[Condition]) -> bool:
    try:
        with probing():
            _ = frame.select(*_named(expressions)).schema
    except AnalysisException:
        return True
    return False


def _named(expressions: Sequence[Condition]) -> list[Column]:
    return [aliased(_column(expression), f"c{number}") for number, expression in enumerate(expressions)]


def _expressions(clause: Clause) -> list[Condition]:
    return [*([] if clause.condition is None else [clause.condition]), *(clause.values or {}).values()]


def _move(early: list[Column], kind: RowKind, expression: Condition) -> Column:
    early.append(_column(expression))
    return sf.col(_early_name(kind, len(early) - 1))


def _early_name(kind: RowKind, number: int) -> str:
    return _EARLY.format(f"{kind.name.lower()}_{number}")


def _column(expression: Condition) -> Column:
    return sf.expr(expression) if isinstance(expression, str) else expression


_NAME = re.compile(r"(?<![\w.`])(?:`(?:[^`]|``)+`|\w+)")  # a name that is not part of a longer path
_VARIABLE = "UnresolvedNamedLambdaVariable"


class _UnclearError(Exception):
    """An expression cannot be rewritten with the names of copies."""


@dataclass(frozen=True)
class OneSide:
    """The side that expressions refer to. `copies` are those of `Sides.shared`.

    `is_clear` returns True if a name in SQL is unambiguous in the joined frame.
    """

    spark: SparkSession
    copies: Mapping[str, str]
    is_clear: Callable[[str], bool]

    def qualified(self, expression: Condition) -> Column | None:
        """Return the expression with the names of copies; None if it cannot be rewritten.

        Expressions with Python functions are not rewritten: after the join, Spark would run the functions for all rows,
        not only for those of the clause.
        """
        column = sf.expr(expression) if isinstance(expression, str) else expression
        try:
            if hasattr(column, "_jc"):
                return _on_classic(column, self)
            return _on_connect(column, self)
        except _UnclearError:
            return None

    def copy_of(self, parts: Sequence[str]) -> Any:
        """Return the copy that replaces a name, given by its parts; None if the name does not change."""
        found = self.copies.get(parts[0].casefold())
        if found is None or (len(parts) > 1 and self.is_clear(_path(parts))):  # the first part names the side
            return None
        return sf.col(_path([found, *parts[1:]])).alias(parts[-1])  # struct() names its members after the columns


# ------------------------------------------------------------------------------------------------- classic sessions
def _on_classic(column: Any, side: OneSide) -> Column:
    from py4j.protocol import Py4JError

    trees = _Catalyst(side)
    try:
        tree = trees.renamed(trees.of(column), frozenset())
        found = column_of(trees.jvm, tree)
    except (Py4JError, TypeError):  # a release of Spark with other internals
        raise _UnclearError from None
    return found


@dataclass(frozen=True)
class _Catalyst:
    """Renames columns in Catalyst's expression trees."""

    side: OneSide

    @property
    def jvm(self) -> Jvm:
        """The JVM of the session."""
        return jvm_of(self.side.spark)

    def of(self, column: Any) -> Any:
        """Return the expression tree of a column."""
        return tree_of(self.side.spark, column)

    def renamed(self, node: Any, bound: frozenset[str]) -> Any:
        """Return the tree with new names; `bound` are the variables of enclosing lambda functions."""
        kind = kind_of(node)
        if "PythonUD" in kind:
            raise _UnclearError
        if kind in ("UnresolvedAttribute", _VARIABLE):
            parts = texts(node.nameParts())
            new = None if kind == _VARIABLE and parts[0].casefold() in bound else self.side.copy_of(parts)
            return node if new is None else self.of(new)
        if kind == "LambdaFunction":
            bound |= {texts(argument.nameParts())[0].casefold() for argument in elements(node.arguments())}
        before = elements(node.children())
        after = [self.renamed(child, bound) for child in before]
        if all(one is other for one, other in zip(before, after, strict=True)):
            return node
        return node.withNewChildren(self.jvm.seq(after))


# ---------------------------------------------------------------------------------------------------- Spark Connect
def _on_connect(column: Any, side: OneSide) -> Column:
    found: Column = type(column)(_renamed(column._expr, side))
    return found


def _renamed(node: Any, side: OneSide) -> Any:
    """Return an expression of Spark Connect with new names; unchanged parts are the same objects."""
    from pyspark.sql.connect.expressions import Expression

    if type(node) in (list, tuple):
        return type(node)(_renamed(one, side) for one in node)
    if not isinstance(node, Expression):
        return node
    kind = type(node).__name__
    if kind == "CommonInlineUserDefinedFunction":
        raise _UnclearError
    if kind == "SQLExpression":
        return _around(node, side)
    if kind == "ColumnReference" and getattr(node, "_plan_id", None) is None:
        new = side.copy_of(parse_column_path(node._unparsed_identifier))  # type: ignore[attr-defined]
        return node if new is None else new._expr
    changed = copy.copy(node)
    changed.__dict__.update({name: _renamed(value, side) for name, value in vars(node).items()})
    return changed


def _around(node: Any, side: OneSide) -> Any:
    """Wrap SQL text in lambda functions, whose variables have the names of columns and the values of their copies."""
    text = given = node._expr
    names = {name[1:-1].replace("``", "`") if name[0] == "`" else name for name in _NAME.findall(text)}
    shared = sorted({name.casefold() for name in names} & side.copies.keys())
    if [given.strip().strip("`").casefold()] == shared:
        return side.copy_of(shared)._expr
    for name in shared:
        if re.search(rf"{re.escape(name)}`?\s*\.", given, re.IGNORECASE) and side.is_clear(f"{quoted(name)}.*"):
            raise _UnclearError  # the side has the same name as the column
        text = f"transform(array({quoted(side.copies[name])}), {quoted(name)} -> ({text}))[0]"
    return sf.expr(text)._expr


def _path(parts: Sequence[str]) -> str:
    return ".".join(map(quoted, parts))
