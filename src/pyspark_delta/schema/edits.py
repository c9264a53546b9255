"""Changes to a schema: columns are added, dropped, renamed, moved and retyped, at any nesting level.

A path names a column from the top level down. Inside arrays and maps it continues with `element`, `key` or `value`.
Names compare regardless of case; the schema keeps its own spelling. Every function returns a new schema.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType

Path = Sequence[str]


@dataclass(frozen=True, slots=True)
class First:
    """The position before all other fields of the struct."""


@dataclass(frozen=True, slots=True)
class After:
    """The position after the field of that name, in the same struct."""

    name: str


Position = First | After


def find_column(schema: StructType, path: Path) -> StructField:
    """Return the field at a path. Raises InvalidOperationError naming the nearest columns."""
    *parents, name = path
    struct = _struct_at(schema, parents)
    field = struct.find(name)
    if field is None:
        raise _unknown(path, struct)
    return field


def spelled(schema: StructType, path: Path) -> tuple[str, ...]:
    """Return the path as the schema spells it. Raises InvalidOperationError for an unknown column."""
    names: list[str] = []
    current: DataType = schema
    for position, part in enumerate(path):
        if isinstance(current, StructType):
            field = current.find(part)
            if field is None:
                raise _unknown(path[: position + 1], current)
            names.append(field.name)
            current = field.type
        else:
            current = _inside(current, part, path)
            names.append(part.lower())
    return tuple(names)


def add_column(schema: StructType, parent: Path, field: StructField, position: Position | None = None) -> StructType:
    """Return the schema with a field added to the struct at `parent` (empty for the top level), by default at the end.

    Raises InvalidOperationError if the struct already has the name, ignoring case.
    """
    return add_columns(schema, parent, [(field, position)])


def add_columns(schema: StructType, parent: Path, new: Sequence[tuple[StructField, Position | None]]) -> StructType:
    """Return the schema with fields added to the struct at `parent` in turn, as by `add_column`; it is rebuilt once."""

    def add(struct: StructType) -> StructType:
        fields = list(struct)
        names = {f.name.casefold(): f.name for f in reversed(struct.fields)}
        for field, position in new:
            folded = field.name.casefold()
            if folded in names:
                raise _already_there((*parent, field.name), names[folded])
            names[folded] = field.name
            fields.insert(_place(fields, position, parent), field)
        return StructType(tuple(fields))

    return _edit(schema, parent, add)


def drop_column(schema: StructType, path: Path) -> StructType:
    """Return the schema without the field at the path. Raises InvalidOperationError for the only field of a struct."""
    return drop_columns(schema, [path])


def drop_columns(schema: StructType, paths: Sequence[Path]) -> StructType:
    """Return the schema without the fields at the paths, each struct rebuilt once.

    Raises InvalidOperationError for a path that is missing or given twice, and if a struct would have no fields left.
    """
    by_parent: dict[tuple[str, ...], list[str]] = {}
    for *parents, name in paths:
        by_parent.setdefault(spelled(schema, parents), []).append(name)
    for parent in sorted(by_parent, key=len, reverse=True):  # nested columns of a dropped struct are dropped first
        schema = _edit(schema, parent, partial(_without, names=by_parent[parent], parent=parent))
    return schema


def _without(struct: StructType, names: Sequence[str], parent: Path) -> StructType:
    dropped: set[int] = set()
    for name in names:
        field = struct.find(name)
        if field is None or id(field) in dropped:
            raise _unknown((*parent, name), struct)
        dropped.add(id(field))
        if len(dropped) == len(struct):
            raise InvalidOperationError(
                f"The column '{column_path_text((*parent, name))}' cannot be dropped: it is the only one "
                + (f"of the struct '{column_path_text(parent)}'." if parent else "of the table."),
                error_class="DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
            )
    return StructType(tuple(f for f in struct if id(f) not in dropped))


def rename_column(schema: StructType, path: Path, name: str) -> StructType:
    """Return the schema with another name for the field at the path.

    Raises InvalidOperationError if the struct already has a field of that name.
    """
    *parents, _ = path
    renamed = find_column(schema, path)
    other = _struct_at(schema, parents).find(name)
    if other is not None and other.name.casefold() != renamed.name.casefold():
        raise InvalidOperationError(
            f"The column '{column_path_text(path)}' cannot be renamed to '{name}': a column '{other.name}' already "
            "exists.",
            error_class="DELTA_ADD_COLUMN_ALREADY_EXISTS",
            column=name,
        )
    return change_column(schema, path, lambda field: replace(field, name=name))


def move_column(schema: StructType, path: Path, position: Position) -> StructType:
    """Return the schema with the field at the path in another position of its struct."""
    *parents, name = path
    find_column(schema, path)

    def move(struct: StructType) -> StructType:
        moved = struct.find(name)
        assert moved is not None
        if isinstance(position, After) and position.name.casefold() == moved.name.casefold():
            return struct
        fields = [f for f in struct if f is not moved]
        fields.insert(_place(fields, position, parents), moved)
        return StructType(tuple(fields))

    return _edit(schema, parents, move)


def change_column(schema: StructType, path: Path, change: Callable[[StructField], StructField]) -> StructType:
    """Return the schema with `change` applied to the field at the path."""
    *parents, name = path
    find_column(schema, path)

    def apply(struct: StructType) -> StructType:
        changed = struct.find(name)
        return StructType(tuple(change(f) if f is changed else f for f in struct))

    return _edit(schema, parents, apply)


def type_at(schema: StructType, path: Path) -> DataType:
    """Return the type at a path, which may end inside an array or a map."""
    current: DataType = schema
    for position, part in enumerate(path):
        if isinstance(current, StructType):
            field = current.find(part)
            if field is None:
                raise _unknown(path[: position + 1], current)
            current = field.type
        else:
            current = _inside(current, part, path)
    return current


# ---------------------------------------------------------------------------------------------------- navigation
def _edit(schema: StructType, path: Path, edit: Callable[[StructType], StructType]) -> StructType:
    changed = _edited(schema, path, 0, edit)
    assert isinstance(changed, StructType)
    return changed


def _edited(current: DataType, path: Path, depth: int, edit: Callable[[StructType], StructType]) -> DataType:
    if depth == len(path):
        if not isinstance(current, StructType):
            raise _no_struct(path)
        return edit(current)
    part = path[depth]
    match current:
        case StructType(fields):
            found = current.find(part)
            if found is None:
                raise _unknown(path[: depth + 1], current)
            inner = _edited(found.type, path, depth + 1, edit)
            return StructType(tuple(replace(f, type=inner) if f is found else f for f in fields))
        case ArrayType(element) if part.lower() == "element":
            return replace(current, element_type=_edited(element, path, depth + 1, edit))
        case MapType(key, _) if part.lower() == "key":
            return replace(current, key_type=_edited(key, path, depth + 1, edit))
        case MapType(_, value) if part.lower() == "value":
            return replace(current, value_type=_edited(value, path, depth + 1, edit))
        case _:
            raise _no_member(path, current)


def _struct_at(schema: StructType, path: Path) -> StructType:
    found = type_at(schema, path)
    if not isinstance(found, StructType):
        raise _no_struct(path)
    return found


def _inside(current: DataType, part: str, path: Path) -> DataType:
    match current, part.lower():
        case ArrayType(element), "element":
            return element
        case MapType(key, _), "key":
            return key
        case MapType(_, value), "value":
            return value
        case _:
            raise _no_member(path, current)


def _place(fields: Sequence[StructField], position: Position | None, parent: Path) -> int:
    """Return the index of a new field among the fields."""
    match position:
        case None:
            return len(fields)
        case First():
            return 0
        case After(name):
            index = next((i for i, f in enumerate(fields) if f.name.casefold() == name.casefold()), None)
            if index is None:
                raise _unknown((*parent, name), StructType(tuple(fields)))
            return index + 1


# -------------------------------------------------------------------------------------------------------- errors
def _unknown(path: Path, struct: StructType) -> InvalidOperationError:
    folded = {name.casefold(): name for name in struct.names}
    near = difflib.get_close_matches(path[-1].casefold(), folded, n=3, cutoff=0.6)
    if near:
        hint = f"Did you mean {' or '.join(repr(folded[n]) for n in near)}?"
    else:
        hint = f"The columns are {', '.join(repr(name) for name in struct.names[:20])}."
    return InvalidOperationError(
        f"There is no column '{column_path_text(path)}'. {hint}",
        error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
        column=column_path_text(path),
    )


def _already_there(path: Path, known: str) -> InvalidOperationError:
    return InvalidOperationError(
        f"The column '{column_path_text(path)}' cannot be added: a column '{known}' already exists. Choose another "
        "name; names are compared ignoring case.",
        error_class="DELTA_ADD_COLUMN_ALREADY_EXISTS",
        column=path[-1],
    )


def _no_struct(path: Path) -> InvalidOperationError:
    return InvalidOperationError(
        f"The column '{column_path_text(path)}' is not a struct, so no column can be added to it.",
        error_class="DELTA_ADD_COLUMN_PARENT_NOT_STRUCT",
        column=column_path_text(path),
    )


def _no_member(path: Path, found: DataType) -> InvalidOperationError:
    inside = {ArrayType: "'element'", MapType: "'key' and 'value'"}.get(type(found), "nothing")
    return InvalidOperationError(
        f"'{column_path_text(path)}' is not a column: inside a column of type {found} there is {inside}.",
        error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
        column=column_path_text(path),
    )
