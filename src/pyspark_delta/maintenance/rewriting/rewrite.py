"""Rewriting a bin: its rows, in their order and without the deleted ones, in new files.

Row ids and row commit versions are stored with the rows. Constraints and generated columns are not evaluated: the rows
were valid when they were written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import PARTITION_VALUES
from pyspark_delta.data.opened import rows_in_file
from pyspark_delta.data.parts import write_all
from pyspark_delta.data.reader import partition_text, read_plan
from pyspark_delta.data.writer import WriteContext, written_files
from pyspark_delta.maintenance.rewriting.bins import Bin
from pyspark_delta.maintenance.rewriting.candidates import RECORDS, deleted_rows
from pyspark_delta.maintenance.rewriting.origins import KeptOrder
from pyspark_delta.maintenance.rewriting.rewritten import RewrittenBin
from pyspark_delta.parallel import map_requests
from pyspark_delta.protocol.clustering import clustering_paths
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.state import TableState
from pyspark_delta.scan.file_source import file_source
from pyspark_delta.scan.plan import ReadContext, ScanPlan
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.paths import resolve_file
from pyspark_delta.transaction.base import state_of
from pyspark_delta.transaction.write_plan import FileOptions, write_context
from pyspark_delta.write.written import has_row_ids, with_row_ids

_MIB = 1 << 20
_SMALLEST_GROUP, _LARGEST_GROUP = 16 * _MIB, 128 * _MIB
_COPIES = 3  # a row group as Arrow, as it is read, and as it is encoded
_MOST_THREADS = 8
_FOOTERS_AT_ONCE = 16
_WITHOUT_ROWS = -1  # the number of the bin of such files

MEMORY = 512 * _MIB
"""The default of the memory, in bytes, that a run takes about."""


def default_threads() -> int:
    """Return how many bins are rewritten at the same time by default: one for each core, at most 8."""
    return min(os.cpu_count() or 1, _MOST_THREADS)


BinWriter: TypeAlias = Callable[["Rewriting", Bin, Callable[[], None]], RewrittenBin]
"""Writes the rows of a bin to new files. It calls the function before each batch of rows, to be cancelled by its
exception. After an error, the files do not exist. Several threads call writers at the same time."""


@dataclass(frozen=True)
class Rewriting:
    """What the bins of one run have in common: the table, and how its rows are read and written.

    `threads` bins are rewritten at the same time, with about `memory` bytes in all; each is read by `readers` threads.
    The new files are those of the same table, or of `target`, a clone of it, whose rows have other commit versions.
    """

    snapshot: Snapshot
    time_zone: str = "UTC"
    threads: int = 1
    readers: int = 1
    memory: int = MEMORY
    files: FileOptions = field(default_factory=FileOptions)
    target: TableState | None = None

    def for_bins(self, count: int) -> Rewriting:
        """Return the same for so many bins: if they are few, several threads read each of them."""
        writers = max(1, min(self.threads, count))
        return replace(self, threads=writers, readers=max(1, self.threads // writers))

    @cached_property
    def state(self) -> TableState:
        """The state of the table that gets the new files. Raises as `state_of`."""
        return state_of(self.snapshot) if self.target is None else self.target

    @property
    def configuration(self) -> TableConfiguration:
        """The configuration of the table that gets the new files."""
        found = self.snapshot.configuration if self.target is None else self.target.configuration
        assert found is not None
        return found

    @cached_property
    def columns(self) -> WriteContext:
        """How rows are written, without the columns of row ids."""
        place = self.snapshot if self.target is None else self.target
        options = replace(self.files, storage_options=place.storage_options)
        clustering = clustering_paths(self.snapshot.domains())
        context = write_context(place.location, self.configuration, options, clustering=clustering)
        group = max(_SMALLEST_GROUP, min(_LARGEST_GROUP, self.memory // (_COPIES * self.threads)))
        return replace(context, row_group_bytes=group, target_file_size=None)

    @cached_property
    def write(self) -> WriteContext:
        """How rows are written to files, with the columns of row ids if rows have ids."""
        if not has_row_ids(self.configuration):
            return self.columns
        return with_row_ids(self.snapshot.configuration, self.columns, commit_versions=self.target is None)

    @property
    def row_id_columns(self) -> tuple[str, ...]:
        """The columns of row ids and of row commit versions in the new files, in this order, if they have them."""
        return self.write.schema.names[len(self.columns.schema.names) :]

    @cached_property
    def read(self) -> ReadContext:
        """How rows are read: the columns that `write` writes, in the same order."""
        return self._read_context(None)

    def read_with_positions(self, name: str) -> ReadContext:
        """Return how rows are read with one more column, at the end: the position of each in its file."""
        return self._read_context(name)

    def _read_context(self, row_index: str | None) -> ReadContext:
        has_ids = self.write is not self.columns
        fields, zone = self.columns.schema.fields, self.time_zone
        return file_source(self.snapshot).read_context(fields, row_ids=has_ids, row_index=row_index, time_zone=zone)

    def write_context(self, source: Bin) -> WriteContext:
        """Return how the rows of a bin are written: to one file, or to as many as its size needs."""
        if source.new_files <= 1:
            return self.write
        return replace(self.write, target_file_size=source.size // source.new_files)

    def batches(self, source: Bin, check: Callable[[], None]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a bin, in the order of its files and without deleted rows, with the columns of `write`."""
        names = list(self.write.schema.names)
        plan = ScanPlan(self.snapshot.version, self.snapshot.schema, self.read, source.files)
        for batch in read_plan(plan, self.readers):
            check()
            yield pa.RecordBatch.from_arrays(batch.columns[: len(names)], names)


def rewrite_in_order(rewriting: Rewriting, source: Bin, check: Callable[[], None]) -> RewrittenBin:
    """Write the rows of a bin to new files, in the order of its files.

    Raises DataFileError, StorageError, and what `check` raises; then the files do not exist.
    """
    context = rewriting.write_context(source)
    written = write_all(context, rewriting.batches(source, check), source.number)
    return rewritten_bin(rewriting, source, written_files(written))


def rewritten_bin(rewriting: Rewriting, source: Bin, written: pa.Table) -> RewrittenBin:
    """Return a bin whose rows were written in order; `written` has the columns of `data.writer.WRITTEN_SCHEMA`."""
    new_files = labelled(as_added(written, source, rewriting), source)
    rows = written["num_records"].to_numpy()
    return RewrittenBin.of(source, new_files, rows, kept_order(rewriting.snapshot, source, int(rows.sum())))


def without_rows(files: pa.Table, snapshot: Snapshot) -> RewrittenBin:
    """Return the bin of files whose rows are all deleted: they are removed, and no file is written."""
    origins = KeptOrder(snapshot.location, snapshot.storage_options, files, np.zeros(files.num_rows + 1, np.int64))
    new_files = written_files(()).drop_columns(["num_records", "marks"])
    return RewrittenBin.of(Bin(_WITHOUT_ROWS, files, 0, 1), new_files, np.zeros(0, np.int64), origins)


def kept_order(snapshot: Snapshot, source: Bin, rows: int) -> KeptOrder | None:
    """Return where the rows went; None if the statistics of the files contradict the rows that were written."""
    files = source.files
    counts = np.asarray(stored_rows(files, snapshot)) - np.asarray(deleted_rows(files))
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    if (counts < 0).any() or starts[-1] != rows:
        return None
    return KeptOrder(snapshot.location, snapshot.storage_options, files, starts)


def stored_rows(files: pa.Table, snapshot: Snapshot) -> pa.Array:
    """Return how many rows each file stores, from its footer where the log does not say it."""
    counts = files[RECORDS].combine_chunks()
    unknown = pc.is_null(counts)
    if not counts.null_count:
        return counts
    paths = [resolve_file(snapshot.location, path) for path in files["path"].filter(unknown).to_pylist()]
    found = map_requests(lambda path: rows_in_file(path, snapshot.storage_options), paths, _FOOTERS_AT_ONCE)
    return pc.replace_with_mask(counts, unknown, pa.array(list(found), pa.int64()))


def as_added(written: pa.Table, source: Bin, rewriting: Rewriting) -> pa.Table:
    """Return new files as the log adds them, with the partition values as the sources spell them, if all agree.

    Timestamps without a time zone then mean for every reader what they meant before.
    """
    files = written.drop_columns(["num_records", "marks"])
    texts = [partition_text(source.files, name).unique() for name in rewriting.snapshot.partition_names]
    if not texts or any(len(text) != 1 for text in texts):
        return files
    values = [(name, text[0].as_py()) for name, text in zip(rewriting.write.partition_names, texts, strict=True)]
    column = pa.array([values] * files.num_rows, PARTITION_VALUES.type)
    return files.set_column(files.column_names.index("partition_values"), PARTITION_VALUES, column)


def labelled(files: pa.Table, source: Bin) -> pa.Table:
    """Return new files with tags and clustering provider of the sources, if these belong to one clustering."""
    if "tags" not in source.files.column_names or not files.num_rows:
        return files
    tags, providers = source.files["tags"].to_pylist(), source.files["clustering_provider"].unique()
    known = [{name: value for name, value in tag or () if name.startswith("ZCUBE_")} for tag in tags]
    if len(providers) != 1 or not providers[0].is_valid or not known[0] or any(one != known[0] for one in known):
        return files
    labels = pa.array([list(known[0].items())] * files.num_rows, pa.map_(pa.string(), pa.string()))
    return files.append_column("tags", labels).append_column(
        "clustering_provider", pa.repeat(providers[0], files.num_rows)
    )
