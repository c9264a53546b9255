"""Schemas of random tables, their changes, and the rules by which a stream with one schema reads files of another."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, NamedTuple

from tests.hand_made import Json, struct_of
from tests.hand_made import field as column

NAMES = ("b", "c", "d", "e")
FIXED = 2  # the first columns stay
NESTED = ("struct", "array", "map")
RENAME, DROP, TYPE_CHANGE = "RENAME COLUMN", "DROP COLUMN", "TYPE WIDENING"
RESTART, INCOMPATIBLE = (
    "DELTA_SCHEMA_CHANGED_WITH_VERSION",
    "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG",
)


class Column(NamedTuple):
    """A column, or a field in a nested one; `physical` is its name in the files. A widened one was an integer.

    `inner` are the fields of a struct, of the elements of an array, or of the values of a map, as `type` says.
    """

    name: str
    physical: str
    number: int
    type: str = "long"
    nullable: bool = True
    widened: bool = False
    comment: int = 0
    inner: tuple[Column, ...] = ()

    def can_read(self, written: Column) -> bool:
        """True if values of a column of the same name can be read as this one."""
        types = (self.type,) if self.type != "long" else ("long", "integer")
        fits = written.type in types and (self.nullable or not written.nullable)
        return fits and written.physical == self.physical and can_read(self.inner, written.inner)

    def data_type(self, *, mapped: bool) -> Any:
        """The type as the log has it."""
        inner = struct_of(*(one.field(mapped=mapped) for one in self.inner))
        nested: dict[str, Json] = {
            "struct": inner,
            "array": {"type": "array", "elementType": inner, "containsNull": True},
            "map": {"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": True},
        }
        return nested.get(self.type, self.type)

    def field(self, *, mapped: bool) -> Json:
        """The column as the log has it."""
        facts: dict[str, Any] = {"comment": str(self.comment)} if self.comment else {}
        if self.widened:
            facts["delta.typeChanges"] = [{"fromType": "integer", "toType": "long"}]
        if mapped:
            facts["delta.columnMapping.id"] = self.number
            facts["delta.columnMapping.physicalName"] = self.physical
        return column(self.name, self.data_type(mapped=mapped), self.nullable, **facts)


def can_read(columns: Iterable[Column], written: Iterable[Column]) -> bool:
    """True if values of some columns can be read as others."""
    reads = {one.name: one for one in columns}
    return all(one.name in reads and reads[one.name].can_read(one) for one in written)


def names_in(columns: Iterable[Column]) -> set[tuple[str, ...]]:
    """The names of columns and of fields in them, with those of the columns around them."""
    return {(one.name, *rest) for one in columns for rest in [(), *names_in(one.inner)]}


def by_physical_name(columns: Iterable[Column]) -> dict[tuple[str, ...], Column]:
    """Columns and the fields in them by their names in the files, with those of the columns around them."""
    found: dict[tuple[str, ...], Column] = {}
    for one in columns:
        found[one.physical,] = one
        found |= {(one.physical, *rest): inner for rest, inner in by_physical_name(one.inner).items()}
    return found


class Schema(NamedTuple):
    """The columns of a table, in order, and which of them partition it."""

    columns: tuple[Column, ...]
    partition: tuple[str, ...] = ()
    mapped: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [one.name for one in self.columns]

    def fields(self) -> list[Json]:
        """The columns as the log has them."""
        return [one.field(mapped=self.mapped) for one in self.columns]

    @property
    def partition_key(self) -> str:
        """The name of the second column in the partition values of files."""
        return next(one.physical for one in self.columns if one.number == FIXED)

    def can_read(self, written: Schema) -> bool:
        """True if files of another schema can be read with this one."""
        return can_read(self.columns, written.columns) and self.partition == written.partition

    def refusal(self, written: Schema, *, later: bool) -> str | None:
        """The error of a stream with this schema that comes to another one, which may be `later` in the log."""
        dropped = later and written.mapped and not names_in(self.columns) <= names_in(written.columns)
        if self.can_read(written) and not dropped:
            return None
        return RESTART if later and written.can_read(self) else INCOMPATIBLE

    def kinds_to(self, after: Schema) -> list[str]:
        """The kinds of changes to another schema that need consent."""
        old, new = by_physical_name(self.columns), by_physical_name(after.columns)
        kept = [(old[name], new[name]) for name in old if name in new]
        found = {
            RENAME: any(before.name != now.name for before, now in kept),
            DROP: len(kept) < len(old),
            TYPE_CHANGE: any(before.type != now.type for before, now in kept),
        }
        return [kind for kind, is_found in found.items() if is_found]

    def changed(self, before: Column, after: Column | None) -> Schema:
        """The schema with another column, or without it."""
        columns = [after if one == before else one for one in self.columns]
        partition = [after.name if after is not None and name == before.name else name for name in self.partition]
        return self._replace(columns=tuple(one for one in columns if one is not None), partition=tuple(partition))


class SchemaChanges:
    """Random changes of the schema of one table."""

    def __init__(self, chosen: random.Random, *, mapped: bool, partitioned: bool) -> None:
        self._chosen, self._number = chosen, FIXED
        self.widens = chosen.random() < 0.5
        self._maps = chosen.random() < 0.4  # a table that is not mapped at first
        self.renames_partition = partitioned and (mapped or self._maps) and chosen.random() < 0.3
        columns = [Column(name, f"c{n}" if mapped else name, n) for n, name in enumerate(("id", "p"), 1)]
        self.first = Schema((columns[0], columns[1]._replace(type="string")), ("p",) if partitioned else (), mapped)
        more = self._new(self.first, "b")._replace(nullable=chosen.random() < 0.5)
        self.first = self.first._replace(columns=(*self.first.columns, more))

    def next(self, schema: Schema) -> Schema:
        """Another schema, or the same if a change is impossible."""
        if self._maps and not schema.mapped and self._chosen.random() < 0.3:
            return schema._replace(mapped=True)
        nested = self._pick([one for one in schema.columns if one.inner])
        if nested is not None and self._chosen.random() < 0.6:
            inside = self.next(Schema(nested.inner, (), schema.mapped))
            return schema.changed(nested, nested._replace(inner=inside.columns))
        kinds = [self._add, self._add, self._allow_nulls, self._comment]
        kinds += [self._widen] if self.widens else []
        kinds += [self._rename, self._rename, self._drop, self._replace] if schema.mapped else []
        return self._chosen.choice(kinds)(schema)

    def _add(self, schema: Schema) -> Schema:
        free = [name for name in NAMES if name not in schema.names]
        return (
            schema._replace(columns=(*schema.columns, self._new(schema, self._chosen.choice(free)))) if free else schema
        )

    def _new(self, schema: Schema, name: str) -> Column:
        self._number += 1
        made = Column(name, f"c{self._number}" if schema.mapped else name, self._number)
        if self._chosen.random() < 0.5:
            return made._replace(type=self._chosen.choice(["integer", "long"]))
        names = NAMES[: self._chosen.randint(1, 2)]
        return made._replace(type=self._chosen.choice(NESTED), inner=tuple(self._new(schema, one) for one in names))

    def _pick(self, columns: list[Column]) -> Column | None:
        return self._chosen.choice(columns) if columns else None

    def _loose(self, schema: Schema) -> list[Column]:
        return [one for one in schema.columns if one.number > FIXED]

    def _rename(self, schema: Schema) -> Schema:
        """Give a column a new name, that of a former column, or that of another one, which gets its name."""
        partition = [one for one in schema.columns if one.name in schema.partition and self.renames_partition]
        picked, name = self._pick(self._loose(schema) + partition), self._chosen.choice(NAMES)
        if picked is None:
            return schema
        other = next((one for one in schema.columns if one.name == name), None)
        renamed = {picked: picked._replace(name=name)}
        if other is not None:
            renamed[other] = other._replace(name=picked.name)
        names = {before.name: after.name for before, after in renamed.items()}
        columns = tuple(renamed.get(one, one) for one in schema.columns)
        return schema._replace(columns=columns, partition=tuple(names.get(one, one) for one in schema.partition))

    def _drop(self, schema: Schema) -> Schema:
        picked = self._pick([one for one in self._loose(schema) if one.name not in schema.partition])
        return schema if picked is None or len(schema.columns) == 1 else schema.changed(picked, None)

    def _replace(self, schema: Schema) -> Schema:
        """Drop a column and add another one of its name."""
        picked = self._pick(self._loose(schema))
        return schema if picked is None else schema.changed(picked, self._new(schema, picked.name))

    def _widen(self, schema: Schema) -> Schema:
        picked = self._pick([one for one in schema.columns if one.type == "integer"])
        return schema if picked is None else schema.changed(picked, picked._replace(type="long", widened=True))

    def _allow_nulls(self, schema: Schema) -> Schema:
        picked = self._pick([one for one in schema.columns if not one.nullable])
        return schema if picked is None else schema.changed(picked, picked._replace(nullable=True))

    def _comment(self, schema: Schema) -> Schema:
        picked = self._chosen.choice(schema.columns)
        return schema.changed(picked, picked._replace(comment=picked.comment + 1))
