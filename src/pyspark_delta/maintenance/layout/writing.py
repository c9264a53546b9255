"""Writing leaves to files: the rows of each leaf ordered as the layout asks, the leaves of a file one after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from pyspark_delta.data.parts import RollingFileWriter, delete_written
from pyspark_delta.data.writer import WriteContext, WrittenFile
from pyspark_delta.maintenance.layout.columns import LayoutColumn
from pyspark_delta.maintenance.layout.layouts import Layout, ordered
from pyspark_delta.maintenance.rewriting.bins import Bin
from pyspark_delta.maintenance.rewriting.origins import Positions
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting

_SMALLEST_GROUP = 16 << 20  # bytes of rows in a row group
_OVERFULL = 2  # times its share of the bytes after which a file is continued

LeavesOfFile: TypeAlias = tuple[int, Iterable[Iterable[pa.RecordBatch]]]
"""The number of a file in the layout of a bin, and the rows of each of its leaves, which are consumed in order."""


class RowNumbers(Protocol):
    """Takes the numbers of rows in the order in which these are written."""

    def append(self, numbers: Positions) -> None:
        """Add the numbers of the next rows."""


class WrittenLeaves(NamedTuple):
    """Files, and the number of each in the layout: a file that is too large is continued in another one."""

    files: list[WrittenFile]
    numbers: list[int]


def write_leaves(
    context: WriteContext,
    layout: Layout,
    columns: Sequence[LayoutColumn],
    files: Iterable[LeavesOfFile],
    order: RowNumbers,
    part: int,
) -> WrittenLeaves:
    """Write some files with one writer, which then learns only once how to encode them.

    Rows have the columns of the context, and may have their numbers as one more column. Raises the errors of
    `RollingFileWriter`; then the files do not exist.
    """
    writer = RollingFileWriter(context, part)
    found = WrittenLeaves([], [])
    try:
        for number, leaves in files:
            begun = writer.files_begun
            for batch in _rows(context, layout, columns, leaves, order):
                found.files.extend(writer.add(batch))
            found.files.extend(writer.end_file())
            found.numbers.extend([number] * (writer.files_begun - begun))
        found.files.extend(writer.finish())
    except BaseException:
        writer.abandon()
        delete_written(context, found.files)
        raise
    return found


def _rows(
    context: WriteContext,
    layout: Layout,
    columns: Sequence[LayoutColumn],
    leaves: Iterable[Iterable[pa.RecordBatch]],
    order: RowNumbers,
) -> Iterator[pa.RecordBatch]:
    names = list(context.schema.names)
    for leaf in leaves:
        for batch in ordered(layout, leaf, columns):
            if batch.num_columns > len(names):
                order.append(batch.column(len(names)).to_numpy())
            yield pa.RecordBatch.from_arrays(batch.columns[: len(names)], names)


def file_context(rewriting: Rewriting, source: Bin) -> WriteContext:
    """Return how files are written. A file that gets far more than its share of rows is continued in another one."""
    memory = rewriting.memory // rewriting.threads
    group = max(_SMALLEST_GROUP, min(rewriting.write.row_group_bytes, memory // (4 * rewriting.readers)))
    limit = _OVERFULL * max(source.size // max(source.new_files, 1), 1)
    return replace(rewriting.write, row_group_bytes=group, target_file_size=limit)


def number_name(names: Sequence[str]) -> str:
    """Return a name for the column of the numbers of rows that none of the other columns has."""
    known, name = {one.casefold() for one in names}, "number"
    while name in known:
        name += "_"
    return name
