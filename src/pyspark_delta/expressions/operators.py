"""The calls that syntax stands for: operators, CASE, EXTRACT and other forms become functions by name."""

from __future__ import annotations

from functools import cache

from pyspark_delta.expressions.literals import NotExactError
from pyspark_delta.lazy_sqlglot import exp
from pyspark_delta.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)

_TRIMS = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}

_TYPES = {
    "TINYINT": BYTE,
    "SMALLINT": SHORT,
    "INT": INTEGER,
    "BIGINT": LONG,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "TEXT": STRING,
    "BINARY": BINARY,
    "VARBINARY": BINARY,
    "BOOLEAN": BOOLEAN,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMPLTZ": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP_NTZ,
}
CASTS: dict[str, DataType] = {
    "bigint": LONG,
    "binary": BINARY,
    "boolean": BOOLEAN,
    "date": DATE,
    "double": DOUBLE,
    "float": FLOAT,
    "int": INTEGER,
    "smallint": SHORT,
    "string": STRING,
    "timestamp": TIMESTAMP,
    "tinyint": BYTE,
}
"""Functions that are casts."""


@cache
def _binary() -> dict[type[exp.Expression], str]:
    return {
        exp.Add: "add",
        exp.Sub: "subtract",
        exp.Mul: "multiply",
        exp.Div: "divide",
        exp.IntDiv: "div",
        exp.Mod: "mod",
        exp.DPipe: "concat",
        exp.BitwiseAnd: "bit_and",
        exp.BitwiseOr: "bit_or",
        exp.BitwiseXor: "bit_xor",
        exp.BitwiseLeftShift: "shiftleft",
        exp.BitwiseRightShift: "shiftright",
        exp.Like: "like",
        exp.ILike: "ilike",
        exp.RegexpLike: "rlike",
    }


@cache
def _bits() -> tuple[type[exp.Expression], ...]:
    return tuple(kind for kind, name in _binary().items() if name.startswith(("bit_", "shift")))


@cache
def _sums() -> tuple[type[exp.Expression], ...]:
    return (exp.Add, exp.Sub)


@cache
def _comparisons() -> tuple[type[exp.Expression], ...]:
    return (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)


@cache
def _tests() -> tuple[type[exp.Expression], ...]:
    return (exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike)


def call_of(node: exp.Expression) -> tuple[str, list[exp.Expression]] | None:
    """Return the name, in lower case, and the arguments of the call that a node stands for; None if it is none.

    Raises NotExactError for operators that Spark may group in another way.
    """
    kind = type(node)
    if kind in _binary():
        _require_grouping(node)
        return _binary()[kind], [node.this, node.expression]
    match node:
        case exp.Anonymous():
            return _named(str(node.this).lower(), list(node.expressions))
        case exp.CurrentDate() | exp.CurrentTimestamp():
            return keyword_of(node), []
        case exp.BitwiseNot():
            return "bit_not", [node.this]
        case exp.If():
            return "if", [node.this, node.args["true"], node.args.get("false") or exp.Null()]
        case exp.Case():
            return "case", _branches(node)
        case exp.Substring():
            parts = [node.this, node.args["start"], node.args.get("length")]
            return "substring", [part for part in parts if part is not None]
        case exp.Trim():
            characters = [node.expression] if node.args.get("expression") is not None else []
            return _TRIMS[str(node.args.get("position") or "")], [node.this, *characters]
        case exp.StrPosition() if not node.args.get("position"):
            return "locate", [node.args["substr"], node.this]
        case exp.Overlay():
            parts = [node.this, node.expression, node.args.get("from_") or node.args.get("from"), _length_of(node)]
            return "overlay", [part for part in parts if part is not None]
        case exp.Extract():
            return "date_part", [exp.Literal.string(node.name), node.expression]
        case exp.Escape() if isinstance(node.this, exp.Like | exp.ILike):
            return _binary()[type(node.this)], [node.this.this, node.this.expression, node.expression]
        case exp.Bracket() if len(node.expressions) == 1:
            return "subscript", [node.this, node.expressions[0]]
    return None


def require_grouping(node: exp.Expression) -> None:
    """Raise NotExactError for a comparison with an operand that Spark groups in another way."""
    left, right = node.this, node.expression
    if isinstance(right, (*_comparisons(), *_tests())) or isinstance(left, _tests()):
        raise NotExactError("its operators need brackets")


def is_negated(node: exp.Expression) -> bool:
    """True for NOT LIKE and the like, which the SQL library may parse as one node."""
    return bool(node.args.get("negate") or (isinstance(node, exp.Escape) and node.this.args.get("negate")))


def keyword_of(node: exp.Expression) -> str:
    """Return the name of a function that is called without brackets, such as `CURRENT_DATE`; "" for another node."""
    if isinstance(node, exp.CurrentDate):
        return "current_date"
    return "current_timestamp" if isinstance(node, exp.CurrentTimestamp) else ""


def function_name(node: exp.Expression | exp.Func) -> str:
    """Return the name, in lower case, of a function call; "" for another node."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def _named(name: str, arguments: list[exp.Expression]) -> tuple[str, list[exp.Expression]]:
    """Return a call with its arguments in the order of the registry."""
    if name in ("ltrim", "rtrim") and len(arguments) == 2:
        return name, arguments[::-1]  # the characters come first
    if name == "struct":
        named: list[exp.Expression] = []
        for at, argument in enumerate(arguments):
            label = argument.name if isinstance(argument, exp.Column | exp.Alias) else f"col{at + 1}"
            named += [exp.Literal.string(label), argument.this if isinstance(argument, exp.Alias) else argument]
        return "named_struct", named
    return name, arguments


def _branches(node: exp.Case) -> list[exp.Expression]:
    parts: list[exp.Expression] = []
    for branch in node.args["ifs"]:
        test = branch.this if node.this is None else exp.EQ(this=node.this.copy(), expression=branch.this.copy())
        parts += [test, branch.args["true"]]
    return [*parts, node.args.get("default") or exp.Null()]


def _length_of(node: exp.Overlay) -> exp.Expression | None:
    found: exp.Expression | None = node.args.get("for_") or node.args.get("for")
    return found


def _require_grouping(node: exp.Expression) -> None:
    """Raise NotExactError for operators of different precedence in Spark and the SQL library, without brackets."""
    inside = (node.this, node.expression)
    for part in inside:
        mixes_bits = isinstance(node, _bits()) and isinstance(part, _bits()) and type(part) is not type(node)
        is_sum = isinstance(part, _sums())
        is_text = isinstance(part, exp.DPipe)
        mixes_text = (isinstance(node, exp.DPipe) and is_sum) or (isinstance(node, _sums()) and is_text)
        if mixes_bits or mixes_text or (isinstance(node, _tests()) and isinstance(part, (*_comparisons(), *_tests()))):
            raise NotExactError("its operators need brackets")


def data_type_of(node: exp.Expression) -> DataType:
    """Return the type that a cast names. Raises NotExactError for one that is not supported."""
    name = str(getattr(node.this, "value", node.this))
    if name == "DECIMAL":
        sizes = [int(str(parameter.this.this)) for parameter in node.expressions] or [10, 0]
        return DecimalType(sizes[0], sizes[1] if len(sizes) > 1 else 0)
    if name not in _TYPES or node.expressions or node.args.get("nested"):
        raise NotExactError(f"the type {node.sql(dialect='spark')} is not supported")
    return _TYPES[name]
