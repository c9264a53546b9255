"""Shredding of variants: common parts of their values become typed columns (Variant Shredding).

The form of the variants of a file is inferred from its first rows: values of one type, or objects with fields of one
type each, also nested objects. Everything else, including arrays, stays encoded beside the typed columns, so every
value can be written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.variant_objects import Entries, Names, empty_metadata, merge_entries, write_objects
from pyspark_delta.data.variant_values import OBJECT, Encoded, Mask, common_type, typed_values
from pyspark_delta.errors import ConstraintViolationError
from pyspark_delta.stats.indexed_columns import StatsColumn

_SAMPLE = 4096  # rows
_MOST_FIELDS = 100
# A field gets a column if a tenth of the objects have it. Objects with many different names have no common form.
_LEAST_SHARE, _MOST_NEW_NAMES, _FEW_NAMES = 0.1, 1 / 16, 16
_DEEPEST = 8
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class Form:
    """The common form of some values: the type of primitive values, or names and forms of the fields of objects.

    Without either, values stay encoded.
    """

    plain: pa.DataType | None = None
    fields: tuple[tuple[str, Form], ...] = ()

    @property
    def is_known(self) -> bool:
        """True if any part of the values is typed."""
        return self.plain is not None or bool(self.fields)

    @property
    def members(self) -> list[pa.Field]:
        """The fields of the value in a file: the encoded and the typed part."""
        typed = self.plain
        if typed is None:
            typed = pa.struct([pa.field(name, pa.struct(form.members), nullable=False) for name, form in self.fields])
        return [pa.field("value", pa.binary()), pa.field("typed_value", typed)]

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the column in a file."""
        return pa.struct([pa.field("metadata", pa.binary(), nullable=False), *self.members])

    @property
    def leaves(self) -> int:
        """The number of Parquet columns of the value."""
        return 2 if self.plain is not None else 1 + sum(form.leaves for _, form in self.fields)


@dataclass(frozen=True, slots=True)
class Shredding:
    """The forms of a file's variant columns, by position. Columns without a form are not shredded."""

    forms: Mapping[int, Form]

    @classmethod
    def learn(cls, rows: pa.Table, positions: Sequence[int]) -> Shredding:
        """Return the shredding for some columns, by their first rows. Raises the errors of `apply`."""
        found = {at: _checked(rows, at, _form) for at in positions}
        return cls({at: form for at, form in found.items() if form.is_known})

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the file; `schema` has no shredded columns."""
        for at, form in self.forms.items():
            schema = schema.set(at, schema.field(at).with_type(form.type))
        return schema

    def apply(self, rows: pa.Table) -> pa.Table:
        """Return the rows as the file stores them. Raises ConstraintViolationError for an invalid variant."""
        for at, form in self.forms.items():
            field = rows.schema.field(at).with_type(form.type)
            rows = rows.set_column(at, field, _checked(rows, at, partial(_shred_column, form)))
        return rows

    def moved(self, columns: Sequence[StatsColumn], names: Sequence[str]) -> tuple[StatsColumn, ...]:
        """Return columns with statistics, with their Parquet leaves in the file. `names` are the file's columns."""
        extra = np.zeros(len(names) + 1, np.int64)
        for at, form in self.forms.items():
            extra[at + 1 :] += form.leaves - 1  # the leaves of the form replace one value; the metadata stays
        moves = dict(zip(names, extra.tolist(), strict=False))
        return tuple(c if c.leaf is None else replace(c, leaf=c.leaf + moves[c.path[0]]) for c in columns)


def _checked(rows: pa.Table, at: int, make: Callable[[pa.ChunkedArray], _Made]) -> _Made:
    """Return what `make` returns for a column. Raises ConstraintViolationError for an invalid variant."""
    try:
        return make(rows.column(at))
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        name = rows.schema.field(at).name
        raise ConstraintViolationError(
            f"A value of the variant column '{name}' is not a valid variant: {error}. Nothing was committed. "
            "Create variants with parse_json or to_variant_object.",
            error_class="MALFORMED_VARIANT",
            sqlstate="22023",
            column=name,
        ) from None


# ------------------------------------------------------------------------------------------------ inferring forms
def _form(column: pa.ChunkedArray) -> Form:
    sample = column.slice(0, _SAMPLE).drop_null()
    if not len(sample):
        return Form()
    variants = pa.concat_arrays(sample.chunks)
    values = Encoded.of(variants.field("value"))
    metadata = _metadata(variants, values)
    is_uniform = pc.count_distinct(metadata).as_py() <= max(_FEW_NAMES, _MOST_NEW_NAMES * len(variants))
    return _form_of(values, Names(metadata) if is_uniform else None, _DEEPEST)


def _metadata(variants: pa.StructArray, values: Encoded) -> pa.Array:
    """Return the metadata of objects. The metadata of other values is not used, and so left empty."""
    return pc.if_else(pa.array(values.kinds() == OBJECT), variants.field("metadata"), empty_metadata())


def _form_of(values: Encoded, names: Names | None, depth: int) -> Form:
    """Return the form of values, one for each row of `names`. Values may be missing."""
    plain, is_object = common_type(values), values.kinds() == OBJECT
    objects, there = np.count_nonzero(is_object), np.count_nonzero(values.size)
    if plain is not None or names is None or not depth or not objects or objects < there / 2:
        return Form(plain)
    entries = _entries(values, is_object, names)
    counts = np.bincount(entries.rank, minlength=len(names.every))
    common = [rank for rank in np.argsort(-counts, kind="stable").tolist() if counts[rank] >= _LEAST_SHARE * objects]
    fields: dict[str, tuple[str, Form]] = {}
    for rank in sorted(common[:_MOST_FIELDS]):
        form = _form_of(_spread(entries.take(entries.rank == rank), len(values)), names, depth - 1)
        name = names.every[rank].decode()
        # Names that differ only in case are one column to case-insensitive readers.
        if form.is_known and name and name.casefold() not in fields:
            fields[name.casefold()] = (name, form)
    return Form(fields=tuple(fields.values()))


# ------------------------------------------------------------------------------------------------------ shredding
def _shred_column(form: Form, column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([_shred(chunk, form) for chunk in column.chunks], form.type)


def _shred(variants: pa.StructArray, form: Form) -> pa.StructArray:
    """Return variants (struct<value, metadata>) in shredded form."""
    values = Encoded.of(variants.field("value"))
    names = Names(_metadata(variants, values)) if form.fields else None
    mask = variants.is_null() if variants.null_count else None
    members = [variants.field("metadata"), *_take_apart(values, form, names)]
    return pa.StructArray.from_arrays(members, fields=list(form.type), mask=mask)


def _take_apart(values: Encoded, form: Form, names: Names | None) -> tuple[pa.Array, pa.Array]:
    """Return the encoded and the typed part of values. Both are null for a missing value."""
    if form.plain is not None or names is None:
        typed = typed_values(values, form.plain)
        return values.where(np.asarray(typed.is_null())).binaries(), typed
    rows, is_object = len(values), values.kinds() == OBJECT
    entries = _entries(values, is_object, names)
    ranks = {name: rank for rank, name in enumerate(names.every)}
    order = np.argsort(entries.rank, kind="stable")
    bounds = np.searchsorted(entries.rank[order], np.arange(len(names.every) + 1))
    remains, nodes = np.ones(len(entries.row), np.bool_), []
    for name, inner in form.fields:
        rank = ranks.get(name.encode())
        mine = order[:0] if rank is None else order[bounds[rank] : bounds[rank + 1]]
        remains[mine] = False
        parts = _take_apart(_spread(entries.take(mine), rows), inner, names)
        nodes.append(pa.StructArray.from_arrays(list(parts), fields=inner.members))
    remaining = values.where(~is_object).binaries()
    if remains.any():
        rest = merge_entries([entries.take(remains)])
        has_rest = pa.array(np.bincount(rest.row, minlength=rows) > 0)
        remaining = pc.if_else(has_rest, write_objects(rest, rows), remaining)
    fields = list(form.members[1].type)
    return remaining, pa.StructArray.from_arrays(nodes, fields=fields, mask=pa.array(~is_object))


def _entries(values: Encoded, chosen: Mask, names: Names) -> Entries:
    """Return the fields of the selected values, which are objects."""
    rows = np.flatnonzero(chosen)
    start = values.start[rows]
    return names.entries(rows, start, start + values.size[rows], values.data)


def _spread(entries: Entries, rows: int) -> Encoded:
    """Return the values of one field by row, missing where an object lacks the field."""
    start, size = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    start[entries.row], size[entries.row] = entries.start, entries.size
    return Encoded(start, size, entries.data)
