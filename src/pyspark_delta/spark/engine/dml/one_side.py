"""Expressions over one side of a MERGE, as they are told where the rows of both sides are.

A name that both sides have is clear to a clause that sees one of them, and not once they are joined. Here such names
become those of copies of the columns: in the tree of an expression, which Spark has parsed, or where the server alone
parses a text, by variables of those names around it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyspark.sql.functions as sf

from pyspark_delta.schema.column_paths import parse_column_path
from pyspark_delta.spark.engine.dml.target import Condition
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of, texts
from pyspark_delta.spark.frames.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_NAME = re.compile(r"(?<![\w.`])(?:`(?:[^`]|``)+`|\w+)")  # and no member of what a name before it means
_VARIABLE = "UnresolvedNamedLambdaVariable"


class _UnclearError(Exception):
    """What an expression means cannot be told by its names."""


@dataclass(frozen=True)
class OneSide:
    """The side that expressions speak of: the names of `copies` by the casefolded names of columns that both have.

    `is_clear` says whether a name in SQL means one thing where both sides are.
    """

    spark: SparkSession
    copies: Mapping[str, str]
    is_clear: Callable[[str], bool]

    def told(self, expression: Condition) -> Column | None:
        """The expression by the names of copies; None where it cannot be told like that, or need not be.

        Python runs its functions for all rows, whichever clause takes them; they are left to be run on one side.
        """
        column = sf.expr(expression) if isinstance(expression, str) else expression
        try:
            if hasattr(column, "_jc"):
                return _on_classic(column, self)
            return _on_connect(column, self)
        except _UnclearError:
            return None

    def copy_of(self, parts: Sequence[str]) -> Any:
        """The column of a name with several parts; None for a name that stays."""
        found = self.copies.get(parts[0].casefold())
        if found is None or (len(parts) > 1 and self.is_clear(_path(parts))):  # the first part names the side itself
            return None
        return sf.col(_path([found, *parts[1:]])).alias(parts[-1])  # a struct takes its members' names from columns


# ------------------------------------------------------------------------------------------------- in this process
def _on_classic(column: Any, side: OneSide) -> Column:
    from py4j.protocol import Py4JError

    trees = _Catalyst(side)
    try:
        tree = trees.renamed(trees.of(column), frozenset())
        found: Column = type(column)(trees.session._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(tree))
    except (Py4JError, TypeError):  # a release of Spark with other trees
        raise _UnclearError from None
    return found


@dataclass(frozen=True)
class _Catalyst:
    """Renames columns in Catalyst's trees."""

    side: OneSide

    @property
    def session(self) -> Any:
        """The session, with what it has for this process alone."""
        return self.side.spark

    def of(self, column: Any) -> Any:
        """The tree of a column."""
        return self.session._jsparkSession.expression(column._jc)

    def renamed(self, node: Any, bound: frozenset[str]) -> Any:
        """The tree with new names; `bound` are the variables of functions around it."""
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
        return node.withNewChildren(self.session._jvm.org.apache.spark.api.python.PythonUtils.toSeq(after))


# --------------------------------------------------------------------------------------------- for another process
def _on_connect(column: Any, side: OneSide) -> Column:
    found: Column = type(column)(_renamed(column._expr, side))
    return found


def _renamed(node: Any, side: OneSide) -> Any:
    """The expression of a Connect client with new names; parts that stay are the same objects."""
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
    """A text within variables that have the names of columns, and their values."""
    text = given = node._expr
    names = {name[1:-1].replace("``", "`") if name[0] == "`" else name for name in _NAME.findall(text)}
    shared = sorted({name.casefold() for name in names} & side.copies.keys())
    if [given.strip().strip("`").casefold()] == shared:
        return side.copy_of(shared)._expr
    for name in shared:
        if re.search(rf"{re.escape(name)}`?\s*\.", given, re.IGNORECASE) and side.is_clear(f"{quoted(name)}.*"):
            raise _UnclearError  # it names the side as well
        text = f"transform(array({quoted(side.copies[name])}), {quoted(name)} -> ({text}))[0]"
    return sf.expr(text)._expr


def _path(parts: Sequence[str]) -> str:
    return ".".join(map(quoted, parts))
