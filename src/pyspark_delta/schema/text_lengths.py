"""The limits of char(n) and varchar(n) columns, which Delta stores as strings with the declared type in field metadata.

The protocol has no such types; Spark writes the declared type of a column, the types inside it included, under one key.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp
from sqlglot.errors import SqlglotError

from pyspark_delta.schema.types import StructField

DECLARED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
_LIMITED = (exp.DataType.Type.CHAR, exp.DataType.Type.VARCHAR)


def length_condition(field: StructField) -> str:
    """The SQL condition that every text in the column has at most its declared length; empty where there is none.

    A type text that cannot be parsed sets no limit.
    """
    declared = field.metadata.get(DECLARED_TYPE)
    if not isinstance(declared, str):
        return ""
    try:
        parsed = exp.DataType.build(declared, dialect="spark")
    except SqlglotError:
        return ""
    return _condition(_quote(field.name), parsed, depth=0)


def _condition(value: str, declared: exp.DataType, depth: int) -> str:
    inner = declared.expressions
    element = f"e{depth}"
    match declared.this:
        case kind if kind in _LIMITED and inner:
            return f"coalesce(length({value}) <= {inner[0].name}, true)"
        case exp.DataType.Type.ARRAY if inner:
            return _every(value, _condition(element, inner[0], depth + 1), element)
        case exp.DataType.Type.MAP if inner:
            parts = zip((f"map_keys({value})", f"map_values({value})"), inner, strict=True)
            return _all(_every(v, _condition(element, declared, depth + 1), element) for v, declared in parts)
        case exp.DataType.Type.STRUCT:
            members = [(m.this.name, m.args["kind"]) for m in inner if isinstance(m, exp.ColumnDef)]
            return _all(_condition(f"{value}.{_quote(name)}", kind, depth) for name, kind in members)
        case _:
            return ""


def _every(value: str, condition: str, element: str) -> str:
    return f"coalesce(forall({value}, {element} -> {condition}), true)" if condition else ""


def _all(conditions: Iterable[str]) -> str:
    return " AND ".join(c for c in conditions if c)


def _quote(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
