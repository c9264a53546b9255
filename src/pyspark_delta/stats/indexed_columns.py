"""Which columns have per-file statistics, and where the Parquet footer stores them (section Per-file Statistics)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import count

from pyspark_delta.schema.types import VARIANT, VOID, ArrayType, DataType, MapType, PrimitiveType, StructType

DEFAULT_INDEXED_COLUMNS = 32  # delta.dataSkippingNumIndexedCols
DEFAULT_STRING_PREFIX = 32  # delta.dataSkippingStringPrefixLength, characters

_WITHOUT_BOUNDS = frozenset(["boolean", "binary", "void", "variant"])


@dataclass(frozen=True, slots=True)
class StatsColumn:
    """A column with statistics: its physical path and type.

    `leaf` is the number of its Parquet leaf column, None for arrays, maps, variants and structs of a user-defined type:
    their leaves do not count rows.
    """

    path: tuple[str, ...]
    type: DataType
    leaf: int | None

    @property
    def has_bounds(self) -> bool:
        """True if the column has minValues and maxValues, False if only nullCount (C415)."""
        if self.leaf is None or self.type.annotation is not None:
            return False
        return not (
            isinstance(self.type, PrimitiveType) and (self.type.name in _WITHOUT_BOUNDS or " " in self.type.name)
        )


def stats_columns(
    schema: StructType,
    *,
    limit: int = DEFAULT_INDEXED_COLUMNS,
    names: Sequence[tuple[str, ...]] | None = None,
    always: Sequence[tuple[str, ...]] = (),
) -> tuple[StatsColumn, ...]:
    """Return the columns of `schema` with statistics.

    `schema` is that of the data files: physical names, without partition columns, and without void columns. `limit` is
    the number of leading columns (nested fields count, an array or map counts as one), -1 for all. `names` (paths of
    columns or of structs) takes precedence over `limit`. The columns at the paths of `always` are added.
    """
    columns = tuple(_walk(schema, (), count()))
    if names is None:
        chosen = set(columns if limit < 0 else columns[:limit])
    else:
        wanted = {_folded(path) for path in names}
        chosen = {c for c in columns if _is_below(_folded(c.path), wanted)}
    return tuple(c for c in columns if c in chosen or c.path in always)


def _walk(struct: StructType, prefix: tuple[str, ...], leaves: Iterator[int]) -> Iterator[StatsColumn]:
    for field in struct:
        path = (*prefix, field.name)
        if field.type == VOID:
            continue  # never stored
        if isinstance(field.type, StructType) and field.type.annotation is None:
            yield from _walk(field.type, path, leaves)
        elif isinstance(field.type, ArrayType | MapType | StructType) or field.type == VARIANT:
            _skip(field.type, leaves)
            yield StatsColumn(path, field.type, None)
        else:
            yield StatsColumn(path, field.type, next(leaves))


def _skip(data_type: DataType, leaves: Iterator[int]) -> None:
    match data_type:
        case StructType(fields):
            for field in fields:
                _skip(field.type, leaves)
        case ArrayType(element):
            _skip(element, leaves)
        case MapType(key, value):
            _skip(key, leaves)
            _skip(value, leaves)
        case PrimitiveType("variant"):
            next(leaves)
            next(leaves)
        case _:
            next(leaves)


def _folded(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.casefold() for part in path)


def _is_below(path: tuple[str, ...], wanted: Set[tuple[str, ...]]) -> bool:
    """True if the path, or that of a struct around it, is wanted."""
    return any(path[:length] in wanted for length in range(len(path) + 1))
