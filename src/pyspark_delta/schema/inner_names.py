"""Field metadata that names the columns inside a field: updated when these columns change.

These are the declared char and varchar types, collations, and ids of elements whose path begins with the logical name.
All are stored with a field at or above the column that they name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark_delta.schema.column_mapping import LEGACY_NESTED_IDS, NESTED_IDS, PHYSICAL_NAME
from pyspark_delta.schema.edits import Path, change_column, find_column, spelled, type_at
from pyspark_delta.schema.text_lengths import DECLARED_TYPE, declared_lengths, declared_type, inner_lengths
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType

COLLATIONS_KEY = "__COLLATIONS"

_Where = Callable[[tuple[str, ...]], tuple[str, ...] | None]


def follow_change(before: StructType, after: StructType, old: Path, new: Path | None) -> StructType:
    """Return `after`, with the field metadata updated to its column names.

    `before` has the column that changed at `old`; `new` is its path in `after`, None if it was dropped. The paths are
    equal for a column that has another type or other columns inside.
    """
    old = spelled(before, old)

    def where(path: tuple[str, ...]) -> tuple[str, ...] | None:
        if path[: len(old)] != old:
            return path
        return None if new is None else (*new, *path[len(old) :])

    return _follow(before, after, [old[:depth] for depth in range(1, len(old) + 1)], where)


def follow_drops(before: StructType, after: StructType, dropped: Sequence[Path]) -> StructType:
    """Like `follow_change`, for several columns of `before` that `after` lacks; paths as the schema spells them."""
    gone = {tuple(path) for path in dropped}

    def where(path: tuple[str, ...]) -> tuple[str, ...] | None:
        return None if any(path[:depth] in gone for depth in range(1, len(path) + 1)) else path

    owners = dict.fromkeys(path[:depth] for path in gone for depth in range(1, len(path)))
    return _follow(before, after, owners, where)


def _follow(before: StructType, after: StructType, owners: Iterable[tuple[str, ...]], where: _Where) -> StructType:
    for owner in owners:
        now = where(owner)
        if now is None or not isinstance(type_at(before, owner[:-1]), StructType):
            continue  # an element, key or value has no metadata
        field = find_column(before, owner)

        def change(known: StructField, field: StructField = field, owner: tuple[str, ...] = owner) -> StructField:
            return _changed(known, field, owner, where)

        if field.metadata.keys() & {DECLARED_TYPE, COLLATIONS_KEY, NESTED_IDS, LEGACY_NESTED_IDS}:
            after = change_column(after, now, change)
    return after


def _changed(after: StructField, before: StructField, owner: tuple[str, ...], where: _Where) -> StructField:
    """Return the field with its metadata from `before`, where its path was `owner`, updated to the present names."""
    metadata = dict(after.metadata)
    declared = _declared(after, before, owner, where)
    if declared is None:
        metadata.pop(DECLARED_TYPE, None)
    else:
        metadata[DECLARED_TYPE] = declared
    if isinstance(collations := before.metadata.get(COLLATIONS_KEY), Mapping):
        metadata[COLLATIONS_KEY] = _collations(collations, before, owner, where)
        if not metadata[COLLATIONS_KEY]:
            del metadata[COLLATIONS_KEY]
    for key in (NESTED_IDS, LEGACY_NESTED_IDS):
        if isinstance(ids := before.metadata.get(key), Mapping) and before.name != before.metadata.get(PHYSICAL_NAME):
            metadata[key] = {_with_prefix(path, before.name, after.name): value for path, value in ids.items()}
    return replace(after, metadata=metadata)


def _declared(after: StructField, before: StructField, owner: tuple[str, ...], where: _Where) -> Any:
    lengths = declared_lengths(before)
    if not lengths:
        return before.metadata.get(DECLARED_TYPE)
    moved = _moved(lengths, owner, where)
    known = _moved(inner_lengths(before.type), owner, where)
    new = {path: text for path, text in inner_lengths(after.type).items() if path not in known}
    return declared_type(after.type, {**new, **moved}) if new or moved else None


def _moved(lengths: Mapping[tuple[str, ...], str], owner: tuple[str, ...], where: _Where) -> dict[tuple[str, ...], str]:
    """Return declared lengths by their present paths inside the field whose path was `owner`."""
    return {now[len(owner) :]: text for path, text in lengths.items() if (now := where((*owner, *path))) is not None}


def _collations(
    collations: Mapping[str, Any], field: StructField, owner: tuple[str, ...], where: _Where
) -> dict[str, Any]:
    """Return collations by the path of their text, which begins with the name of the field; unknown paths stay."""
    found = {}
    for text, value in collations.items():
        inside = _resolve(text, field)
        if inside is None:
            found[text] = value
        elif (now := where((*owner, *inside))) is not None:
            found[".".join(now[len(owner) - 1 :])] = value
    return found


def _resolve(text: str, field: StructField) -> tuple[str, ...] | None:
    """Return the path inside a field for a text such as `field.element.member`; names may contain dots."""
    if text == field.name:
        return ()
    return _inside(text[len(field.name) + 1 :], field.type) if text.startswith(f"{field.name}.") else None


def _inside(text: str, data_type: DataType) -> tuple[str, ...] | None:
    members: list[tuple[str, DataType]]
    match data_type:
        case StructType(fields):
            members = [(field.name, field.type) for field in fields]
        case ArrayType(element):
            members = [("element", element)]
        case MapType(key, value):
            members = [("key", key), ("value", value)]
        case _:
            members = []
    for name, inner in members:
        if text == name:
            return (name,)
        if text.startswith(f"{name}.") and (rest := _inside(text[len(name) + 1 :], inner)) is not None:
            return (name, *rest)
    return None


def _with_prefix(path: str, old: str, new: str) -> str:
    return f"{new}{path[len(old) :]}" if path.startswith(f"{old}.") else path
