"""Schemas of random tables, their changes, and the rules by which a stream with one schema reads files of another."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from tests.hand_made import Json
from tests.hand_made import field as column

NAMES = ("b", "c", "d", "e")
FIXED = ("id", "p", "c1", "c2")  # columns that stay
RENAME, DROP, TYPE_CHANGE = "RENAME COLUMN", "DROP COLUMN", "TYPE WIDENING"
RESTART, INCOMPATIBLE = (
    "DELTA_SCHEMA_CHANGED_WITH_VERSION",
    "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG",
)


class Column(NamedTuple):
    """A column; `physical` is its name in the files. A widened one was an integer."""

    name: str
    physical: str
    type: str = "long"
    nullable: bool = True
    widened: bool = False
    comment: int = 0

    def can_read(self, written: Column) -> bool:
        """True if values of a column of the same name can be read as this one."""
        types = (self.type,) if self.type != "long" else ("long", "integer")
        fits = written.type in types and (self.nullable or not written.nullable)
        return fits and written.physical == self.physical


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
        return [self._field(one) for one in self.columns]

    def _field(self, one: Column) -> Json:
        facts: dict[str, Any] = {"comment": str(one.comment)} if one.comment else {}
        if one.widened:
            facts["delta.typeChanges"] = [{"fromType": "integer", "toType": "long"}]
        if self.mapped:
            facts["delta.columnMapping.id"] = int(one.physical[1:])
            facts["delta.columnMapping.physicalName"] = one.physical
        return column(one.name, one.type, one.nullable, **facts)

    def can_read(self, written: Schema) -> bool:
        """True if files of another schema can be read with this one."""
        reads = {one.name: one for one in self.columns}
        fits = all(one.name in reads and reads[one.name].can_read(one) for one in written.columns)
        return fits and self.partition == written.partition

    def refusal(self, written: Schema, *, later: bool) -> str | None:
        """The error of a stream with this schema that comes to another one, which may be `later` in the log."""
        dropped = later and written.mapped and not set(self.names) <= set(written.names)
        if self.can_read(written) and not dropped:
            return None
        return RESTART if later and written.can_read(self) else INCOMPATIBLE

    def kinds_to(self, after: Schema) -> list[str]:
        """The kinds of changes to another schema that need consent."""
        old, new = ({one.physical: one for one in schema.columns} for schema in (self, after))
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
        self._chosen, self._ids = chosen, 3
        self.widens = chosen.random() < 0.5
        self.renames_partition = mapped and partitioned and chosen.random() < 0.3
        more = Column("b", "c3" if mapped else "b", chosen.choice(["integer", "long"]), chosen.random() < 0.5)
        columns = Column("id", "c1" if mapped else "id"), Column("p", "c2" if mapped else "p", "string"), more
        self.first = Schema(columns, ("p",) if partitioned else (), mapped)

    def next(self, schema: Schema) -> Schema:
        """Another schema, or the same if a change is impossible."""
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
        self._ids += 1
        return Column(name, f"c{self._ids}" if schema.mapped else name, self._chosen.choice(["integer", "long"]))

    def _pick(self, columns: list[Column]) -> Column | None:
        return self._chosen.choice(columns) if columns else None

    def _loose(self, schema: Schema) -> list[Column]:
        return [one for one in schema.columns if one.physical not in FIXED]

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
        return schema if picked is None else schema.changed(picked, None)

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
