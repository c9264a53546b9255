"""Reading a table as a stream, without Spark: batches of new rows, each with the offset after it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import InvalidOperationError, InvalidOptionError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.tree import Expression, all_of
from pyspark_delta.scan.matches import keep_possible
from pyspark_delta.scan.plan import ScanPlan
from pyspark_delta.scan.planner import select_columns
from pyspark_delta.schema.arrow import schema_to_arrow
from pyspark_delta.schema.timestamps import parse_timestamp
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.streaming.admission import Limits
from pyspark_delta.streaming.contents import BatchFiles
from pyspark_delta.streaming.offset import Offset
from pyspark_delta.streaming.options import (
    DEFAULT_MAX_FILES,
    OnDataLoss,
    StreamOptions,
    parse_new_rows,
    parse_on_data_loss,
)
from pyspark_delta.streaming.planner import StreamPlanner
from pyspark_delta.table.arguments import check_arguments
from pyspark_delta.table.readable import Readable
from pyspark_delta.table.scan import Rest

_LONGEST_WAIT = 60.0  # seconds between two looks at a table


@dataclass(frozen=True, repr=False)
class StreamBatch(Readable):
    """The rows of one batch of a stream. Data files are not read until rows are requested.

    `offset` is the position after the batch, as text: store it when the rows are processed, and pass it to
    `Table.stream` to continue there.
    """

    offset: str
    _schema: StructType = field(repr=False)
    _parts: tuple[BatchFiles, ...] = field(repr=False)
    _condition: Expression | None = field(default=None, repr=False)

    @property
    def schema(self) -> StructType:
        """The logical schema of the rows."""
        return self._schema

    @property
    def num_files(self) -> int:
        """The number of data files of the batch."""
        return sum(part.files.num_rows for part in self._parts)

    @property
    def size_in_bytes(self) -> int:
        """The sum of the sizes of these files."""
        return sum(pc.sum(part.files["size"]).as_py() or 0 for part in self._parts)

    def __repr__(self) -> str:
        return f"StreamBatch(num_files={self.num_files}, offset={self.offset!r})"

    def _pinned(self) -> StreamBatch:
        return self

    def _reader(
        self, columns: Sequence[str] | None = None, where: Expression | None = None, limit: int | None = None
    ) -> pa.RecordBatchReader:
        output = self._schema.names if columns is None else columns
        plans = [_plan(part, output, self._condition, where) for part in self._parts]
        schema = schema_to_arrow(StructType(select_columns(output, self._schema)), all_nullable=True)
        read = read_plan if limit is None else Rest(limit)
        return pa.RecordBatchReader.from_batches(schema, chain.from_iterable(map(read, plans)))


class TableStream:
    """The batches of a stream over a table, from `Table.stream`.

    Iterating yields batches until nothing is new, and can be repeated later; `follow` waits for new versions. A batch
    counts as processed when the next one is requested.
    """

    def __init__(
        self,
        planner: StreamPlanner,
        start: Offset | None,
        columns: Sequence[str] | None = None,
        condition: Expression | None = None,
    ) -> None:
        self._planner = planner
        self._start, self._end = start, start
        self._schema = StructType(select_columns(columns, planner.schema))
        self._condition = condition

    def __repr__(self) -> str:
        return f"TableStream(offset={self.offset!r})"

    @property
    def schema(self) -> StructType:
        """The logical schema of the rows."""
        return self._schema

    @property
    def offset(self) -> str | None:
        """The position after the last batch as text; None before the first one."""
        return None if self._end is None else self._end.to_json()

    def next(self) -> StreamBatch | None:
        """Return the next batch, or None if nothing is new. It may have no rows, if a version added none.

        Raises ChangedRowsError for a version that deletes or updates rows, StreamSchemaError if the schema changed,
        StreamDataLossError if versions are missing, and InvalidOffsetError if the table was replaced.
        """
        if self._end is not None:
            self._planner.release(self._end)
        start = self._end
        end = self._planner.latest(start)
        if end is None or end == start:
            return None
        parts = tuple(self._planner.batch(start, end))
        self._end = end
        return StreamBatch(end.to_json(), self._schema, parts, self._condition)

    def __iter__(self) -> Iterator[StreamBatch]:
        while (batch := self.next()) is not None:
            yield batch

    def follow(self, interval: float = 1.0, *, timeout: float | None = None) -> Iterator[StreamBatch]:
        """Yield batches, and wait for new versions: look every `interval` seconds, up to one minute.

        Without a `timeout`, it never ends; with one, it ends when nothing was new for so many seconds. Raises as
        `next`.
        """
        if not 0 < interval <= _LONGEST_WAIT:
            raise InvalidOptionError(f"interval is a number of seconds up to {_LONGEST_WAIT:g}, found {interval!r}.")
        last = time.monotonic()
        while True:
            batch = self.next()
            if batch is not None:
                yield batch
                last = time.monotonic()
                continue
            left = None if timeout is None else timeout - (time.monotonic() - last)
            if left is not None and left <= 0:
                return
            time.sleep(interval if left is None else min(interval, left))


class StreamedTable:
    """The method of `Table` that reads it as a stream."""

    _snapshot: Snapshot
    _is_latest: bool

    @check_arguments
    def stream(
        self,
        offset: str | None = None,
        *,
        max_files: int | None = None,
        max_bytes: int | None = None,
        starting_version: int | str | None = None,
        starting_timestamp: str | datetime | int | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        changes: bool | str = False,
        ignore_deletes: bool = False,
        ignore_changes: bool = False,
        skip_change_commits: bool = False,
        skip_commits_where: str | None = None,
        fail_on_data_loss: bool = True,
        on_data_loss: str | None = None,
    ) -> TableStream:
        """Read the table in batches of new rows: first its current rows, then those of later versions.

        `offset` continues after a batch; it is also the offset of a Spark query in its checkpoint. Without one, the
        stream begins with all current rows, or with the changes from `starting_version` (a version, or "latest" for
        later ones only) or `starting_timestamp` on. A batch has at most `max_files` files (1000 if neither limit is
        given), and ends with the file that reaches `max_bytes`.

        `columns` and the SQL predicate `where` are as in `scan`; files that `where` rules out do not count. With
        `changes`, the change data feed is read. With "inserts" or "upserts", versions that delete or update rows are no
        error: they return the rows that they inserted, or also those that they updated, with their new values.
        `skip_commits_where` is a condition on commits: those that meet it return no rows. Its columns are version,
        operation, userMetadata, userName, userId, engineInfo, isolationLevel and isBlindAppend.

        A version that deletes or updates rows is an error, unless `ignore_deletes` allows whole files to be removed,
        `skip_change_commits` skips such versions, or `ignore_changes` reads rewritten files again, unchanged rows
        included. `on_data_loss` applies to versions that log clean-up has removed: "fail"; "skip", as
        `fail_on_data_loss=False`; or "snapshotDiff", which returns the rows that were added since, by row tracking.

        Raises InvalidOptionError, InvalidOffsetError for an offset of another table, and InvalidOperationError if this
        table is not the latest version.

        >>> stream = Table.open("/data/flights").stream(offset)       # doctest: +SKIP
        >>> for batch in stream.follow():                              # doctest: +SKIP
        ...     process(batch.to_arrow())
        ...     save(batch.offset)
        """
        if not self._is_latest:
            raise InvalidOperationError(
                f"A stream begins with the latest version, but this table is version {self._snapshot.version} of "
                f"'{self._snapshot.location}'. Open it without a version; to stream what came later, use "
                f"starting_version={self._snapshot.version + 1}."
            )
        limits = Limits(DEFAULT_MAX_FILES if max_files is None and max_bytes is None else max_files, max_bytes)
        options = StreamOptions(
            limits=limits,
            starting_version=starting_version,
            starting_timestamp=None if starting_timestamp is None else parse_timestamp(starting_timestamp),
            changes=changes is True,
            new_rows=parse_new_rows(changes) if isinstance(changes, str) else None,
            ignore_deletes=ignore_deletes,
            ignore_changes=ignore_changes,
            skip_change_commits=skip_change_commits,
            where=where,
            skip_commits_where=skip_commits_where,
            on_data_loss=_on_data_loss(fail_on_data_loss, on_data_loss),
        )
        planner = StreamPlanner(self._snapshot.update(), options)
        start = None if offset is None else planner.parse(offset)
        condition = None if where is None else parse_predicate(where, planner.schema)
        return TableStream(planner, start, columns, condition)


def _on_data_loss(fails: bool, text: str | None) -> OnDataLoss:
    if text is not None:
        return parse_on_data_loss(text)
    return OnDataLoss.FAIL if fails else OnDataLoss.SKIP


def _plan(part: BatchFiles, columns: Sequence[str], planned: Expression | None, where: Expression | None) -> ScanPlan:
    """Return the plan to read some columns of the rows of files that meet two conditions.

    The planner of the stream has left out files by the first one.
    """
    source, files = part.source, part.files
    output = select_columns(columns, source.schema)
    if where is not None and not source.constants and not source.in_files_too:
        files = keep_possible(files, source.configuration, where)
    context = source.read_context(output, residual=all_of(planned, where, part.only), time_zone="UTC")
    return ScanPlan(source.version or 0, StructType(output), context, files)
