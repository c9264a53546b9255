"""Small files that a deep clone combines on the way: their rows are written to new files of the clone, as by OPTIMIZE.

They are read where they are, so that they are not copied first. Row groups are copied where OPTIMIZE would copy them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.row_group_rules import LARGE, LargeRowGroups
from pyspark_delta.errors import InvalidOperationError, InvalidOptionError
from pyspark_delta.maintenance.clone.target import CloneTarget
from pyspark_delta.maintenance.optimize import OptimizeRequest, plan_compaction
from pyspark_delta.maintenance.rewriting.bins import Bin, Bins
from pyspark_delta.maintenance.rewriting.commits import delete_bins
from pyspark_delta.maintenance.rewriting.copying import RowGroupCopying
from pyspark_delta.maintenance.rewriting.plan import target_size_of
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting, default_threads
from pyspark_delta.maintenance.rewriting.rewritten import RewrittenBin, with_all_columns
from pyspark_delta.progress import begin
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import TARGET_FILE_SIZE
from pyspark_delta.protocol.state import TableState
from pyspark_delta.snapshot import Snapshot


class _Cancelled(Exception):
    """Another bin has failed."""


@dataclass(frozen=True)
class Merging:
    """The bins of files that are combined, and the files without rows, which are left out of the clone."""

    rewriting: Rewriting = field(repr=False)
    bins: Bins
    empty: pa.Table = field(repr=False)
    writer: RowGroupCopying = field(default_factory=RowGroupCopying)

    @property
    def num_files(self) -> int:
        """The number of files that are combined."""
        return int((self.bins.ends - self.bins.starts).sum())

    def others(self, files: pa.Table) -> pa.Table:
        """Return those of the live files that are neither combined nor without rows."""
        marks = np.zeros(self.bins.files.num_rows + 1, np.int64)
        marks[self.bins.starts] += 1
        marks[self.bins.ends] -= 1  # of one bin at most, as the starts
        combined = self.bins.files["path"].filter(pa.array(np.cumsum(marks)[:-1] > 0))
        known = pa.chunked_array([*combined.chunks, *self.empty["path"].chunks], pa.string())
        return files.filter(pc.invert(pc.is_in(files["path"], value_set=known.combine_chunks())))

    def run(self) -> list[RewrittenBin]:
        """Write the new files. Raises DataFileError and StorageError; then they do not exist."""
        rewriting, stop = self.rewriting.for_bins(len(self.bins)), threading.Event()

        def check() -> None:
            if stop.is_set():
                raise _Cancelled

        def write(one: Bin) -> RewrittenBin:
            check()
            return self.writer(rewriting, one, check)

        step = begin("Merge files", self.num_files, "files")
        with ThreadPoolExecutor(rewriting.threads, thread_name_prefix="pyspark-delta-merge") as pool:
            bins = [pool.submit(write, one) for one in self.bins]
            try:
                for done in as_completed(bins):
                    step.add(done.result().source.files.num_rows)
            except BaseException:
                stop.set()
                wait(bins)
                self.discard([one.result() for one in bins if one.exception() is None])
                raise
        return [one.result() for one in bins]

    def discard(self, bins: Sequence[RewrittenBin]) -> None:
        """Delete new files that no commit names."""
        delete_bins(self.rewriting.state, bins)


def plan_merging(
    source: Snapshot, target: CloneTarget, configuration: TableConfiguration, large: LargeRowGroups = LARGE
) -> Merging:
    """Return which files a clone with a configuration combines: those that OPTIMIZE would, to files of its size."""
    state = TableState(
        location=target.location, storage_options=dict(target.storage_options), configuration=configuration
    )
    size = target_size_of(source, TARGET_FILE_SIZE.of(configuration.properties) or None)
    candidates, bins = plan_compaction(source, OptimizeRequest(copying=large), size)
    rewriting = Rewriting(source, threads=default_threads(), target=state)
    return Merging(rewriting, bins, candidates.empty, RowGroupCopying(large))


def check_merging(target: CloneTarget, *, shallow: bool) -> None:
    """Check that a clone can combine files. Raises InvalidOptionError for a shallow one, and InvalidOperationError."""
    if shallow:
        raise InvalidOptionError(
            "A shallow clone has the files of its source, so it cannot merge them. Make a deep clone, or leave "
            "merge_files out and optimize the clone.",
            option="merge_files",
        )
    if target.snapshot is not None and target.snapshot.num_files():
        raise InvalidOperationError(
            f"'{target.location}' is a clone already, and its files may be merged ones, of which it is not known which "
            "rows of the source they hold. Clone to a new location with merge_files; or bring this clone up to date "
            "without it, which copies each file of the source that the clone does not have, and optimize it.",
            error_class="DELTA_UNSUPPORTED_NON_EMPTY_CLONE",
            location=target.location,
        )


def merged_files(bins: Sequence[RewrittenBin]) -> list[pa.Table]:
    """Return the new files, in the columns of `actions.columns`."""
    return [with_all_columns(one.adds) for one in bins]
