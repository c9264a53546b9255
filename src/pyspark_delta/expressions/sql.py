"""Parse SQL predicates in Spark's dialect to expressions with resolved columns and types.

There are two kinds of text: conditions of users, in which an unsupported part is an error, and conditions that Spark
pushes down (Catalyst's `Expression.sql`), in which such a part becomes `Opaque` and prunes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, tzinfo
from functools import cache
from typing import Literal as OneOf
from typing import TypeAlias, cast

from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.expressions import coercion
from pyspark_delta.expressions.casts import cast_as_asked
from pyspark_delta.expressions.current_time import one_moment
from pyspark_delta.expressions.evaluate import folded
from pyspark_delta.expressions.functions.dates import add_interval, interval_of
from pyspark_delta.expressions.functions.registry import bind_call
from pyspark_delta.expressions.functions.signature import Site
from pyspark_delta.expressions.literals import NotExactError, number_literal, zone_of
from pyspark_delta.expressions.name_resolution import column_of, find_fields, is_collated, is_padded, suggestion
from pyspark_delta.expressions.operators import CASTS, call_of, data_type_of, is_negated, keyword_of, require_grouping
from pyspark_delta.expressions.syntax import parse, short
from pyspark_delta.expressions.text import columns_of, is_plain
from pyspark_delta.expressions.tree import (
    And,
    Cast,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Opaque,
    Or,
    type_of,
)
from pyspark_delta.lazy_sqlglot import exp
from pyspark_delta.schema.text_lengths import padded_length, padded_text, without_lengths
from pyspark_delta.schema.types import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    STRING,
    VOID,
    DataType,
    StructField,
    StructType,
)


@cache
def _comparisons() -> dict[type[exp.Expression], str]:
    return {
        exp.EQ: "=",
        exp.NEQ: "<>",
        exp.LT: "<",
        exp.LTE: "<=",
        exp.GT: ">",
        exp.GTE: ">=",
        exp.NullSafeEQ: "<=>",
    }


def parse_predicate(
    text: str,
    schema: StructType,
    *,
    on_opaque: OneOf["error", "keep"] = "error",
    time_zone: str = "UTC",
) -> Expression:
    """Parse a condition and bind it to a schema (logical names).

    `on_opaque="error"` is for a user's condition: an unknown column, a syntax error, or a part that cannot be evaluated
    exactly here raises InvalidPredicateError. `on_opaque="keep"` is for conditions pushed down by Spark: each such part
    becomes Opaque, which is never an error and never drops a file. `time_zone` is the session time zone, for timestamps
    that name none.
    """
    zone = zone_of(time_zone)
    keep = on_opaque == "keep"
    try:
        node = parse(text)
    except InvalidPredicateError:
        if keep:
            return Opaque(text)
        raise
    with one_moment():
        return Binder(text, schema, zone, keep).condition(node)


def bind_part(node: exp.Expression, schema: StructType, time_zone: str) -> Expression:
    """Bind a part of a parsed condition like `parse_predicate` with `on_opaque="keep"`."""
    return Binder(_sql(node), schema, zone_of(time_zone), True).condition(node)


class Binder:
    """Binds one parsed expression; `keep` turns unsupported parts into Opaque."""

    def __init__(self, text: str, schema: StructType, zone: tzinfo, keep: bool) -> None:
        self.text, self.schema, self.zone, self.keep = text, schema, zone, keep

    def condition(self, node: exp.Expression) -> Expression:
        """Return a boolean expression; the smallest condition around an unknown part becomes Opaque."""
        match node:
            case exp.Paren():
                return self.condition(node.this)
            case exp.And() | exp.Or():
                kind = And if isinstance(node, exp.And) else Or
                return kind(tuple(self.condition(part) for part in _operands(node, type(node))))
            case exp.Not():
                return Not(self.condition(node.this))
        try:
            bound = self.value(node)
            if type_of(bound) == VOID:
                return Literal(None, BOOLEAN)
            if type_of(bound) != BOOLEAN:
                raise NotExactError(f"its type is {type_of(bound)}, not boolean")
            return bound
        except NotExactError as error:
            if self.keep:
                return Opaque(_sql(node))
            raise InvalidPredicateError(
                f"Cannot evaluate '{_sql(node)}' in the condition {short(self.text)}: {error}.",
                part=_sql(node),
            ) from None

    def value(self, node: exp.Expression) -> Expression:
        """Return the bound expression. Raises NotExactError if it cannot be evaluated exactly here."""
        for kind, op in _comparisons().items():
            if type(node) is kind:
                require_grouping(node)
                return self.compare(op, node.this, node.expression)
        binder = _binders().get(type(node))
        if binder is not None:
            return binder(self, node)
        return self.call(node)

    def call(self, node: exp.Expression) -> Expression:
        """Bind a function, or an operator that stands for one."""
        found = call_of(node)
        if found is None:
            raise NotExactError(f"Arrow does not compute {_sql(node)} exactly as Spark does")
        name, arguments = found
        if keyword_of(node) and find_fields((name,), self.schema):  # as in Spark, a column goes before the keyword
            raise NotExactError(f"{name} is a column too; the column is `{name}` in backticks, the function {name}()")
        if name in CASTS and len(arguments) == 1:
            return self.converted(arguments[0], CASTS[name])
        if name in ("add", "subtract") and isinstance(arguments[1], exp.Interval):
            return self.moved(name, arguments[0], arguments[1])
        bind = self.value if name in ("isnull", "isnotnull") else self.ordered
        bound = folded(bind_call(Site(name, tuple(bind(argument) for argument in arguments), self.zone, self.keep)))
        return Not(bound) if is_negated(node) else bound

    def moved(self, name: str, moment: exp.Expression, interval: exp.Expression) -> Expression:
        """Bind a date or timestamp plus or minus a constant interval."""
        amount, sign = interval.this, 1 if name == "add" else -1
        if isinstance(amount, exp.Neg):
            amount, sign = amount.this, -sign
        if self.keep or not isinstance(amount, exp.Literal) or not isinstance(interval.args.get("unit"), exp.Var):
            raise NotExactError("an interval is added only if it is a constant of one unit, such as INTERVAL 3 DAY")
        operand = self.value(moment)
        found = interval_of(str(amount.this), str(interval.args["unit"].this))
        return folded(add_interval(operand, found, sign, Site("an interval", (operand,), self.zone)))

    def converted(self, node: exp.Expression, target: DataType) -> Expression:
        return cast_as_asked(self.ordered(node), target, self.zone, keep=self.keep)

    def compare(self, op: str, left: exp.Expression, right: exp.Expression) -> Expression:
        one, other = self.padded(left, right) or (self.ordered(left), self.ordered(right))
        return coercion.compare(op, one, other, self.zone)

    def padded(self, left: exp.Expression, right: exp.Expression) -> tuple[Expression, Expression] | None:
        """Return the sides of a comparison of char(n) columns; None for others.

        As in Spark, columns and constants are padded to the same length.
        """
        lengths = [self.char_length(node) for node in (left, right)]
        if self.keep or lengths == [None, None]:
            return None
        stored = Binder(self.text, without_lengths(self.schema), self.zone, self.keep)
        others = [self.ordered(node) for node, length in zip((left, right), lengths, strict=True) if length is None]
        texts = [one.value for one in others if isinstance(one, Literal) and isinstance(one.value, str)]
        width = max([*(length for length in lengths if length is not None), *map(len, texts)])

        def side(node: exp.Expression, length: int | None) -> Expression:
            if length is not None:
                return stored.value(parse(padded_text(_sql(node), width)))
            return Literal(texts[0].ljust(width), STRING) if texts else others[0]

        return side(left, lengths[0]), side(right, lengths[1])

    def char_length(self, node: exp.Expression) -> int | None:
        """Return n for a column that is a char(n), None for every other expression."""
        if not isinstance(node, exp.Column | exp.Dot):
            return None
        fields = find_fields([str(name.this) for name in _identifiers(node)], self.schema)
        return padded_length(fields[0]) if fields and is_padded(fields) else None

    def ordered(self, node: exp.Expression) -> Expression:
        """Return a side of a comparison; collated and char(n) columns do not compare byte by byte."""
        bound = self.value(node)
        for column in columns_of(bound):
            fields = find_fields(column.path, self.schema)
            if fields and is_collated(fields):
                raise NotExactError(f"the column '{'.'.join(column.path)}' has a collation")
            if fields and is_padded(fields):
                raise NotExactError(f"the column '{'.'.join(column.path)}' is a char(n), which Spark pads")
        return bound

    def column(self, node: exp.Expression) -> Expression:
        return column_of(self.fields(_identifiers(node)))

    def fields(self, names: list[exp.Identifier]) -> tuple[StructField, ...]:
        """Return the column for some names, from the top level down."""
        if self.keep:
            return self.pushed_column(names)
        parts = [str(name.this) for name in names]
        fields = find_fields(parts, self.schema)
        if fields is None:
            raise InvalidPredicateError(
                f"There is no column '{'.'.join(parts)}' in the table. {suggestion(parts, self.schema)}",
                column=".".join(parts),
            )
        return fields

    def pushed_column(self, names: list[exp.Identifier]) -> tuple[StructField, ...]:
        """Return the names without the table name or alias that Spark puts before a column; refuse ambiguous names."""
        parts = [str(name.this) for name in names]
        readings = [
            fields
            for start in range(len(parts))
            if (fields := find_fields(parts[start:], self.schema))
            # Spark always quotes the names of nested fields with backticks, and other names only if necessary.
            and not any(name.args.get("quoted") and is_plain(str(name.this)) for name in names[1 : start + 1])
        ]
        if len(readings) != 1:
            raise NotExactError(f"the name '{'.'.join(parts)}' is unknown or ambiguous")
        return readings[0]

    def negation(self, node: exp.Expression) -> Expression:
        return Not(self.boolean(node.this))

    def boolean(self, node: exp.Expression) -> Expression:
        bound = self.value(node)
        if type_of(bound) == VOID:
            return Literal(None, BOOLEAN)
        if type_of(bound) != BOOLEAN:
            raise NotExactError(f"'{_sql(node)}' is a {type_of(bound)}, not a condition")
        return bound

    def logical(self, node: exp.Expression) -> Expression:
        kind = And if isinstance(node, exp.And) else Or
        return kind(tuple(self.boolean(part) for part in _operands(node, type(node))))

    def between(self, node: exp.Expression) -> Expression:
        if node.args.get("symmetric"):
            raise NotExactError("BETWEEN SYMMETRIC is not Spark SQL")
        low, high = node.args["low"], node.args["high"]
        return And((self.compare(">=", node.this, low), self.compare("<=", node.this, high)))

    def distinct(self, node: exp.Expression) -> Expression:
        return Not(self.compare("<=>", node.this, node.expression))

    def test(self, node: exp.Expression) -> Expression:
        """Bind `x IS NULL`, `x IS TRUE`, `x IS FALSE`."""
        if isinstance(node.expression, exp.Null):
            return IsNull(self.value(node.this))
        if isinstance(node.expression, exp.Boolean):
            return Comparison("<=>", self.boolean(node.this), Literal(bool(node.expression.this), BOOLEAN))
        raise NotExactError("IS supports only [NOT] NULL, TRUE and FALSE")

    def membership(self, node: exp.Expression) -> Expression:
        if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
            raise NotExactError("a subquery is not evaluated outside Spark")
        if not self.keep and self.char_length(node.this) is not None:
            return Or(tuple(self.compare("=", node.this, value) for value in node.expressions))
        operand = self.ordered(node.this)
        values = [self.value(value) for value in node.expressions]
        literals = [value for value in values if isinstance(value, Literal)]
        if len(literals) < len(values):
            raise NotExactError("IN supports only constants")
        source = type_of(operand)
        if all(value.type in (source, VOID) for value in literals) and coercion.is_comparable(source):
            return In(operand, tuple(Literal(value.value, source) for value in literals))
        return _one_of(operand, literals, self.zone)

    def cast(self, node: exp.Expression) -> Expression:
        target = data_type_of(node.args["to"])
        bound = self.converted(node.this, target)
        is_safe = not isinstance(bound, Cast) or coercion.can_cast(type_of(bound.operand), target, UTC)
        if node.args.get("safe") and not is_safe:
            raise NotExactError("Arrow does not compute TRY_CAST where a value may not fit; CAST works")
        return bound

    def literal(self, node: exp.Expression) -> Expression:
        return Literal(str(node.this), STRING) if node.is_string else number_literal(str(node.this))

    def minus(self, node: exp.Expression) -> Expression:
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return number_literal(f"-{inner.this}")
        if isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal):
            number = inner.this
            negated = exp.Literal(this=f"-{number.this}", is_string=number.is_string)
            if number.is_string or "-" not in str(number.this):
                target = data_type_of(inner.args["to"])
                negated.set("is_string", number.is_string or target in (FLOAT, DOUBLE))  # -0.0D keeps its sign
                return coercion.cast(self.literal(negated), target, self.zone)
        return self.negative(inner)

    def negative(self, node: exp.Expression) -> Expression:
        return bind_call(Site("negative", (self.ordered(node),), self.zone, self.keep))

    def hexadecimal(self, node: exp.Expression) -> Expression:
        digits = str(node.this)
        try:
            return Literal(bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}"), BINARY)
        except ValueError:
            raise NotExactError(f"X'{digits}' is not a valid hexadecimal string") from None

    def anonymous(self, node: exp.Expression) -> Expression:
        """Bind a function; `negative(5)` is a constant."""
        if str(node.this).lower() == "negative" and len(node.expressions) == 1:
            return self.minus(exp.Neg(this=node.expressions[0]))
        return self.call(node)


_Bind: TypeAlias = "Callable[[Binder, exp.Expression], Expression]"


@cache
def _binders() -> dict[type[exp.Expression], _Bind]:
    return {
        exp.Column: Binder.column,
        exp.Dot: Binder.column,
        exp.Identifier: Binder.column,
        exp.Paren: lambda binder, node: binder.value(node.this),
        exp.Not: Binder.negation,
        exp.And: Binder.logical,
        exp.Or: Binder.logical,
        exp.Between: Binder.between,
        exp.NullSafeNEQ: Binder.distinct,
        exp.Is: Binder.test,
        exp.In: lambda binder, node: binder.membership(node),  # a lambda, so that subclasses can override it
        exp.Cast: Binder.cast,
        exp.TryCast: Binder.cast,
        exp.Literal: Binder.literal,
        exp.RawString: lambda binder, node: Literal(str(node.this), STRING),
        exp.Boolean: lambda binder, node: Literal(bool(node.this), BOOLEAN),
        exp.Null: lambda binder, node: Literal(None, VOID),
        exp.Neg: Binder.minus,
        # The class for Spark's name of the operator; older releases of the SQL library lack it.
        getattr(exp, "Negative", exp.Neg): lambda binder, node: binder.minus(exp.Neg(this=node.this)),
        exp.HexString: Binder.hexadecimal,
        exp.Anonymous: Binder.anonymous,
    }


def _one_of(operand: Expression, values: list[Literal], zone: tzinfo) -> Expression:
    """Bind IN with values of other types: equal to one of them, each compared in its own type."""
    tests = [coercion.compare("=", operand, value, zone) for value in values if value.value is not None]
    plain = [t for t in tests if isinstance(t, Comparison) and isinstance(t.right, Literal)]
    nulls = [Literal(None, type_of(operand)) for value in values if value.value is None][:1]
    sides = {t.left for t in plain}
    if len(plain) == len(tests) and len(sides) == 1:
        return In(sides.pop(), (*(t.right for t in plain if isinstance(t.right, Literal)), *nulls))
    tests += [Literal(None, BOOLEAN)] * len(nulls)
    return Or(tuple(tests)) if len(tests) > 1 else tests[0]


def _operands(node: exp.Expression, kind: type[exp.Expression]) -> list[exp.Expression]:
    """Return the operands of a chain of ANDs or ORs, flat, in order; without recursion, because chains can be long."""
    found: list[exp.Expression] = []
    open_nodes = [node]
    while open_nodes:
        current = open_nodes.pop()
        if isinstance(current, exp.Paren) and isinstance(current.this, kind):
            current = current.this
        if type(current) is kind:
            open_nodes += [current.expression, current.this]
        else:
            found.append(current)
    return found


def _identifiers(node: exp.Expression) -> list[exp.Identifier]:
    if isinstance(node, exp.Identifier):
        return [node]
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return [*_identifiers(node.this), node.expression]
    if isinstance(node, exp.Column) and all(isinstance(part, exp.Identifier) for part in node.parts):
        return [cast(exp.Identifier, part) for part in node.parts]
    raise NotExactError(f"'{_sql(node)}' is not a column name")


def _sql(node: exp.Expression) -> str:
    return node.sql(dialect="spark")
