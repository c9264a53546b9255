"""One pass over the live files of the newest version, in batches, from which every check takes what it needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from pyspark_delta.errors import DeltaError
from pyspark_delta.log.replay import LogReplay
from pyspark_delta.log.request import FileRequest
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.maintenance.checking.state import partition_names
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.statistics import StatisticsLeaf, statistics_leaves

COLUMNS = (
    "path",
    "partition_values",
    "size",
    "modification_time",
    "deletion_vector",
    "base_row_id",
    "default_row_commit_version",
    "clustering_provider",
    "tags",
)


@dataclass(frozen=True)
class LiveTable:
    """The newest version of a table, for checks of its live files."""

    replay: LogReplay
    configuration: TableConfiguration
    version: int

    @property
    def location(self) -> str:
        """The location of the table."""
        return self.replay.segment.table_location


@dataclass(frozen=True)
class LiveBatch:
    """Some live files, with their typed statistics."""

    files: pa.RecordBatch
    statistics: dict[tuple[str, ...], pa.Array]

    def __len__(self) -> int:
        return int(self.files.num_rows)

    def column(self, name: str) -> pa.Array:
        """Return a column of `COLUMNS`."""
        return self.files.column(name)

    @property
    def records(self) -> pa.Array:
        """The numbers of records, null where a file has none."""
        return self.statistics[("numRecords",)]


class LiveCheck(Protocol):
    """A check that sees each live file once."""

    def take(self, batch: LiveBatch) -> None:
        """Look at some files."""
        ...

    def finish(self) -> None:
        """Report what only all files together show."""
        ...


def pass_over(table: LiveTable, checks: Sequence[LiveCheck], findings: Findings) -> int:
    """Show the live files to checks; return how many there are. What cannot be read is noted as skipped."""
    number = 0
    try:
        leaves = statistics_leaves(table.configuration)
        for batch in _batches(table, leaves):
            number += len(batch)
            for check in checks:
                check.take(batch)
        for check in checks:
            check.finish()
    except (DeltaError, pa.ArrowException, ValueError, OverflowError, RecursionError) as error:
        reason = error.message if isinstance(error, DeltaError) else str(error)
        findings.skip(f"Live files were not checked completely: {reason}")
    return number


def _batches(table: LiveTable, leaves: Sequence[StatisticsLeaf]) -> Iterable[LiveBatch]:
    paths = [leaf.physical.path for leaf in leaves]
    names = partition_names(table.configuration)
    for batch in table.replay.statistics(tuple(leaf.physical for leaf in leaves), COLUMNS, names):
        files = batch.select(list(COLUMNS))
        columns = batch.columns[len(COLUMNS) :]
        yield LiveBatch(files, dict(zip(paths, columns, strict=True)))


def texts(table: LiveTable) -> Iterable[pa.RecordBatch]:
    """Yield path and text of the statistics of the live files; null where a checkpoint has only columns."""
    request = FileRequest(("path", "stats"), makes_texts=False)
    yield from table.replay.files("add", request.columns, partition_names(table.configuration), request)
