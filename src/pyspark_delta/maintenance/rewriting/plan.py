"""The plan of a command that rewrites files: which files, how many bins and commits, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import orjson
import pyarrow.compute as pc

from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Maintenance
from pyspark_delta.display import counted, html_facts
from pyspark_delta.engines.contract import DRIVER, NONE, TASKS
from pyspark_delta.engines.tasks import TaskRunner
from pyspark_delta.features.support import check_writable
from pyspark_delta.maintenance.budget import size_of
from pyspark_delta.maintenance.rewriting.bins import Bins
from pyspark_delta.maintenance.rewriting.candidates import GROUP, STATS, Candidates
from pyspark_delta.maintenance.rewriting.commits import CommittedBins, CommitWords
from pyspark_delta.maintenance.rewriting.copying import RowGroupCopying
from pyspark_delta.maintenance.rewriting.metrics import (
    FileSizes,
    RewriteResult,
    commit_metrics,
    deleted_rows_removed,
)
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting, rewrite_in_order, without_rows
from pyspark_delta.maintenance.rewriting.rewritten import RewrittenBin
from pyspark_delta.maintenance.rewriting.run import Run, RunOptions
from pyspark_delta.maintenance.rewriting.tasks import TaskWriter, rewrite_in_tasks
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.protocol.properties import STATS_NUM_COLUMNS, TARGET_FILE_SIZE
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.base import state_of

_MIB, _GIB = 1 << 20, 1 << 30
_BYTES_A_SECOND = 48 * _MIB  # decoded and encoded again by one core
_COPIED_A_SECOND = 400 * _MIB  # without being decoded
_FILES_A_SECOND = 900  # opened and decoded by one core

Parameters = Mapping[str, str | bool | int | None]


@dataclass(frozen=True, repr=False)
class RewritePlan:
    """What OPTIMIZE or REORG would do to a table: the candidates, and the bins in which they become new files.

    `operation` and `parameters` are for the table's history. `bins_left` are beyond the budget. Sizes are bytes.
    """

    snapshot: Snapshot
    operation: str
    parameters: Parameters
    candidates: Candidates
    bins: Bins
    bins_left: int
    rewriting: Rewriting
    options: RunOptions = field(default_factory=RunOptions)

    @property
    def is_nothing(self) -> bool:
        """True if there is nothing to do."""
        return not len(self.bins) and not self.candidates.empty.num_rows

    @cached_property
    def files_rewritten(self) -> int:
        """The number of files whose rows are written to new ones."""
        return int((self.bins.ends - self.bins.starts).sum())

    @property
    def files_removed(self) -> int:
        """The number of files that the plan removes: those that are rewritten, and those without rows."""
        return self.files_rewritten + len(self.candidates.empty)

    @cached_property
    def bytes_read(self) -> int:
        """The bytes of the files that are rewritten."""
        return int(self.bins.read.sum())

    @cached_property
    def bytes_copied(self) -> int:
        """The bytes of files with large row groups, which are copied unless encoding would change something."""
        files = self.bins.files
        if STATS not in files.column_names or self.options.writer is rewrite_in_order:
            return 0
        sizes = pc.if_else(pc.is_valid(files[STATS]), files["size"], 0).to_numpy()
        total = np.concatenate([[0], np.cumsum(sizes)])
        return int((total[self.bins.ends] - total[self.bins.starts]).sum())

    @property
    def bytes_written(self) -> int:
        """About how many bytes are written."""
        return int(self.bins.sizes.sum())

    @property
    def files_added(self) -> int:
        """About how many files are written."""
        return int(self.bins.new_files.sum())

    @property
    def seconds(self) -> float:
        """About how long it takes."""
        work = (self.bytes_read - self.bytes_copied) / _BYTES_A_SECOND + self.files_removed / _FILES_A_SECOND
        work += self.bytes_copied / _COPIED_A_SECOND
        return work / self.rewriting.threads

    def facts(self) -> dict[str, object]:
        """Return the plan as names and values."""
        return {
            "operation": self.operation,
            "version": self.snapshot.version,
            "files_considered": self.candidates.considered,
            "files_removed": self.files_removed,
            "files_without_rows": self.candidates.empty.num_rows,
            "files_added": self.files_added,
            "bytes_read": self.bytes_read,
            "bytes_copied": self.bytes_copied,
            "bytes_written": self.bytes_written,
            "target_size": self.bins.target_size,
            "bins": len(self.bins),
            "bins_left": self.bins_left,
            "commits": self.commits,
            "seconds": round(self.seconds, 1),
            "memory": self.rewriting.memory if len(self.bins) else 0,
            "engine": self.engine,
        }

    @property
    def engine(self) -> str:
        """What rewrites the files: this process, or tasks outside of it."""
        return NONE if not len(self.bins) else DRIVER if self.options.tasks is None else TASKS

    def _task_writer(self) -> TaskWriter | None:
        """Return what rewrites the files in tasks; None if only this process can."""
        return rewrite_in_tasks if self.options.writer is rewrite_in_order else None

    @property
    def commits(self) -> int:
        """How many commits the run makes at most, unless it takes longer than expected."""
        if self.is_nothing:
            return 0
        return self.options.commits_of(self.bytes_read, len(self.bins))

    def execute(self, *, user_metadata: str | None = None, engine_info: str = "") -> RewriteResult:
        """Rewrite the files and commit them. `user_metadata` is kept with each commit.

        Bins whose files other writers change meanwhile are adapted, or given up; the result counts them. Raises
        DataFileError, StorageError, and CommitConflictError if another writer changes schema or protocol. What was
        committed before an error stays.
        """
        started = _now()
        words = CommitWords(describe=self._describe, user_metadata=user_metadata, engine_info=engine_info)
        empty = self.candidates.empty
        ready = (without_rows(empty, self.snapshot),) if empty.num_rows else ()
        commits: Sequence[CommittedBins] = ()
        if not self.is_nothing:
            run = Run(self.rewriting, self.bins, state_of(self.snapshot), words, ready, self.options)
            commits = run.execute()
        return replace(self._result(commits), started=started, ended=_now())

    def _describe(self, bins: Sequence[RewrittenBin]) -> Operation:
        return Operation(self.operation, self.parameters, commit_metrics(bins), self.engine)

    def _result(self, commits: Sequence[CommittedBins]) -> RewriteResult:
        done = [one for commit in commits for one in commit.bins]
        rewritten = [one for one in done if one.source.number >= 0]
        given_up = sum(one.source.number >= 0 for commit in commits for one in commit.given_up)
        groups = {one.source.files[GROUP][0].as_py() for one in rewritten}
        return RewriteResult(
            versions=tuple(commit.version for commit in commits if commit.version is not None),
            added=FileSizes.of([one.adds for one in done]),
            removed=FileSizes.of([one.removes for one in done]),
            bins=len(rewritten),
            bins_given_up=given_up,
            bins_left=self.bins_left + len(self.bins) - len(rewritten) - given_up,
            partitions=len(groups),
            files_considered=self.candidates.considered,
            deletion_vectors_removed=commit_metrics(done)["numDeletionVectorsRemoved"],
            deleted_rows_removed=deleted_rows_removed(done),
            threads=self.rewriting.threads,
            columns=len(self.snapshot.schema),
            columns_with_stats=_measured_columns(self.snapshot),
        )

    def _repr_html_(self) -> str:
        return html_facts(f"{self.operation} plan", self.facts())

    def __repr__(self) -> str:
        return f"RewritePlan({self.operation} {self.snapshot.location!r}, version {self.snapshot.version})"

    def __str__(self) -> str:
        title = f"{self.operation} '{self.snapshot.location}' at version {self.snapshot.version}:"
        if self.is_nothing:
            return f"{title}\n  nothing to do in {counted(self.candidates.considered, 'file')}"
        lines = [title]
        if len(self.bins):
            lines += [
                f"  {counted(self.files_rewritten, 'file')} of {self.bytes_read:,} bytes become",
                f"  about {counted(self.files_added, 'file')} of {self.bytes_written:,} bytes,",
                f"  in {counted(len(self.bins), 'bin')} and {counted(self.commits, 'commit')};",
                f"  about {max(1, round(self.seconds))} s, {self.rewriting.memory >> 20} MiB of memory",
            ]
        if self.candidates.empty.num_rows:
            lines.append(f"  {counted(self.candidates.empty.num_rows, 'file')} without rows leave")
        if self.bins_left:
            lines.append(f"  {counted(self.bins_left, 'bin')} are left for the next run")
        return "\n".join(lines)


def in_tasks(plan: RewritePlan, tasks: TaskRunner) -> RewritePlan:
    """Return a plan whose files are rewritten in tasks outside of this process; itself if a writer here is needed.

    Tasks decode and encode all rows. A plan that copies most of its bytes runs in this process: it takes little time.
    """
    if isinstance(plan.options.writer, RowGroupCopying) and 2 * plan.bytes_copied < plan.bytes_read:
        plan = replace(plan, options=replace(plan.options, writer=rewrite_in_order))
    writer = plan._task_writer()
    if writer is None:
        return plan
    return replace(plan, options=replace(plan.options, tasks=tasks, task_writer=writer))


def check_rewritable(snapshot: Snapshot) -> None:
    """Check that files of a table may be rewritten.

    Raises MaintenanceNotAllowedError for a table whose catalog does not allow it (C478), and as `check_writable`.
    Append-only tables may be rearranged (C377).
    """
    check_writable(snapshot.configuration, snapshot.location)
    managed = managed_table(snapshot.catalog_table)
    if managed is not None:
        managed.require(Maintenance.OPTIMIZE)


def target_size_of(snapshot: Snapshot, given: int | str | None) -> int:
    """Return the size of new files in bytes: as given, by the property delta.targetFileSize, or by the table's size.

    Raises InvalidOptionError.
    """
    if given is not None:
        return size_of(given, "target_size")
    declared = TARGET_FILE_SIZE.of(snapshot.properties)
    if declared:
        return declared
    size = snapshot.size_in_bytes()
    return 128 * _MIB if size < 10 * _GIB else 256 * _MIB if size < 1024 * _GIB else _GIB


def predicate_text(where: str | None) -> str:
    """Return a condition as the history shows it: a list of texts as JSON."""
    return orjson.dumps([] if where is None else [where]).decode()


def _measured_columns(snapshot: Snapshot) -> int:
    """Return the number of columns with statistics, as delta-spark counts them."""
    columns, limit = len(snapshot.schema), STATS_NUM_COLUMNS.of(snapshot.properties)
    return columns if limit < 0 else min(columns, limit)


def _now() -> int:
    return int(time.time() * 1000)
