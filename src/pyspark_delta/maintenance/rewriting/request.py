"""What all commands that rewrite files have in common: the files, the size of new ones, and limits."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.maintenance.budget import UNLIMITED, Budget, size_of
from pyspark_delta.maintenance.rewriting.plan import target_size_of
from pyspark_delta.maintenance.rewriting.rewrite import MEMORY, BinWriter, Rewriting, default_threads, rewrite_in_order
from pyspark_delta.maintenance.rewriting.run import RunOptions
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.write_plan import FileOptions


@dataclass(frozen=True, kw_only=True)
class RewriteRequest:
    """Which files to rewrite, and how.

    `where` selects partitions. New files have about `target_size` bytes (a number, or text such as `256MB`), by default
    as the table property delta.targetFileSize or the size of the table says. `threads` bins are rewritten at the same
    time, with about `memory` bytes; each commit has `batch_size` bytes of them. `files` says how files are written.
    """

    where: str | None = None
    target_size: int | str | None = None
    budget: Budget = UNLIMITED
    threads: int | None = None
    memory: int | str = MEMORY
    batch_size: int | str | None = None
    time_zone: str = "UTC"
    files: FileOptions = field(default_factory=FileOptions)

    def __post_init__(self) -> None:
        threads = self.threads
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise InvalidOptionError(f"threads is a whole number from 1 on, found {threads!r}.", option="threads")

    def target(self, snapshot: Snapshot) -> int:
        """Return how large the files of a table become, in bytes."""
        return target_size_of(snapshot, self.target_size)

    def rewriting(self, snapshot: Snapshot) -> Rewriting:
        """Return how the files of a snapshot are read and written."""
        threads, memory = self.threads or default_threads(), size_of(self.memory, "memory")
        return Rewriting(snapshot, self.time_zone, threads, memory=memory, files=self.files)

    def options(self, writer: BinWriter = rewrite_in_order) -> RunOptions:
        """Return how the run is done, with a writer of bins."""
        batch_size = None if self.batch_size is None else size_of(self.batch_size, "batch_size")
        return RunOptions(budget=self.budget, writer=writer, batch_size=batch_size)
