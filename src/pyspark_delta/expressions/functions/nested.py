"""Functions of arrays, maps and structs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.expressions import coercion
from pyspark_delta.expressions.functions.signature import Function, Kernel, Site, Values, by_array, failed, takes
from pyspark_delta.expressions.literals import INTEGRAL_BITS
from pyspark_delta.expressions.tree import Call, Expression, Literal, type_of
from pyspark_delta.schema.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    LONG,
    STRING,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)

_KEYS: tuple[DataType, ...] = (*INTEGRAL_BITS, STRING, DATE, BOOLEAN)


# --------------------------------------------------------------------------------------------------------- binding
def _size(site: Site) -> Expression:
    source = type_of(site.arguments[0])
    if not isinstance(source, ArrayType | MapType) or (site.name == "array_size" and isinstance(source, MapType)):
        raise site.refusal(f"the type {source}")
    return site.call(*site.arguments, to=INTEGER)


def subscript(site: Site) -> Expression:
    """Bind `x[k]`, `get`, `element_at` and `try_element_at`."""
    collection, key = site.arguments
    source = type_of(collection)
    if isinstance(source, MapType):
        constant = _key(site, key, source.key_type)
        if site.name == "get":
            raise site.refusal("a map")
        return Call("map_value", (collection, constant), source.value_type)
    if not isinstance(source, ArrayType):
        raise site.refusal(f"the type {source}")
    if type_of(key) not in INTEGRAL_BITS or type_of(key) == LONG:
        raise site.refusal(f"an index of the type {type_of(key)}")
    return site.call(collection, coercion.cast(key, INTEGER, site.zone), to=source.element_type)


def _key(site: Site, key: Expression, wanted: DataType) -> Literal:
    if wanted not in _KEYS:
        raise site.refusal(f"keys of the type {wanted}")
    if isinstance(key, Literal) and key.value is not None and (key.type == STRING) == (wanted == STRING):
        found = coercion.cast(key, wanted, site.zone)
        assert isinstance(found, Literal)
        return found
    raise site.refusal("a key that is not a constant of the type of the keys")


def _contains(site: Site) -> Expression:
    source = type_of(site.arguments[0])
    if not isinstance(source, ArrayType):
        raise site.refusal(f"the type {source}")
    value = _key(site, site.arguments[1], source.element_type)
    return site.call(site.arguments[0], value, to=BOOLEAN)


def _contains_key(site: Site) -> Expression:
    source = type_of(site.arguments[0])
    if not isinstance(source, MapType):
        raise site.refusal(f"the type {source}")
    return site.call(site.arguments[0], _key(site, site.arguments[1], source.key_type), to=BOOLEAN)


def _joined(site: Site) -> Expression:
    separator = site.constant(1, str)
    source = type_of(site.arguments[0])
    if separator is None or not isinstance(source, ArrayType) or source.element_type != STRING:
        raise site.refusal("other types than arrays of strings")
    return site.call(*site.arguments, to=STRING)


def _split_part(site: Site) -> Expression:
    delimiter, position = site.constant(1, str), site.constant(2, int)
    operand = site.typed(0, STRING)
    if delimiter is None or position is None:
        return Literal(None, STRING)
    if not delimiter or not position:
        raise site.refusal("an empty delimiter or the part 0")
    return site.call(operand, *site.arguments[1:], to=STRING)


def _struct(site: Site) -> Expression:
    """Bind `named_struct('name', value, ...)`."""
    names = [site.constant(n, str) for n in range(0, len(site.arguments), 2)]
    values = site.arguments[1::2]
    if len(names) != len(values) or None in names or any(type_of(value) == VOID for value in values):
        raise site.refusal("these arguments")
    fields = tuple(StructField(name, type_of(value)) for name, value in zip(names, values, strict=True))
    return Call("named_struct", site.arguments, StructType(fields))


FUNCTIONS = {
    "size": Function(_size, takes(1), is_total=False, is_portable=False),
    "array_size": Function(_size, takes(1)),
    "subscript": Function(subscript, takes(2), is_total=False),
    "get": Function(subscript, takes(2)),
    "element_at": Function(subscript, takes(2), is_total=False),
    "try_element_at": Function(subscript, takes(2), is_total=False),
    "array_contains": Function(_contains, takes(2)),
    "map_contains_key": Function(_contains_key, takes(2)),
    "array_join": Function(_joined, takes(2)),
    "split_part": Function(_split_part, takes(3)),
    "named_struct": Function(_struct, takes(2, 1000)),
}


# ------------------------------------------------------------------------------------------------------- computing
def _ends(value: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return where the elements of each row begin and end; a null row has none."""
    offsets = np.frombuffer(value.buffers()[1], np.int32, len(value) + 1, value.offset * 4).astype(np.int64)
    starts, ends = offsets[:-1], offsets[1:]
    return starts, np.where(value.is_null().to_numpy(zero_copy_only=False), starts, ends)


def _elements(value: pa.Array) -> pa.Array:
    """Return the elements of all rows, by absolute position."""
    return value.items if pa.types.is_map(value.type) else value.values


def _sizes(value: pa.Array) -> pa.Array:
    starts, ends = _ends(value)
    return pa.array((ends - starts).astype(np.int32), mask=value.is_null().to_numpy(zero_copy_only=False))


def _taken(value: pa.Array, places: np.ndarray, missing: np.ndarray) -> pa.Array:
    return _elements(value).take(pa.array(np.where(missing, 0, places), pa.int64(), mask=missing))


def _indexer(*, first: int, fails: bool) -> Kernel:
    """Return the kernel of an index; from 1, negative ones count from the end."""

    def element(value: pa.Array, index: pa.Array) -> pa.Array:
        starts, ends = _ends(value)
        given = index.fill_null(first).to_numpy(zero_copy_only=False).astype(np.int64)
        null = (value.is_null().to_numpy(zero_copy_only=False)) | index.is_null().to_numpy(zero_copy_only=False)
        if first == 1 and (given == 0).any():
            raise failed("the index 0 is invalid: elements are counted from 1, or from -1 at the end")
        places = np.where((given < 0) & (first == 1), ends + given, starts + given - first)
        outside = ~null & ((places < starts) | (places >= ends))
        if fails and outside.any():
            at = int(np.argmax(outside))
            raise failed(f"the index {given[at]} is outside of an array of {ends[at] - starts[at]} elements")
        return _taken(value, places, null | outside)

    return by_array(element)


def _matches(elements: pa.Array, key: pa.Array) -> np.ndarray:
    same = pc.equal(elements, key[0]) if len(elements) else pa.array([], pa.bool_())
    return np.asarray(pc.fill_null(same, False).to_numpy(zero_copy_only=False))


def _first_match(value: pa.Array, elements: pa.Array, key: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the absolute place of the first equal element of each row, and whether there is one."""
    starts, ends = _ends(value)
    places = np.concatenate((np.flatnonzero(_matches(elements, key)), [len(elements)]))
    found = places[np.searchsorted(places[:-1], starts)]
    return found, found < ends


def _map_value(value: pa.Array, key: pa.Array) -> pa.Array:
    if not len(value):
        return value.items.slice(0, 0)
    places, found = _first_match(value, value.keys, key)
    return _taken(value, places, ~found)


def _has_key(value: pa.Array, key: pa.Array) -> pa.Array:
    if not len(value):
        return pa.array([], pa.bool_())
    _, found = _first_match(value, value.keys, key)
    return pa.array(found, mask=value.is_null().to_numpy(zero_copy_only=False))


def _has(value: pa.Array, key: pa.Array) -> pa.Array:
    """Return whether an element is equal; unknown if none is and one is null."""
    if not len(value):
        return pa.array([], pa.bool_())
    elements = _elements(value)
    _, found = _first_match(value, elements, key)
    starts, ends = _ends(value)
    nulls = np.concatenate(([0], np.cumsum(elements.is_null().to_numpy(zero_copy_only=False))))
    unknown = ~found & (nulls[ends] > nulls[starts])
    return pa.array(found, mask=unknown | value.is_null().to_numpy(zero_copy_only=False))


def _join(value: pa.Array, separator: pa.Array) -> pa.Array:
    """Join the elements; nulls are left out."""
    if not len(value):
        return pa.array([], pa.string())
    elements = _elements(value)
    known = elements.is_valid().to_numpy(zero_copy_only=False)
    counts = np.concatenate(([0], np.cumsum(known)))
    starts, ends = _ends(value)
    present = elements.drop_null()
    offsets = counts[np.concatenate((starts, ends[-1:]))]
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), present)
    joined = pc.binary_join(lists, separator[0])
    return pc.if_else(pc.is_valid(value), joined, pa.scalar(None, pa.string()))


def _part(value: pa.Array, delimiter: pa.Array, position: pa.Array) -> pa.Array:
    if not len(value):
        return value
    parts = pc.split_pattern(value, pattern=delimiter[0].as_py())
    found = _indexer(first=1, fails=False)(parts, position)
    return pc.if_else(pc.is_valid(value), pc.fill_null(found, ""), value)


def _make_struct(*arguments: Values) -> Values:
    names = [name.as_py() if isinstance(name, pa.Scalar) else name[0].as_py() for name in arguments[::2]]
    return pc.make_struct(*arguments[1::2], field_names=names)


KERNELS: dict[str, Kernel] = {
    "size": by_array(_sizes),
    "array_size": by_array(_sizes),
    "subscript": _indexer(first=0, fails=True),
    "get": _indexer(first=0, fails=False),
    "element_at": _indexer(first=1, fails=True),
    "try_element_at": _indexer(first=1, fails=False),
    "map_value": by_array(_map_value),
    "map_contains_key": by_array(_has_key),
    "array_contains": by_array(_has),
    "array_join": by_array(_join),
    "split_part": by_array(_part),
    "named_struct": _make_struct,
}
