"""Parquet footers as values: parsed and checked, so that row groups can move to another file without being decoded.

Arrow has no function for this. A footer is checked against itself before anything is copied: the schema, the columns of
every row group, and where their bytes are. All fields that Parquet defines stay, except those that refer to places in
the old file and are not needed: page index, bloom filters, index pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyspark_delta._version import __version__
from pyspark_delta.parquet.thrift import (
    BINARY,
    BYTE,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    Elements,
    Field,
    Struct,
    read_struct,
    write_struct,
)

MAGIC = b"PAR1"
TRAILER = 8  # bytes: the length of the footer, and the magic number
ENCRYPTED_MAGIC = b"PARE"

INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED = 3, 4, 5, 6, 7  # types
TYPES = {
    "BOOLEAN": 0,
    "INT32": 1,
    "INT64": 2,
    "INT96": INT96,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "BYTE_ARRAY": BYTE_ARRAY,
    "FIXED_LEN_BYTE_ARRAY": FIXED,
}
WIDTHS = {0: 1, 1: 4, 2: 8, INT96: 12, FLOAT: 4, DOUBLE: 8}  # bytes of a bound of a type
_REQUIRED, _REPEATED = 0, 2
BOUNDS = (1, 2, 5, 6)  # fields of Statistics: max, min, max_value, min_value
_EXACTNESS = (7, 8)
_MOST_ORDINAL = (1 << 15) - 1
_KEPT_OF_CHUNK = frozenset({3})
_KEPT_OF_METADATA = frozenset({1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17})
_KEPT_OF_GROUP = frozenset({1, 2, 3, 4})


class FooterError(ValueError):
    """A footer contradicts itself, or lacks a required field."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column of a Parquet schema that has values: its path, its type, and its highest levels.

    `width` is the bytes of a bound if these are fixed.
    """

    path: tuple[bytes, ...]
    type: int
    width: int | None
    definition_level: int
    repetition_level: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """One column of a row group. Its pages are `size` bytes from `start` on, the first data page is at `data_start`."""

    fields: Struct  # of ColumnMetaData
    start: int
    data_start: int
    size: int
    num_values: int
    codec: int
    null_count: int | None


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One row group: its columns in the order of the schema, and how many rows and compressed bytes it has."""

    fields: Struct
    chunks: tuple[Chunk, ...]
    num_rows: int

    @property
    def size(self) -> int:
        """The bytes of its pages."""
        return sum(chunk.size for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class Footer:
    """The footer of a file that is not encrypted.

    `has_orders` is True if bounds are in the order of their types. `has_second_pages` is True if the first data page is
    of version 2, None if that is not known: a footer does not say it reliably.
    """

    schema: tuple[Struct, ...]
    leaves: tuple[Leaf, ...]
    row_groups: tuple[RowGroup, ...]
    num_rows: int
    version: int
    created_by: str
    key_values: Mapping[bytes, bytes]
    has_orders: bool
    has_second_pages: bool | None = None


def parse_footer(data: bytes, content_end: int) -> Footer:
    """Return the footer of a file, whose pages end before `content_end`. Raises FooterError, ThriftError."""
    struct, end = read_struct(data)
    if end != len(data):
        raise FooterError("its footer does not end where it should")
    if 8 in struct:
        raise FooterError("it is encrypted")
    schema = tuple(_structs(struct, 2, "schema"))
    leaves = leaves_of(schema)
    groups = tuple(_row_group(group, leaves, content_end) for group in _structs(struct, 4, "row groups"))
    num_rows = _integer(struct, 3, "number of rows")
    if num_rows != sum(group.num_rows for group in groups):
        raise FooterError("the rows of its row groups are not as many as its rows")
    _check_places(groups)
    orders = _structs(struct, 7, "column orders") if 7 in struct else []
    return Footer(
        schema=schema,
        leaves=leaves,
        row_groups=groups,
        num_rows=num_rows,
        version=_integer(struct, 1, "version"),
        created_by=_binary(struct, 6, "writer").decode(errors="replace") if 6 in struct else "",
        key_values=_key_values(struct),
        has_orders=len(orders) == len(leaves) and all(order.keys() == {1} for order in orders),
    )


def encode_footer(schema: Sequence[Struct], groups: Sequence[Struct], version: int) -> bytes:
    """Return the end of a file, from the footer on, for row groups that `moved` returned, in the order of the file."""
    numbered = [
        {**group, 7: Field(I16, number)} if number <= _MOST_ORDINAL else group for number, group in enumerate(groups)
    ]
    leaves = leaves_of(schema)
    in_type_order: Struct = {1: Field(STRUCT, {})}
    footer = write_struct(
        {
            1: Field(I32, version),
            2: Field(LIST, Elements(STRUCT, list(schema))),
            3: Field(I64, sum(group[3].value for group in groups)),
            4: Field(LIST, Elements(STRUCT, numbered)),
            6: Field(BINARY, f"pyspark-delta version {__version__}".encode()),
            7: Field(LIST, Elements(STRUCT, [in_type_order] * len(leaves))),
        }
    )
    return b"".join((footer, len(footer).to_bytes(4, "little"), MAGIC))


def moved(group: RowGroup, starts: Sequence[int]) -> Struct:
    """Return a row group for a file in which the pages of its columns begin at `starts`.

    Bounds of floating-point numbers are left out: many writers leave NaN out of them, which is the largest number for
    Spark.
    """
    columns = []
    for chunk, start in zip(group.chunks, starts, strict=True):
        fields = {number: field for number, field in chunk.fields.items() if number in _KEPT_OF_METADATA}
        for number in (9, 11):  # the first data page, the dictionary
            if number in fields:
                fields[number] = Field(I64, fields[number].value + start - chunk.start)
        if 11 in chunk.fields and chunk.fields[11].value < chunk.start:
            del fields[11]  # writers without a dictionary write 0
        if fields[1].value in (FLOAT, DOUBLE) and 12 in fields:
            kept = {n: f for n, f in fields[12].value.items() if n not in (*BOUNDS, *_EXACTNESS)}
            fields[12] = Field(STRUCT, kept)
        columns.append({2: Field(I64, 0), 3: Field(STRUCT, fields)})
    kept = {number: field for number, field in group.fields.items() if number in _KEPT_OF_GROUP}
    return {
        **kept,
        1: Field(LIST, Elements(STRUCT, columns)),
        5: Field(I64, min(starts, default=0)),
        6: Field(I64, group.size),
    }


# ---------------------------------------------------------------------------------------------------------- schema
def leaves_of(schema: Sequence[Struct]) -> tuple[Leaf, ...]:
    """Return the columns of a schema, in their order. Raises FooterError."""
    found: list[Leaf] = []
    remaining = [1]  # children that follow, of each open group
    path: list[tuple[bytes, int]] = []
    for position, element in enumerate(schema):
        while remaining and not remaining[-1]:
            remaining.pop()
            path.pop()
        if not remaining:
            raise FooterError("its schema has elements outside of the root")
        remaining[-1] -= 1
        name = _binary(element, 4, "name of a column")
        repetition = _integer(element, 3, "repetition") if 3 in element else _REQUIRED
        children = _integer(element, 5, "number of children") if 5 in element else 0
        if children < 0 or (position == 0 and 1 in element):
            raise FooterError("its schema is not a tree")
        path.append((name, repetition))
        if children or position == 0:
            remaining.append(children)
            continue
        kind = _integer(element, 1, "type")
        width = _integer(element, 2, "length of a type") if kind == FIXED else WIDTHS.get(kind)
        if kind not in WIDTHS and kind not in (BYTE_ARRAY, FIXED):
            raise FooterError(f"it has a column of the unknown type {kind}")
        names = tuple(name for name, _ in path[1:])
        levels = [level for _, level in path[1:]]
        found.append(Leaf(names, kind, width, sum(level != _REQUIRED for level in levels), levels.count(_REPEATED)))
        path.pop()
    if any(remaining):
        raise FooterError("its schema ends early")
    return tuple(found)


# ------------------------------------------------------------------------------------------------------ row groups
def _row_group(struct: Struct, leaves: Sequence[Leaf], content_end: int) -> RowGroup:
    columns = _structs(struct, 1, "columns")
    if len(columns) != len(leaves):
        raise FooterError(f"a row group has {len(columns)} columns, the schema {len(leaves)}")
    rows = _integer(struct, 3, "number of rows")
    if rows < 0:
        raise FooterError("a row group has a negative number of rows")
    _integer(struct, 2, "size")
    chunks = tuple(_chunk(column, leaf, rows, content_end) for column, leaf in zip(columns, leaves, strict=True))
    return RowGroup(struct, chunks, rows)


def _chunk(struct: Struct, leaf: Leaf, rows: int, content_end: int) -> Chunk:
    if struct.keys() & {1, 8, 9}:
        raise FooterError("a column is encrypted or in another file")
    fields = _inner(struct, 3, "metadata of a column")
    names = _elements(fields, 3, BINARY, "path of a column")
    kind = _integer(fields, 1, "type of a column")
    if tuple(names) != leaf.path or kind != leaf.type:
        raise FooterError(f"a column of a row group is not that of the schema, {b'.'.join(leaf.path)!r}")
    values = _integer(fields, 5, "number of values")
    if values < rows or (values > rows and not leaf.repetition_level):
        raise FooterError(f"a column has {values} values in {rows} rows")
    _elements(fields, 2, I32, "encodings")
    _integer(fields, 6, "uncompressed size")
    start, size = _integer(fields, 9, "place of a column"), _integer(fields, 7, "compressed size")
    if 11 in fields and 0 < _integer(fields, 11, "place of a dictionary") < start:
        start = fields[11].value
    if start < len(MAGIC) or size < 0 or start + size > content_end or (values and not size):
        raise FooterError("the bytes of a column are outside of the file")
    nulls = None
    if 12 in fields:
        statistics = _inner(fields, 12, "statistics")
        nulls = _integer(statistics, 3, "number of nulls") if 3 in statistics else None
        check_bounds(statistics, leaf.width)
    if 16 in fields:
        check_histograms(_inner(fields, 16, "size statistics"), leaf)
    return Chunk(fields, start, fields[9].value, size, values, _integer(fields, 4, "codec"), nulls)


def check_bounds(statistics: Struct, width: int | None) -> None:
    """Raise FooterError if a bound does not have the size of values of its type."""
    for number in BOUNDS:
        if number in statistics and width not in (None, len(_binary(statistics, number, "bound"))):
            raise FooterError("a bound is not a value of its type")


def check_histograms(sizes: Struct, leaf: Leaf) -> None:
    """Raise FooterError if the size statistics of a column do not have the levels of the column."""
    if 1 in sizes and leaf.type != BYTE_ARRAY:
        raise FooterError("a column without texts has sizes of texts")
    for number, level in ((2, leaf.repetition_level), (3, leaf.definition_level)):
        histogram = _elements(sizes, number, I64, "levels") if number in sizes else []
        if histogram and len(histogram) != level + 1:
            raise FooterError("the levels of a column are not those of the schema")


def _check_places(groups: Sequence[RowGroup]) -> None:
    places = sorted((chunk.start, chunk.start + chunk.size) for group in groups for chunk in group.chunks)
    if any(end > start for (_, end), (start, _) in pairwise(places)):
        raise FooterError("the bytes of two columns overlap")


def _key_values(struct: Struct) -> dict[bytes, bytes]:
    pairs = _structs(struct, 5, "properties") if 5 in struct else []
    return {_binary(pair, 1, "property"): _binary(pair, 2, "property") if 2 in pair else b"" for pair in pairs}


# ---------------------------------------------------------------------------------------------------------- fields
def _field(struct: Struct, number: int, kinds: Sequence[int], what: str) -> Field:
    field = struct.get(number)
    if field is None or field.kind not in kinds:
        raise FooterError(f"the {what} is missing")
    return field


def _integer(struct: Struct, number: int, what: str) -> int:
    value: int = _field(struct, number, (I16, I32, I64, BYTE), what).value
    return value


def _binary(struct: Struct, number: int, what: str) -> bytes:
    value: bytes = _field(struct, number, (BINARY,), what).value
    return value


def _inner(struct: Struct, number: int, what: str) -> Struct:
    value: Struct = _field(struct, number, (STRUCT,), what).value
    return value


def _elements(struct: Struct, number: int, kind: int, what: str) -> list:  # type: ignore[type-arg]
    elements: Elements = _field(struct, number, (LIST,), what).value
    if elements.kind != kind and elements.values:
        raise FooterError(f"the {what} is of another kind")
    return elements.values


def _structs(struct: Struct, number: int, what: str) -> list[Struct]:
    return _elements(struct, number, STRUCT, what)
