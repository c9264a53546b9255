"""Planned reads of a table and of its change data feed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from pyspark_delta.changes.plan import FeedPlan, plan_changes
from pyspark_delta.changes.reader import changes_schema, read_changes
from pyspark_delta.changes.versions import VersionRange
from pyspark_delta.data.decoder_choice import choose_decoder
from pyspark_delta.data.reader import output_schema, read_batches, read_each, read_plan, tasks_of
from pyspark_delta.display import counted, html_facts, listed
from pyspark_delta.expressions.text import to_sql
from pyspark_delta.expressions.tree import Expression, all_of
from pyspark_delta.scan.explain import count_stages, explain_plan
from pyspark_delta.scan.plan import PruningStage, ScanPlan
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.schema.types import StructType, short_text
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.table.readable import Readable, check_limit, filtered

_MOST_FILES = 64  # that a limited read opens at once


@dataclass(frozen=True, repr=False)
class Scan(Readable):
    """A planned read: its files and columns. Data files are not read until rows are requested.

    `is_latest` is False if the caller asked for the version. Rows of the latest one may change before they are written
    back to the table, which is a conflict. `row_limit` is the most rows that are read, None for all.
    """

    plan: ScanPlan
    snapshot: Snapshot
    is_latest: bool = True
    row_limit: int | None = None
    _condition: Expression | None = field(default=None, repr=False)  # of the plan, to plan fewer rows

    @property
    def schema(self) -> StructType:
        """The logical schema of the rows."""
        return self.plan.schema

    def __repr__(self) -> str:
        facts = (f"version={self.plan.version}", counted(self.plan.files.num_rows, "file"), *_shown_rows(self))
        return f"Scan({self.snapshot.location!r}, {', '.join(facts)}: {short_text(self.schema)})"

    def _repr_html_(self) -> str:
        facts = {
            "location": self.snapshot.location,
            "version": self.plan.version,
            "columns": listed(self.schema.names),
            "where": None if self._condition is None else to_sql(self._condition),
            "files": self.plan.files.num_rows,
            "row limit": self.row_limit,
        }
        return html_facts("Scan", facts)

    def limit(self, n: int) -> Scan:
        """Return a scan of the first `n` rows, in no particular order. Files that are not needed are not opened."""
        check_limit(n)
        return replace(self, row_limit=n if self.row_limit is None else min(n, self.row_limit))

    def files(self) -> pa.Table:
        """Return the files that skipping kept, columns as in `Table.files`."""
        return self.plan.files

    def stages(self) -> tuple[PruningStage, ...]:
        """Return the stages of skipping, with the number of files that each of them kept."""
        return count_stages(self.plan, self.snapshot)

    def explain(self) -> str:
        """Explain as text how many files each stage of skipping kept, and why."""
        return explain_plan(self.plan, self.snapshot)

    def _pinned(self) -> Scan:
        return self

    def _reader(
        self, columns: Sequence[str] | None = None, where: Expression | None = None, limit: int | None = None
    ) -> pa.RecordBatchReader:
        if where is not None and self.row_limit is not None:  # the condition is on the first rows
            return filtered(self._reader(), where, columns, limit)
        plan, most = self._planned(columns, where), _least(self.row_limit, limit)
        if most is None:
            return read_plan(plan, decoder=choose_decoder(plan))
        return pa.RecordBatchReader.from_batches(output_schema(plan.context), _first_rows(plan, most))

    def _views(
        self, columns: Sequence[str] | None, where: Expression | None, limit: int | None
    ) -> Iterable[pa.RecordBatch]:
        if limit is not None or self.row_limit is not None:
            return super()._views(columns, where, limit)
        plan = self._planned(columns, where)
        return read_batches(plan, decoder=choose_decoder(plan, views=True))

    def _planned(self, columns: Sequence[str] | None, where: Expression | None) -> ScanPlan:
        """Return the plan for some columns, of the rows that also meet a condition."""
        if columns is None and where is None:
            return self.plan
        names = self.plan.schema.names if columns is None else columns
        return plan_scan(self.snapshot, names, all_of(self._condition, where))


@dataclass(frozen=True, repr=False)
class Changes(Readable):
    """A planned read of the change data feed. Data files are not read until rows are requested.

    `row_limit` is the most rows that are read, None for all.
    """

    plan: FeedPlan
    snapshot: Snapshot
    row_limit: int | None = None
    _condition: Expression | None = field(default=None, repr=False)

    @property
    def schema(self) -> StructType:
        """The logical schema of the rows."""
        return self.plan.schema

    @property
    def versions(self) -> VersionRange:
        """The versions whose changes are read; empty if `last` is less than `first`."""
        return self.plan.versions

    def __repr__(self) -> str:
        facts = (f"versions {self.versions.first} to {self.versions.last}", *_shown_rows(self))
        return f"Changes({self.snapshot.location!r}, {', '.join(facts)}: {short_text(self.schema)})"

    def _repr_html_(self) -> str:
        facts = {
            "location": self.snapshot.location,
            "first version": self.versions.first,
            "last version": self.versions.last,
            "columns": listed(self.schema.names),
            "where": None if self._condition is None else to_sql(self._condition),
            "files": sum(scan.plan.files.num_rows for scan in self.plan.scans),
            "row limit": self.row_limit,
        }
        return html_facts("Changes", facts)

    def limit(self, n: int) -> Changes:
        """Return a read of the first `n` changed rows. Files that are not needed are not opened."""
        check_limit(n)
        return replace(self, row_limit=n if self.row_limit is None else min(n, self.row_limit))

    def _pinned(self) -> Changes:
        return self

    def _reader(
        self, columns: Sequence[str] | None = None, where: Expression | None = None, limit: int | None = None
    ) -> pa.RecordBatchReader:
        if where is not None and self.row_limit is not None:
            return filtered(self._reader(), where, columns, limit)
        plan = self.plan
        if columns is not None or where is not None:
            names = plan.schema.names if columns is None else columns
            plan = plan_changes(self.snapshot, plan.versions, names, all_of(self._condition, where))
        most = _least(self.row_limit, limit)
        read = read_plan if most is None else Rest(most)
        return pa.RecordBatchReader.from_batches(changes_schema(plan), read_changes(plan, read))


class Rest:
    """Reads plans one after another until they have given a number of rows."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __call__(self, plan: ScanPlan) -> Iterator[pa.RecordBatch]:
        for batch in _first_rows(plan, self._count):
            self._count -= batch.num_rows
            yield batch


def _first_rows(plan: ScanPlan, count: int) -> Iterator[pa.RecordBatch]:
    """Yield the first rows of a plan. Files are opened as they are expected to be needed, by the rows of those before.

    A single file is read batch by batch, so row groups after the last row are not read either.
    """
    found = files = 0
    at_once = 1
    while found < count and files < plan.files.num_rows:
        part = replace(plan, files=plan.files.slice(files, at_once))
        for batch in _read(part):
            rows = batch.slice(0, count - found)
            found += rows.num_rows
            yield rows
            if found == count:
                return
        files += part.files.num_rows
        expected = (count - found) * files // found if found else 2 * at_once
        at_once = min(_MOST_FILES, max(1, expected))


def _read(plan: ScanPlan) -> Iterator[pa.RecordBatch]:
    if plan.files.num_rows > 1:
        yield from read_plan(plan)
    else:
        yield from read_each(plan.context, list(tasks_of(plan.files)), lambda _, batch: (batch,))


def _shown_rows(rows: Scan | Changes) -> tuple[str, ...]:
    return () if rows.row_limit is None else (f"at most {counted(rows.row_limit, 'row')}",)


def _least(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)
