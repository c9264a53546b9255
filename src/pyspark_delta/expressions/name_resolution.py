"""Resolve names in a predicate to columns of a schema: case-insensitive, nested by dots, with a suggestion if
unknown.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from pyspark_delta.expressions.tree import Column
from pyspark_delta.schema.text_lengths import padded_length
from pyspark_delta.schema.types import DataType, StructField, StructType

COLLATIONS_KEY = "__COLLATIONS"


def find_fields(parts: Sequence[str], schema: StructType) -> tuple[StructField, ...] | None:
    """Return the fields from the top-level column down to the named one; None if the schema has no such column."""
    fields: list[StructField] = []
    current: DataType = schema
    for part in parts:
        if not isinstance(current, StructType):
            return None
        found = current.find(part)
        if found is None:
            return None
        fields.append(found)
        current = found.type
    return tuple(fields)


def column_of(fields: Sequence[StructField]) -> Column:
    """Return the column that a chain of fields names, spelled as in the schema."""
    return Column(tuple(f.name for f in fields), fields[-1].type)


def is_collated(fields: Sequence[StructField]) -> bool:
    """True if the column has a collation: its strings then do not compare byte by byte."""
    return any(f.metadata.get(COLLATIONS_KEY) for f in fields)  # on nested fields, the key may sit on the column


def is_padded(fields: Sequence[StructField]) -> bool:
    """True if the column is a char(n): its values are padded, and so are constants that are compared with it.

    Texts inside of structs are not padded.
    """
    return len(fields) == 1 and padded_length(fields[0]) is not None


def suggestion(parts: Sequence[str], schema: StructType) -> str:
    """Return a sentence that names the nearest columns, or all of them if none is near."""
    names = list(_all_names(schema))
    folded = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(".".join(parts).casefold(), folded, n=3, cutoff=0.6)
    if near:
        return f"Did you mean {' or '.join(repr(folded[n]) for n in near)}?"
    top = ", ".join(repr(name) for name in schema.names[:20])
    return f"The columns are {top}{', ...' if len(schema) > 20 else ''}."


def _all_names(schema: StructType, prefix: str = "") -> Iterator[str]:
    for f in schema:
        yield prefix + f.name
        inner = f.type
        if isinstance(inner, StructType):
            yield from _all_names(inner, f"{prefix}{f.name}.")
