"""Whether the statistics of a footer can be read: a bound must have the size of a value of its column.

Arrow decodes statistics when they are asked for, and ends the whole process if one is too short: its error does not
reach Python. This check skips over everything else in a footer, which takes about 10 microseconds a column chunk.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark_delta.parquet.footer import FooterError, Leaf, check_bounds, leaves_of
from pyspark_delta.parquet.thrift import I32, LIST, STRUCT, Visitors, list_header, read_integer, read_struct, visit


def check_statistics(footer: bytes) -> None:
    """Raise FooterError or ThriftError unless Arrow can read all statistics of a footer."""
    _Check(footer).run()


class _Check:
    def __init__(self, footer: bytes) -> None:
        self._data = footer
        self._leaves: tuple[Leaf, ...] = ()
        self._leaf = 0

    def run(self) -> None:
        visit(self._data, 0, {2: self._schema, 4: self._groups})

    def _schema(self, kind: int, position: int) -> int:
        elements = []
        number, position = self._list(kind, position)
        for _ in range(number):
            element, position = read_struct(self._data, position)
            elements.append(element)
        self._leaves = leaves_of(elements)
        return position

    def _groups(self, kind: int, position: int) -> int:
        return self._each(kind, position, {1: self._columns})

    def _columns(self, kind: int, position: int) -> int:
        number, begin = self._list(kind, position)
        if number != len(self._leaves):
            raise FooterError(f"a row group has {number} columns, the schema {len(self._leaves)}")
        visitors: Visitors = {3: self._inner({1: self._type, 12: self._statistics})}
        position = begin
        for self._leaf in range(number):
            position = visit(self._data, position, visitors)
        return position

    def _type(self, kind: int, position: int) -> int:
        found, position = read_integer(self._data, position)
        if kind != I32 or found != self._leaves[self._leaf].type:
            raise FooterError("a column of a row group has another type than in the schema")
        return position

    def _statistics(self, kind: int, position: int) -> int:
        if kind != STRUCT:
            raise FooterError("the statistics of a column are of another kind")
        statistics, position = read_struct(self._data, position)
        check_bounds(statistics, self._leaves[self._leaf].width)
        return position

    def _inner(self, visitors: Visitors) -> Callable[[int, int], int]:
        def inner(kind: int, position: int) -> int:
            if kind != STRUCT:
                raise FooterError("the metadata of a column are of another kind")
            return visit(self._data, position, visitors)

        return inner

    def _each(self, kind: int, position: int, visitors: Visitors) -> int:
        number, position = self._list(kind, position)
        for _ in range(number):
            position = visit(self._data, position, visitors)
        return position

    def _list(self, kind: int, position: int) -> tuple[int, int]:
        """Return the number of structs in the list at a position, and where they begin."""
        number, element, position = list_header(self._data, position)
        if kind != LIST or (number and element != STRUCT):
            raise FooterError("a list of a footer is of another kind")
        return number, position
