"""Columns that copied row groups get in addition: integers that follow from the position of a row, such as row ids.

A row group is a list of column chunks. Arrow encodes the chunks of the new columns, and they are put between those that
are copied, so that nothing else is decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_delta.data.row_group_rules import footer_of, template
from pyspark_delta.data.writer import WriteContext, parquet_options
from pyspark_delta.parquet.footer import FooterError, RowGroup
from pyspark_delta.parquet.thrift import Field, Struct
from pyspark_delta.schema.arrow import schema_to_parquet
from pyspark_delta.schema.types import StructType

_SIZE, _SORTING, _CHILDREN = 2, 4, 5  # fields of row groups and of elements of a schema


@dataclass(frozen=True, slots=True)
class CountedColumn:
    """A column of 64-bit integers, by its physical name: `first` in all rows of a file, or counted from there on."""

    name: str
    first: int
    counts: bool

    def values(self, start: int, rows: int) -> pa.Array:
        """Return the values of some rows of the file, from the row `start` on."""
        if not self.counts:
            return pa.repeat(pa.scalar(self.first, pa.int64()), rows)
        return pa.array(np.arange(self.first + start, self.first + start + rows, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class AddedColumns:
    """The columns that a file lacks, and their place in the files of a context, which has them next to each other.

    Their `elements` of the schema, and their values, are before the last `following` ones.
    """

    context: WriteContext
    columns: tuple[CountedColumn, ...]
    elements: tuple[Struct, ...]
    following: int

    @classmethod
    def of(cls, context: WriteContext, columns: Sequence[CountedColumn]) -> AddedColumns:
        """Return columns of a context. Only columns that are not nested follow them, such as those of the partition."""
        footer = template(context)
        first = next(n for n, leaf in enumerate(footer.leaves) if leaf.path == (columns[0].name.encode(),))
        following = len(footer.leaves) - first - len(columns)
        end = len(footer.schema) - following
        return cls(context, tuple(columns), footer.schema[end - len(columns) : end], following)

    def schema(self, stored: Sequence[Struct]) -> tuple[Struct, ...]:
        """Return the schema of a file with the columns."""
        kind, children = stored[0][_CHILDREN]
        root = {**stored[0], _CHILDREN: Field(kind, children + len(self.elements))}
        place = len(stored) - self.following
        return (root, *stored[1:place], *self.elements, *stored[place:])

    def append(self, sink: Any, group: RowGroup, starts: Sequence[int], row: int) -> tuple[RowGroup, list[int]]:
        """Write the columns of a row group after its other columns; return the row group, and where each column begins.

        The group begins at a row of its file. Its columns are at `starts` in the sink.
        """
        data, added = self._encoded(row, group.num_rows)
        begin = min(chunk.start for chunk in added.chunks)
        shift = sink.tell() - begin
        sink.write(data[begin : max(chunk.start + chunk.size for chunk in added.chunks)])
        place = len(starts) - self.following
        places = [*starts[:place], *(chunk.start + shift for chunk in added.chunks), *starts[place:]]
        kind, size = group.fields[_SIZE]
        fields = {number: field for number, field in group.fields.items() if number != _SORTING}  # names leaves
        fields[_SIZE] = Field(kind, size + added.fields[_SIZE].value)
        chunks = (*group.chunks[:place], *added.chunks, *group.chunks[place:])
        return RowGroup(fields, chunks, group.num_rows), places

    def _encoded(self, row: int, rows: int) -> tuple[bytes, RowGroup]:
        """Return a file with the columns of some rows, and its row group."""
        fields = [field for field in self.context.data_schema if field.name in {c.name for c in self.columns}]
        values = [column.values(row, rows) for column in self.columns]
        sink = pa.BufferOutputStream()
        pq.write_table(
            pa.Table.from_arrays(values, schema=schema_to_parquet(StructType(tuple(fields)))),
            sink,
            row_group_size=rows,
            use_dictionary=[column.name for column in self.columns if not column.counts],
            **parquet_options(self.context),
        )
        data = sink.getvalue().to_pybytes()
        groups = footer_of(data).row_groups
        if len(groups) != 1:
            raise FooterError("a row group has more rows than Arrow writes to one")
        return data, groups[0]
