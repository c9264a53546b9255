"""The files of a scan in balanced partitions, each of which one Spark task reads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from pyspark_delta.data.reader import TASK_COLUMNS, tasks_of
from pyspark_delta.engines.cost import DEFAULT, CostModel
from pyspark_delta.scan.plan import ReadContext, ScanTask


class FilePartition(InputPartition):
    """The files that one Spark task reads, with what is needed to read them; the files are an Arrow stream."""

    def __init__(self, context: ReadContext, files: pa.Table) -> None:
        super().__init__(None)
        self.context, self.number_of_files = context, files.num_rows
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, files.schema) as stream:
            stream.write_table(files)
        self._files: bytes = sink.getvalue().to_pybytes()

    def __repr__(self) -> str:
        return f"FilePartition({self.number_of_files} files of {self.context.table_location})"

    def tasks(self) -> list[ScanTask]:
        """The files as tasks of the Arrow reader."""
        return list(tasks_of(pa.ipc.open_stream(self._files).read_all()))


def single_files(context: ReadContext, files: pa.Table) -> Iterator[FilePartition]:
    """A partition for each of the files."""
    files = _told(files)
    for number in range(files.num_rows):
        yield FilePartition(context, files.slice(number, 1))


def in_shares(files: pa.Table, cost: CostModel = DEFAULT) -> pa.Table:
    """The files, those larger than a task once for each share of their row groups that a task reads."""
    sizes = files["size"].to_numpy()
    shares = np.maximum(1, -(-sizes // cost.task_bytes))
    told = _told(files).take(pa.array(np.repeat(np.arange(files.num_rows), shares)))
    of = np.repeat(shares, shares)
    number = np.arange(len(of)) - np.repeat(np.cumsum(shares) - shares, shares)
    told = told.set_column(told.column_names.index("size"), "size", pa.array(np.repeat(sizes, shares) // of))
    return told.append_column("share", pa.StructArray.from_arrays([pa.array(number), pa.array(of)], ["number", "of"]))


def group_files(
    context: ReadContext, files: pa.Table, cores: int, cost: CostModel = DEFAULT
) -> Iterator[FilePartition]:
    """Files, in order, in partitions of the size of a task, or smaller ones where cores would stay idle."""
    files = _told(files)
    if files.num_rows == 0:
        return
    ends = np.cumsum(files["size"].to_numpy() + cost.file_open_bytes)
    limit = min(cost.task_bytes, max(cost.file_open_bytes, int(ends[-1]) // cores))
    starts = ends - files["size"].to_numpy() - cost.file_open_bytes
    bounds = [0, *(np.flatnonzero(np.diff(starts // limit)) + 1).tolist(), files.num_rows]
    for start, end in pairwise(bounds):
        yield FilePartition(context, files.slice(start, end - start))


def numbered_groups(
    context: ReadContext, files: pa.Table, cores: int, cost: CostModel = DEFAULT
) -> Iterator[tuple[list[int], FilePartition]]:
    """Files as `group_files` groups them, large ones `in_shares`; with the place in `files` of each of their tasks."""
    shares = in_shares(files, cost)
    is_first = pc.equal(pc.struct_field(shares["share"], "number"), 0)
    places = (np.cumsum(is_first.to_numpy()) - 1).tolist()
    for group in group_files(context, shares, cores, cost):
        yield places[: group.number_of_files], group
        del places[: group.number_of_files]


def _told(files: pa.Table) -> pa.Table:
    """What tasks are told of files."""
    return files.select([name for name in TASK_COLUMNS if name in files.column_names])
