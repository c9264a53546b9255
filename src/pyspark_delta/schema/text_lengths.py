"""The limits of char(n) and varchar(n) columns, which Delta stores as strings with the declared type in field metadata.

The protocol has no such types; Spark writes the declared type of a column, the types inside it included, under one key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from pyspark_delta.lazy_sqlglot import exp, sqlglot_errors
from pyspark_delta.schema.column_paths import column_path_text, quoted
from pyspark_delta.schema.types import STRING, ArrayType, DataType, MapType, StructField, StructType

DECLARED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
_CHAR = re.compile(r"char(?:acter)?\s*\(\s*([0-9]+)\s*\)")
_LENGTH = re.compile(r"(?:var)?char\(([0-9]+)\)")
_SPARK_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def length_condition(field: StructField) -> str:
    """Return the SQL condition that every string in the column has at most its declared length; "" if there is none.

    A declaration that cannot be parsed sets no limit.
    """
    lengths = declared_lengths(field)
    return _condition(quoted(field.name), field.type, lengths, ()) if lengths else ""


def padded_length(field: StructField) -> int | None:
    """Return n for a column that is a char(n), None for every other column, also one with char types inside."""
    if field.type != STRING:
        return None
    found = _CHAR.fullmatch(str(field.metadata.get(DECLARED_TYPE, "")).strip().lower())
    return int(found[1]) if found else None


def without_lengths(schema: StructType) -> StructType:
    """Return the schema without the declared types of its columns, as if their texts could have any length."""

    def stored(field: StructField) -> StructField:
        return replace(field, metadata={key: value for key, value in field.metadata.items() if key != DECLARED_TYPE})

    return StructType(tuple(map(stored, schema)))


def padded_text(value: str, length: int) -> str:
    """Return the SQL of a text that is padded with spaces to a length; longer texts stay."""
    return f"if(length({value}) < {length}, rpad({value}, {length}, ' '), {value})"


def declared_lengths(field: StructField) -> dict[tuple[str, ...], str]:
    """Return the char and varchar types that a field and the fields inside it declare, by path inside its type.

    The path of the field itself is `()`. What an outer field declares replaces what the fields inside it do. A
    declaration that cannot be parsed is ignored.
    """
    found: dict[tuple[str, ...], str | None] = {**inner_lengths(field.type)}
    parsed = _parse(field.metadata.get(DECLARED_TYPE))
    if parsed is not None:
        found.update(_declared(parsed, field.type, ()))
    return {path: text for path, text in found.items() if text is not None}


def inner_lengths(data_type: DataType) -> dict[tuple[str, ...], str]:
    """Return the char and varchar types that the fields inside a type declare, by path inside the type."""
    return dict(_inside(data_type, ()))


def length_metadata(declared: exp.DataType, data_type: DataType) -> dict[str, object]:
    """Return the metadata that keeps the declared lengths in a parsed type; `data_type` is the type without them."""
    lengths = {path: text for path, text in _declared(declared, data_type, ()) if text is not None}
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


def _inside(data_type: DataType, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what the fields inside a type declare."""
    match data_type:
        case StructType(fields):
            for field in fields:
                for rest, text in declared_lengths(field).items():
                    yield (*path, field.name, *rest), text
        case ArrayType(element):
            yield from _inside(element, (*path, "element"))
        case MapType(key, value):
            yield from _inside(key, (*path, "key"))
            yield from _inside(value, (*path, "value"))
        case _:
            return


def _declared(
    declared: exp.DataType, data_type: DataType, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str | None]]:
    """Yield the char or varchar type of every string in a parsed declaration, None for any length."""
    inner = declared.expressions
    match data_type, declared.this:
        case _, exp.DataType.Type.CHAR | exp.DataType.Type.VARCHAR if inner:
            yield path, f"{declared.this.value.lower()}({inner[0].name})"
        case ArrayType(element), exp.DataType.Type.ARRAY if inner:
            yield from _declared(inner[0], element, (*path, "element"))
        case MapType(key, value), exp.DataType.Type.MAP if len(inner) == 2:
            yield from _declared(inner[0], key, (*path, "key"))
            yield from _declared(inner[1], value, (*path, "value"))
        case StructType(), exp.DataType.Type.STRUCT:
            for member in inner:
                if isinstance(member, exp.ColumnDef) and (known := data_type.find(member.this.name)) is not None:
                    yield from _declared(member.args["kind"], known.type, (*path, known.name))
        case _:
            yield path, None


def _condition(
    value: str, data_type: DataType, lengths: Mapping[tuple[str, ...], str], path: tuple[str, ...], depth: int = 0
) -> str:
    element = f"e{depth}"
    match data_type:
        case _ if path in lengths:
            length = _LENGTH.fullmatch(lengths[path])  # others may be of any length
            return f"coalesce(length({value}) <= {int(length[1])}, true)" if length else ""
        case ArrayType(inner):
            return _every(value, _condition(element, inner, lengths, (*path, "element"), depth + 1), element)
        case MapType(key, inner):
            keys = _condition(element, key, lengths, (*path, "key"), depth + 1)
            values = _condition(element, inner, lengths, (*path, "value"), depth + 1)
            return _all((_every(f"map_keys({value})", keys, element), _every(f"map_values({value})", values, element)))
        case StructType(fields):
            members = ((f"{value}.{quoted(f.name)}", f) for f in fields)
            return _all(_condition(name, f.type, lengths, (*path, f.name), depth) for name, f in members)
        case _:
            return ""


def _every(value: str, condition: str, element: str) -> str:
    return f"coalesce(forall({value}, {element} -> {condition}), true)" if condition else ""


def _all(conditions: Iterable[str]) -> str:
    return " AND ".join(c for c in conditions if c)
