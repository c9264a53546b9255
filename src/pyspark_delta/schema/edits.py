"""Changes to a schema: columns are added, dropped, renamed, moved and retyped, at any nesting level.

A path names a column from the top level down. Inside arrays and maps it goes on with `element`, `key` or `value`.
Names compare regardless of case; the schema keeps its own spelling. Every function gives a new schema.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType

Path = Sequence[str]


@dataclass(frozen=True, slots=True)
class First:
    """Before all other fields of the struct."""


@dataclass(frozen=True, slots=True)
class After:
    """Behind the field of that name, in the same struct."""

    name: str


Position = First | After


def find_column(schema: StructType, path: Path) -> StructField:
    """The field at a path. Raises InvalidOperationError naming the nearest columns."""
    *parents, name = path
    struct = _struct_at(schema, parents)
    field = struct.find(name)
    if field is None:
        raise _unknown(path, struct)
    return field


def spelled(schema: StructType, path: Path) -> tuple[str, ...]:
    """The path as the schema spells it. Raises InvalidOperationError for a column that is not there."""
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
    """The schema with a field added to the struct at `parent` (empty for the top level), by default as the last one.

    Raises InvalidOperationError for a name that the struct has already, regardless of case.
    """

    def add(struct: StructType) -> StructType:
        known = struct.find(field.name)
        if known is not None:
            raise InvalidOperationError(
                f"The column '{column_path_text((*parent, field.name))}' cannot be added: there is a column "
                f"'{known.name}'. Choose another name; names compare regardless of case.",
                error_class="DELTA_ADD_COLUMN_ALREADY_EXISTS",
                column=field.name,
            )
        return _placed(struct, field, position, len(struct), parent)

    return _edit(schema, parent, add)


def drop_column(schema: StructType, path: Path) -> StructType:
    """The schema without the field at the path. Raises InvalidOperationError for the only field of a struct."""
    *parents, name = path
    find_column(schema, path)

    def drop(struct: StructType) -> StructType:
        if len(struct) == 1:
            raise InvalidOperationError(
                f"The column '{column_path_text(path)}' cannot be dropped: it is the only one "
                + (f"of the struct '{column_path_text(parents)}'." if parents else "of the table."),
                error_class="DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
            )
        dropped = struct.find(name)
        return StructType(tuple(f for f in struct if f is not dropped))

    return _edit(schema, parents, drop)


def rename_column(schema: StructType, path: Path, name: str) -> StructType:
    """The schema with another name for the field at the path.

    Raises InvalidOperationError when the struct has a field of that name already.
    """
    *parents, _ = path
    renamed = find_column(schema, path)
    other = _struct_at(schema, parents).find(name)
    if other is not None and other.name.casefold() != renamed.name.casefold():
        raise InvalidOperationError(
            f"The column '{column_path_text(path)}' cannot be renamed to '{name}': there is a column '{other.name}'.",
            error_class="DELTA_ADD_COLUMN_ALREADY_EXISTS",
            column=name,
        )
    return change_column(schema, path, lambda field: replace(field, name=name))


def move_column(schema: StructType, path: Path, position: Position) -> StructType:
    """The schema with the field at the path in another place of its struct."""
    *parents, name = path
    find_column(schema, path)

    def move(struct: StructType) -> StructType:
        moved = struct.find(name)
        assert moved is not None
        if isinstance(position, After) and position.name.casefold() == moved.name.casefold():
            return struct
        rest = StructType(tuple(f for f in struct if f is not moved))
        return _placed(rest, moved, position, len(rest), parents)

    return _edit(schema, parents, move)


def change_column(schema: StructType, path: Path, change: Callable[[StructField], StructField]) -> StructType:
    """The schema with what `change` makes of the field at the path."""
    *parents, name = path
    find_column(schema, path)

    def apply(struct: StructType) -> StructType:
        changed = struct.find(name)
        return StructType(tuple(change(f) if f is changed else f for f in struct))

    return _edit(schema, parents, apply)


def type_at(schema: StructType, path: Path) -> DataType:
    """The type at a path, which may end inside an array or a map."""
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


def _placed(struct: StructType, field: StructField, position: Position | None, last: int, parent: Path) -> StructType:
    match position:
        case None:
            index = last
        case First():
            index = 0
        case After(name):
            index = 1 + next((i for i, f in enumerate(struct) if f.name.casefold() == name.casefold()), -2)
            if index < 0:
                raise _unknown((*parent, name), struct)
    return StructType((*struct.fields[:index], field, *struct.fields[index:]))


# -------------------------------------------------------------------------------------------------------- errors
def _unknown(path: Path, struct: StructType) -> InvalidOperationError:
    folded = {name.casefold(): name for name in struct.names}
    near = difflib.get_close_matches(path[-1].casefold(), folded, n=3, cutoff=0.6)
    if near:
        hint = f"Did you mean {' or '.join(repr(folded[n]) for n in near)}?"
    else:
        hint = f"There are {', '.join(repr(name) for name in struct.names[:20])}."
    return InvalidOperationError(
        f"There is no column '{column_path_text(path)}'. {hint}",
        error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
        column=column_path_text(path),
    )


def _no_struct(path: Path) -> InvalidOperationError:
    return InvalidOperationError(
        f"The column '{column_path_text(path)}' is not a struct, so it has no columns inside.",
        error_class="DELTA_ADD_COLUMN_PARENT_NOT_STRUCT",
        column=column_path_text(path),
    )


def _no_member(path: Path, found: DataType) -> InvalidOperationError:
    inside = {ArrayType: "'element'", MapType: "'key' and 'value'"}.get(type(found), "nothing")
    return InvalidOperationError(
        f"'{column_path_text(path)}' names no column: inside a column of type {found} there is {inside}.",
        error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
        column=column_path_text(path),
    )
