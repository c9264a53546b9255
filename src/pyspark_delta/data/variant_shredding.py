"""Variants that are written shredded: what their values have in common becomes typed columns (Variant Shredding).

What the variants of a file look like is learned from its first rows: values of one type, or objects with fields of one
type each. Everything else stays encoded, beside the typed columns, so no value is ever refused for its form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.variant_objects import Entries, Integers, Names, merge_entries, write_objects
from pyspark_delta.data.variant_values import OBJECT, Encoded, common_type, typed_values
from pyspark_delta.errors import ConstraintViolationError
from pyspark_delta.stats.columns import StatsColumn

_SAMPLE = 4096  # rows
_MOST_FIELDS = 100
# A field is worth a column where every tenth value has it; objects of ever new names have no common form.
_LEAST_SHARE, _MOST_NEW_NAMES = 0.1, 1 / 16
_UNSHREDDED_LEAVES = 2
_Made = TypeVar("_Made")
_EMPTY_METADATA = pa.scalar(b"\x01\x00\x00", pa.binary())


@dataclass(frozen=True, slots=True)
class Form:
    """What the variants of a column have in common: the type of plain values, or names and types of fields."""

    plain: pa.DataType | None = None
    fields: tuple[tuple[str, pa.DataType], ...] = ()

    @property
    def type(self) -> pa.DataType:
        """The column as a file holds it."""
        typed = self.plain
        if typed is None:
            typed = pa.struct([pa.field(name, _field_type(kind), nullable=False) for name, kind in self.fields])
        binary = pa.binary()
        return pa.struct([pa.field("metadata", binary, nullable=False), ("value", binary), ("typed_value", typed)])

    @property
    def leaves(self) -> int:
        """How many Parquet columns it takes."""
        return _UNSHREDDED_LEAVES + (2 * len(self.fields) or 1)


@dataclass(frozen=True, slots=True)
class Shredding:
    """The forms of a file's variant columns, by position; columns without a form are written as they are."""

    forms: Mapping[int, Form]

    @classmethod
    def learn(cls, rows: pa.Table, positions: Sequence[int]) -> Shredding:
        """The forms of some columns, from their first rows. Raises as `apply`."""
        found = {at: _checked(rows, at, _form) for at in positions}
        return cls({at: form for at, form in found.items() if form is not None})

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema of the file."""
        for at, form in self.forms.items():
            schema = schema.set(at, schema.field(at).with_type(form.type))
        return schema

    def apply(self, rows: pa.Table) -> pa.Table:
        """The rows as the file holds them. Raises ConstraintViolationError for what is not a variant."""
        for at, form in self.forms.items():
            field = rows.schema.field(at).with_type(form.type)
            rows = rows.set_column(at, field, _checked(rows, at, partial(_shred_column, form)))
        return rows

    def moved(self, columns: Sequence[StatsColumn], names: Sequence[str]) -> tuple[StatsColumn, ...]:
        """Columns with statistics, at their Parquet columns in the file; `names` are the columns of its schema."""
        extra = np.zeros(len(names) + 1, np.int64)
        for at, form in self.forms.items():
            extra[at + 1 :] += form.leaves - _UNSHREDDED_LEAVES
        moves = dict(zip(names, extra.tolist(), strict=False))
        return tuple(c if c.leaf is None else replace(c, leaf=c.leaf + moves[c.path[0]]) for c in columns)


def _checked(rows: pa.Table, at: int, make: Callable[[pa.ChunkedArray], _Made]) -> _Made:
    """What is made of a column. Raises ConstraintViolationError for what is not a variant."""
    try:
        return make(rows.column(at))
    except pa.ArrowInvalid as error:
        name = rows.schema.field(at).name
        raise ConstraintViolationError(
            f"A value of the variant column '{name}' is not encoded as variants are: {error}. Nothing was committed. "
            "Make variants with parse_json or to_variant_object.",
            error_class="MALFORMED_VARIANT",
            sqlstate="22023",
            column=name,
        ) from None


# ---------------------------------------------------------------------------------------------- what they look like
def _form(column: pa.ChunkedArray) -> Form | None:
    sample = column.slice(0, _SAMPLE)
    variants = pa.concat_arrays(sample.drop_null().chunks) if len(sample) > sample.null_count else None
    if variants is None:
        return None
    values = Encoded.of(variants.field("value"))
    if (plain := common_type(values)) is not None:
        return Form(plain)
    is_object = values.kinds() == OBJECT
    objects = variants.filter(pa.array(is_object))
    metadata = objects.field("metadata")
    most = max(16, _MOST_NEW_NAMES * len(objects))
    if len(objects) < len(variants) / 2 or pc.count_distinct(metadata).as_py() > most:
        return None
    names = Names(metadata)
    fields = _fields(names, names.unshredded(objects.field("value")), _LEAST_SHARE * len(objects))
    return Form(fields=fields) if fields else None


def _fields(names: Names, entries: Entries, least: float) -> tuple[tuple[str, pa.DataType], ...]:
    """The commonest fields of one type, by name."""
    counts = np.bincount(entries.rank, minlength=len(names.every))
    common = [rank for rank in np.argsort(-counts, kind="stable").tolist() if counts[rank] >= least][:_MOST_FIELDS]
    found: dict[str, tuple[str, pa.DataType]] = {}
    for rank in sorted(common):
        kind = common_type(_encoded(entries.take(entries.rank == rank)))
        name = names.every[rank].decode()
        # Names that differ in case only are one column to readers that do not tell them apart.
        if kind is not None and name and name.casefold() not in found:
            found[name.casefold()] = (name, kind)
    return tuple(found.values())


def _encoded(entries: Entries) -> Encoded:
    return Encoded(entries.start, entries.size, entries.data)


def _field_type(kind: pa.DataType) -> pa.DataType:
    return pa.struct([("value", pa.binary()), ("typed_value", kind)])


# --------------------------------------------------------------------------------------------------- taking apart
def _shred_column(form: Form, column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([_shred(chunk, form) for chunk in column.chunks], form.type)


def _shred(variants: pa.StructArray, form: Form) -> pa.StructArray:
    """Some variants, struct<value, metadata>, in the form."""
    metadata, value = variants.field("metadata"), variants.field("value")
    if form.plain is not None:
        typed = typed_values(Encoded.of(value), form.plain)
        rest = pc.if_else(typed.is_null(), value, None)
    else:
        typed, rest = _shred_objects(variants, form)
    mask = variants.is_null() if variants.null_count else None
    return pa.StructArray.from_arrays([metadata, rest, typed], fields=list(form.type), mask=mask)


def _shred_objects(variants: pa.StructArray, form: Form) -> tuple[pa.StructArray, pa.Array]:
    """The typed fields of each object, and what remains; other values remain whole."""
    value, rows = variants.field("value"), len(variants)
    is_object = pa.array(Encoded.of(value).kinds() == OBJECT)
    names = Names(pc.if_else(is_object, variants.field("metadata"), _EMPTY_METADATA))
    entries = merge_entries([names.unshredded(pc.if_else(is_object, value, None))])
    ranks = {name: rank for rank, name in enumerate(names.every)}
    order = np.argsort(entries.rank, kind="stable")
    bounds = np.searchsorted(entries.rank[order], np.arange(len(names.every) + 1))
    remains = np.ones(len(entries.row), np.bool_)
    nodes = []
    for name, kind in form.fields:
        rank = ranks.get(name.encode())
        mine = order[:0] if rank is None else order[bounds[rank] : bounds[rank + 1]]
        remains[mine] = False
        nodes.append(_shred_field(entries.take(mine), kind, rows))
    rest = entries.take(remains)
    has_rest = pa.array(np.bincount(rest.row, minlength=rows) > 0)
    remaining = pc.if_else(is_object, pc.if_else(has_rest, write_objects(rest, rows), None), value)
    struct = list(form.type.field("typed_value").type)
    typed = pa.StructArray.from_arrays(nodes, fields=struct, mask=pc.invert(is_object))
    return typed, remaining


def _shred_field(entries: Entries, kind: pa.DataType, rows: int) -> pa.StructArray:
    """One field of all rows: typed, or as it was encoded, or neither where an object does not have it."""
    values = _encoded(entries)
    typed = typed_values(values, kind)
    place: Integers = np.zeros(rows, np.int64)
    place[entries.row] = np.arange(len(entries.row))
    absent = np.ones(rows, np.bool_)
    absent[entries.row] = False
    at = pa.array(place, mask=absent)
    other = replace(values, size=np.where(np.asarray(typed.is_null()), values.size, 0)).binaries()
    rest = pc.if_else(typed.is_null(), other, None)
    return pa.StructArray.from_arrays([rest.take(at), typed.take(at)], fields=list(_field_type(kind)))
