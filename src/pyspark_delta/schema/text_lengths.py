"""The limits of char(n) and varchar(n) columns, which Delta stores as strings with the declared type in field metadata.

The protocol has no such types; Spark writes the declared type of a column, the types inside it included, under one key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pyspark_delta.lazy_sqlglot import exp, sqlglot_errors
from pyspark_delta.schema.column_paths import column_path_text, quoted
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType

DECLARED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
_SPARK_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def length_condition(field: StructField) -> str:
    """Return the SQL condition that every string in the column has at most its declared length; "" if there is none.

    A declaration that cannot be parsed sets no limit.
    """
    parsed = _parse(field.metadata.get(DECLARED_TYPE))
    return "" if parsed is None else _condition(quoted(field.name), parsed, depth=0)


def declared_lengths(field: StructField) -> dict[tuple[str, ...], str]:
    """Return the char and varchar types that the metadata of a field declare, by path inside its type; `()` for the
    field.

    Empty if there is no declaration, or one that cannot be parsed.
    """
    parsed = _parse(field.metadata.get(DECLARED_TYPE))
    return {} if parsed is None else dict(_limited(parsed, field.type, ()))


def length_metadata(declared: exp.DataType, data_type: DataType) -> dict[str, object]:
    """Return the metadata that keeps the declared lengths in a parsed type; `data_type` is the type without them."""
    lengths = dict(_limited(declared, data_type, ()))
    return {DECLARED_TYPE: declared_type(data_type, lengths)} if lengths else {}


def declared_type(data_type: DataType, lengths: Mapping[tuple[str, ...], str], path: tuple[str, ...] = ()) -> str:
    """Return the type string with these char and varchar types inside, as Spark writes it."""
    match data_type:
        case _ if path in lengths:
            return lengths[path]
        case StructType(fields):
            members = (
                f"{column_path_text([f.name])}:{declared_type(f.type, lengths, (*path, f.name))}" for f in fields
            )
            return f"struct<{','.join(members)}>"
        case ArrayType(element):
            return f"array<{declared_type(element, lengths, (*path, 'element'))}>"
        case MapType(key, value):
            inner = (declared_type(key, lengths, (*path, "key")), declared_type(value, lengths, (*path, "value")))
            return f"map<{','.join(inner)}>"
        case _:
            return _SPARK_NAMES.get(str(data_type), str(data_type))


def _parse(declared: object) -> exp.DataType | None:
    if not isinstance(declared, str):
        return None
    try:
        return exp.DataType.build(declared, dialect="spark")
    except sqlglot_errors.SqlglotError:
        return None


def _is_limited(kind: object) -> bool:
    return kind in (exp.DataType.Type.CHAR, exp.DataType.Type.VARCHAR)


def _limited(
    declared: exp.DataType, data_type: DataType, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    inner = declared.expressions
    match data_type, declared.this:
        case _, kind if _is_limited(kind) and inner:
            yield path, f"{kind.value.lower()}({inner[0].name})"
        case ArrayType(element), exp.DataType.Type.ARRAY if inner:
            yield from _limited(inner[0], element, (*path, "element"))
        case MapType(key, value), exp.DataType.Type.MAP if len(inner) == 2:
            yield from _limited(inner[0], key, (*path, "key"))
            yield from _limited(inner[1], value, (*path, "value"))
        case StructType(), exp.DataType.Type.STRUCT:
            for member in inner:
                if isinstance(member, exp.ColumnDef) and (known := data_type.find(member.this.name)) is not None:
                    yield from _limited(member.args["kind"], known.type, (*path, known.name))


def _condition(value: str, declared: exp.DataType, depth: int) -> str:
    inner = declared.expressions
    element = f"e{depth}"
    match declared.this:
        case kind if _is_limited(kind) and inner and inner[0].name.isdecimal():  # others may be of any length
            return f"coalesce(length({value}) <= {int(inner[0].name)}, true)"
        case exp.DataType.Type.ARRAY if inner:
            return _every(value, _condition(element, inner[0], depth + 1), element)
        case exp.DataType.Type.MAP if inner:
            parts = zip((f"map_keys({value})", f"map_values({value})"), inner, strict=True)
            return _all(_every(v, _condition(element, declared, depth + 1), element) for v, declared in parts)
        case exp.DataType.Type.STRUCT:
            members = [(m.this.name, m.args["kind"]) for m in inner if isinstance(m, exp.ColumnDef)]
            return _all(_condition(f"{value}.{quoted(name)}", kind, depth) for name, kind in members)
        case _:
            return ""


def _every(value: str, condition: str, element: str) -> str:
    return f"coalesce(forall({value}, {element} -> {condition}), true)" if condition else ""


def _all(conditions: Iterable[str]) -> str:
    return " AND ".join(c for c in conditions if c)
