"""Whether two Parquet schemas mean the same: names, types, nullability, field ids and annotations, in the same order.

An annotation has an older and a newer form; writers use either or both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeAlias

from pyspark_delta.parquet.footer import FIXED, INT96
from pyspark_delta.parquet.thrift import FALSE, TRUE, Elements, Struct

Meaning: TypeAlias = tuple[Any, ...]

_NAME, _REPETITION, _CHILDREN = 0, 3, 4  # of the meaning of an element
_EMPTY: Meaning = ()
_DECIMAL, _TIME, _TIMESTAMP, _INTEGER = 5, 7, 8, 10  # logical types
_BY_CONVERTED: dict[int, Meaning | None] = {
    0: ((1, _EMPTY),),  # UTF8
    1: ((2, _EMPTY),),  # MAP
    2: None,  # MAP_KEY_VALUE, of a group inside a map
    3: ((3, _EMPTY),),  # LIST
    4: ((4, _EMPTY),),  # ENUM
    6: ((6, _EMPTY),),  # DATE
    7: ((_TIME, ((1, TRUE), (2, ((1, _EMPTY),)))),),
    8: ((_TIME, ((1, TRUE), (2, ((2, _EMPTY),)))),),
    9: ((_TIMESTAMP, ((1, TRUE), (2, ((1, _EMPTY),)))),),
    10: ((_TIMESTAMP, ((1, TRUE), (2, ((2, _EMPTY),)))),),
    **{11 + n: ((_INTEGER, ((1, 8 << n), (2, FALSE))),) for n in range(4)},
    **{15 + n: ((_INTEGER, ((1, 8 << n), (2, TRUE))),) for n in range(4)},
    19: ((12, _EMPTY),),  # JSON
    20: ((13, _EMPTY),),  # BSON
}
_MICROSECONDS = _BY_CONVERTED[10]
_PLAIN = {1: _BY_CONVERTED[17], 2: _BY_CONVERTED[18]}  # what 32-bit and 64-bit integers mean without an annotation


def meaning(schema: Sequence[Struct]) -> Meaning:
    """Return what the elements of a schema mean. Equal schemas have equal meanings; the name of the root has none."""
    root, *elements = schema
    return (_value(root, 5), *map(_element, elements))


def with_int96(known: Meaning) -> Meaning:
    """Return the meaning of the same schema with instants in the type INT96, as Spark writes them by default."""
    root, *elements = known
    return (root, *map(_as_int96, elements))


def with_shredded(known: Meaning, found: Meaning, variants: Collection[bytes]) -> Meaning | None:
    """Return the meaning of a schema with some columns as another schema has them: as shredded variants.

    `variants` are names of columns that are not nested. None if the other schema has one that is not shredded, or has
    other columns.
    """
    ours, theirs = list(_columns(known)), list(_columns(found))
    if [column[0][_NAME] for column in ours] != [column[0][_NAME] for column in theirs]:
        return None
    merged: list[Meaning] = []
    for mine, other in zip(ours, theirs, strict=True):
        is_variant = mine[0][_NAME] in variants
        if is_variant and not _is_shredded(mine, other):
            return None
        merged += other if is_variant else mine
    return (known[0], *merged)


def _columns(known: Meaning) -> Iterator[tuple[Meaning, ...]]:
    """Yield the elements of each column, nested ones with all that they hold."""
    at = 1
    while at < len(known):
        begin, missing = at, 1
        while missing and at < len(known):
            missing += known[at][_CHILDREN] - 1
            at += 1
        yield known[begin:at]


def _is_shredded(variant: tuple[Meaning, ...], found: tuple[Meaning, ...]) -> bool:
    """Return True if a column is the same variant in shredded form: it has a typed value (Variant Shredding)."""
    stored = {element[_NAME]: element for element in variant[1:]}
    members = {column[0][_NAME]: column[0] for column in _columns((None, *found[1:]))}
    if found[0] != _changed(variant[0], _CHILDREN, len(stored) + 1) or members.keys() != {*stored, b"typed_value"}:
        return False
    values = (_changed(element, _REPETITION, None) for element in (members[b"value"], stored[b"value"]))
    return members[b"metadata"] == stored[b"metadata"] and len(set(values)) == 1


def _changed(element: Meaning, place: int, value: Any) -> Meaning:
    return (*element[:place], value, *element[place + 1 :])


def _as_int96(element: Meaning) -> Meaning:
    name, physical, _, repetition, children, annotation, number = element
    if physical != 2 or annotation != _MICROSECONDS:
        return element
    return (name, INT96, None, repetition, children, None, number)


def _element(element: Struct) -> Meaning:
    physical = _value(element, 1)
    length = _value(element, 2) if physical == FIXED else None
    annotation = _annotation(element)
    if annotation == _PLAIN.get(physical, ()):
        annotation = None
    return (
        _value(element, 4),
        physical,
        length,
        _value(element, 3),
        _value(element, 5) or 0,
        annotation,
        _value(element, 9),
    )


def _annotation(element: Struct) -> Meaning | None:
    if 10 in element:
        logical: Meaning = _canonical(element[10].value)
        return logical
    converted = _value(element, 6)
    if converted is None:
        return None
    if converted == 5:
        return ((_DECIMAL, ((1, _value(element, 7) or 0), (2, _value(element, 8)))),)
    return _BY_CONVERTED.get(converted, (("converted", converted),))


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((number, _canonical(value[number].value)) for number in sorted(value))
    return tuple(map(_canonical, value.values)) if isinstance(value, Elements) else value


def _value(element: Struct, number: int) -> Any:
    field = element.get(number)
    return None if field is None else field.value
