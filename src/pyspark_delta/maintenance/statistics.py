"""COMPUTE STATS: statistics for files that lack them, from Parquet footers where these suffice, otherwise from rows.

The files are committed again with the same rows, so a concurrent append is no conflict, and readers of changes see
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Maintenance
from pyspark_delta.data.column_statistics import MeasuredColumn, lacking_statistics, with_column_statistics
from pyspark_delta.display import counted, html_facts, listed
from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.features.support import check_writable
from pyspark_delta.log.request import FileRequest
from pyspark_delta.maintenance.budget import UNLIMITED, Budget, deadline
from pyspark_delta.maintenance.recommitting import FILES_PER_COMMIT, commit_again
from pyspark_delta.protocol.clustering import clustering_paths
from pyspark_delta.protocol.draft import CommitDraft, IsolationLevel, Operation
from pyspark_delta.protocol.statistics import table_stats_columns
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.column_paths import column_path_text, parse_column_path
from pyspark_delta.schema.edits import spelled
from pyspark_delta.schema.json import dump_json
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot

_FILES_IN_TIME = 1_000  # in a commit, if the budget limits the seconds
_NAMES = tuple(field.name for field in FILE_FIELDS)


@dataclass(frozen=True)
class StatisticsResult:
    """The last committed version, and how many files got statistics. `version` is None if no file needed any.

    `num_files_left` files still need some, because the budget is spent.
    """

    version: int | None
    num_files: int
    num_files_left: int = 0

    def _repr_html_(self) -> str:
        return html_facts("StatisticsResult", vars(self))


@dataclass(frozen=True, repr=False)
class StatisticsPlan:
    """The files that get statistics, with all columns of `actions.columns`, and the columns that are measured.

    `files_left` more files need some; the bytes of the budget do not suffice for them.
    """

    snapshot: Snapshot
    files: pa.Table
    columns: tuple[MeasuredColumn, ...]
    where: str | None = None
    budget: Budget = UNLIMITED
    files_left: int = 0

    @cached_property
    def size_in_bytes(self) -> int:
        """The sum of the sizes of the files; less is read where footers suffice."""
        size: int = pc.sum(self.files["size"]).as_py() or 0
        return size

    def facts(self) -> dict[str, object]:
        """Return the plan as names and values."""
        return {
            "operation": "COMPUTE STATS",
            "version": self.snapshot.version,
            "files": self.files.num_rows,
            "bytes": self.size_in_bytes,
            "files_left": self.files_left,
            "columns": listed(self._names),
        }

    def execute(self, *, user_metadata: str | None = None, engine_info: str = "") -> StatisticsResult:
        """Compute the statistics, and commit the files with them: 100,000 in a commit, 1,000 if the time is limited.

        Raises CommitConflictError if a file is removed meanwhile, DataFileError for a file that cannot be read, and
        UnsupportedDataFileError for one that only Spark can read. Commits before the error stay.
        """
        snapshot = self.snapshot

        def measured(files: pa.Table) -> pa.Table:
            return with_column_statistics(
                files, snapshot.location, snapshot.configuration, self.columns, snapshot.storage_options
            )

        draft = CommitDraft(
            operation=Operation("COMPUTE STATS", {"predicate": dump_json(self._predicate).decode()}),
            isolation=IsolationLevel.SNAPSHOT,
            user_metadata=user_metadata,
            engine_info=engine_info,
        )
        done = commit_again(
            snapshot,
            self.files,
            measured,
            draft,
            files_per_commit=self._files_per_commit,
            is_over=deadline(self.budget.seconds),
        )
        return StatisticsResult(*done, self.files.num_rows - done.num_files + self.files_left)

    @property
    def _files_per_commit(self) -> int:
        usual = FILES_PER_COMMIT if self.budget.seconds is None else _FILES_IN_TIME
        return usual if self.budget.commits is None else max(usual, -(-self.files.num_rows // self.budget.commits))

    @property
    def _predicate(self) -> list[str]:
        return [] if self.where is None else [self.where]

    @property
    def _names(self) -> list[str]:
        return [column_path_text(column.path) for column in self.columns]

    def _repr_html_(self) -> str:
        return html_facts("StatisticsPlan", self.facts())

    def __repr__(self) -> str:
        return f"StatisticsPlan({self.snapshot.location!r}, {counted(self.files.num_rows, 'file')})"

    def __str__(self) -> str:
        return (
            f"Compute statistics of {counted(self.files.num_rows, 'file')} of {self.size_in_bytes} bytes of "
            f"'{self.snapshot.location}' for {listed(self._names)}."
        )


def plan_statistics(
    snapshot: Snapshot,
    *,
    where: str | None = None,
    columns: Sequence[str] | None = None,
    only_missing: bool = True,
    budget: Budget = UNLIMITED,
) -> StatisticsPlan:
    """Return which files get statistics, without reading them.

    `where` chooses the files that may have rows for which a predicate is true. `columns` are names; by default all
    columns that have statistics by the properties of the table. With `only_missing`, files that have the number of
    records, and of nulls in each column, are left out. `budget` limits the bytes of the files, the seconds, and the
    commits. Raises InvalidPredicateError, InvalidOptionError for a column without statistics, and
    MaintenanceNotAllowedError if the catalog of the table does not allow it (C478).
    """
    check_allowed(snapshot)
    measured = measured_columns(snapshot, columns)
    chosen = None
    if where is not None:
        condition = parse_predicate(where, snapshot.schema)
        chosen = plan_scan(snapshot, [], condition).files["path"].combine_chunks()
    batches = [_chosen(batch, chosen) for batch in snapshot.read_files(FileRequest(_NAMES))]
    if only_missing:
        batches = list(lacking_statistics(batches, [column.stored.path for column in measured]))
    files = pa.Table.from_batches([batch.cast(pa.schema(FILE_FIELDS)) for batch in batches], pa.schema(FILE_FIELDS))
    chosen_files = _affordable(files, budget.size)
    return StatisticsPlan(snapshot, chosen_files, measured, where, budget, files.num_rows - chosen_files.num_rows)


def check_allowed(snapshot: Snapshot) -> None:
    """Raise unless the table can be written, and its catalog allows what OPTIMIZE does (C478)."""
    check_writable(snapshot.configuration, snapshot.location)
    managed = managed_table(snapshot.catalog_table)
    if managed is not None:
        managed.require(Maintenance.OPTIMIZE)


def measured_columns(snapshot: Snapshot, names: Sequence[str] | None = None) -> tuple[MeasuredColumn, ...]:
    """Return the columns to measure, by their logical paths. Raises InvalidOptionError as `plan_statistics`."""
    configuration = snapshot.configuration
    stored = table_stats_columns(configuration, clustering_paths(snapshot.domains()))
    known = {column.path: column for column in stored}
    logical = dict(_paths(snapshot.schema, mapping_mode(configuration)))
    every = tuple(MeasuredColumn(logical[path], column) for path, column in known.items())
    if names is None:
        return every
    found = []
    for name in names:
        path = spelled(snapshot.schema, parse_column_path(name))
        below = [column for column in every if column.path[: len(path)] == path]
        if not below:
            raise InvalidOptionError(
                f"The column '{name}' has no statistics: partition columns have none, and other columns only if the "
                "properties delta.dataSkippingStatsColumns and delta.dataSkippingNumIndexedCols include them.",
                option="columns",
            )
        found += [column for column in below if column not in found]
    return tuple(found)


def _paths(
    struct: StructType, mode: str, logical: tuple[str, ...] = (), physical: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the physical and the logical path of each column and of the fields of structs."""
    for field in struct:
        stored, named = (*physical, physical_field(field, mode).name), (*logical, field.name)
        yield stored, named
        if isinstance(field.type, StructType):
            yield from _paths(field.type, mode, named, stored)


def _affordable(files: pa.Table, size: int | None) -> pa.Table:
    """Return the first files that are not larger than a size in all, at least one."""
    if size is None or not files.num_rows:
        return files
    sums = pc.cumulative_sum(files["size"])
    return files.slice(0, max(1, pc.sum(pc.less_equal(sums, size)).as_py()))


def _chosen(batch: pa.RecordBatch, paths: pa.Array | None) -> pa.RecordBatch:
    return batch if paths is None else batch.filter(pc.is_in(batch.column("path"), value_set=paths))
