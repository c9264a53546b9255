"""Planned reads of a table and of its change data feed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from pyspark_delta.changes.plan import FeedPlan
from pyspark_delta.changes.reader import changes_schema, read_changes
from pyspark_delta.changes.versions import VersionRange
from pyspark_delta.data.reader import read_plan
from pyspark_delta.progress import Progress, ShowProgress, operation
from pyspark_delta.scan.explain import count_stages, explain_plan
from pyspark_delta.scan.plan import PruningStage, ScanPlan
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot


@dataclass(frozen=True)
class Scan:
    """A planned read: its files and columns. Data files are not read until rows are requested.

    `is_latest` is False if the caller asked for the version. Rows of the latest one may change before they are written
    back to the table, which is a conflict.
    """

    plan: ScanPlan
    snapshot: Snapshot
    is_latest: bool = True

    @property
    def schema(self) -> StructType:
        """The logical schema of the rows."""
        return self.plan.schema

    def to_batches(self, *, progress: Callable[[Progress], object] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows as Arrow record batches, read as they are consumed: memory does not grow with the table.

        `progress` is called with a `Progress` for every batch.
        """
        with operation(progress or False):
            reader = read_plan(self.plan)
        yield from reader

    def to_arrow(self, *, progress: ShowProgress = None) -> pa.Table:
        """Return the rows as one Arrow table. `progress` is as for `Table.append`."""
        with operation(progress):
            return read_plan(self.plan).read_all()

    def files(self) -> pa.Table:
        """Return the files that skipping kept, columns as in `Table.files`."""
        return self.plan.files

    def stages(self) -> tuple[PruningStage, ...]:
        """Return the stages of skipping, with the number of files that each of them kept."""
        return count_stages(self.plan, self.snapshot)

    def explain(self) -> str:
        """Explain as text how many files each stage of skipping kept, and why."""
        return explain_plan(self.plan, self.snapshot)


@dataclass(frozen=True)
class Changes:
    """A planned read of the change data feed. Data files are not read until rows are requested."""

    plan: FeedPlan

    @property
    def schema(self) -> StructType:
        """The logical schema of the rows."""
        return self.plan.schema

    @property
    def versions(self) -> VersionRange:
        """The versions whose changes are read; empty if `last` is less than `first`."""
        return self.plan.versions

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the changed rows as Arrow record batches, read as they are consumed."""
        yield from read_changes(self.plan)

    def to_arrow(self, *, progress: ShowProgress = None) -> pa.Table:
        """Return the changed rows as one Arrow table. `progress` is as for `Table.append`."""
        with operation(progress):
            return pa.Table.from_batches(read_changes(self.plan), changes_schema(self.plan))
