"""The methods of `Table` that read rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa

from pyspark_delta.changes.plan import change_schema, plan_changes
from pyspark_delta.changes.versions import ChangeRequest, resolve_range
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.schema.timestamps import parse_timestamp
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.table.arguments import check_arguments
from pyspark_delta.table.readable import Readable
from pyspark_delta.table.scan import Changes, Scan


class ReadableTable(Readable):
    """Reads of one version of a table. The methods that hand over rows read all columns and rows of it."""

    _snapshot: Snapshot
    _is_latest: bool

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that this table reads."""
        return self._snapshot

    @property
    def schema(self) -> StructType:
        """The logical schema."""
        return self._snapshot.configuration.schema

    @check_arguments
    def scan(self, columns: Sequence[str] | None = None, where: str | None = None) -> Scan:
        """Plan a read of some columns (all by default) of the rows for which the SQL predicate `where` is true.

        Raises InvalidPredicateError for a predicate that cannot be parsed, names an unknown column, or uses a function
        that is only available in Spark.
        """
        condition = None if where is None else parse_predicate(where, self.schema)
        plan = plan_scan(self._snapshot, columns, condition)
        return Scan(plan, self._snapshot, self._is_latest, _condition=condition)

    def changes(
        self,
        starting_version: int | None = None,
        starting_timestamp: str | datetime | int | None = None,
        ending_version: int | None = None,
        ending_timestamp: str | datetime | int | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        *,
        allow_out_of_range: bool = False,
    ) -> Changes:
        """Plan a read of the change data feed: the rows that changed from one version to another, both included.

        A start is required, by version or by time: the first version not before `starting_timestamp` (in the form of
        `open`). Without an end, changes up to this version are read. The rows have the columns of the table at the end,
        and `_change_type` (insert, update_preimage, update_postimage, delete), `_commit_version` and
        `_commit_timestamp`; `columns` and `where` may name these too.

        With `allow_out_of_range`, the result is empty after this version; otherwise a start or a time after it is an
        error. Raises VersionNotFoundError, TimestampOutOfRangeError, InvalidOptionError; InvalidOperationError if the
        feed was not enabled or the range is reversed; UnsupportedTableError if the columns changed in a way that no
        single schema can represent.
        """
        request = ChangeRequest(
            starting_version,
            None if starting_timestamp is None else parse_timestamp(starting_timestamp),
            ending_version,
            None if ending_timestamp is None else parse_timestamp(ending_timestamp),
            allow_out_of_range,
        )
        versions = resolve_range(self._snapshot, request)
        condition = None if where is None else parse_predicate(where, change_schema(self._snapshot, versions))
        plan = plan_changes(self._snapshot, versions, columns, condition)
        return Changes(plan, self._snapshot, _condition=condition)

    def _pinned(self) -> Scan:
        return self.scan()

    def _reader(
        self, columns: Sequence[str] | None = None, where: Expression | None = None, limit: int | None = None
    ) -> pa.RecordBatchReader:
        return self.scan()._reader(columns, where, limit)
