"""The source of a merge without Spark: rows of a stream, held in memory or in a temporary file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from pyspark_delta import progress
from pyspark_delta.engines.arrow.spill import SpilledRows, hold_rows
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.draft import IsolationLevel, ReadSet
from pyspark_delta.scan.bounds import NEVER
from pyspark_delta.schema.arrow import schema_from_arrow, schema_to_arrow
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.statements.merge.condition import Key
from pyspark_delta.statements.merge.keys import KeyRanges, KeyReport, SourceKeys, source_keys


class HeldRows:
    """The rows of a stream, which is read when they are first needed; then they can be read again and again.

    `most` is how many bytes are held in memory; more are in a temporary file until `close`. None sets no limit. `total`
    is the number of rows, if it is known.
    """

    def __init__(
        self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, most: int | None, total: int | None = None
    ) -> None:
        self.types = schema_from_arrow(schema)
        self._batches: Iterable[pa.RecordBatch] | None = batches
        self._schema, self._most = schema_to_arrow(self.types, all_nullable=True), most
        self._total = total
        self._rows: pa.Table | SpilledRows | None = None

    def rows(self) -> pa.Table | SpilledRows:
        """Return the rows, in the types that readers of Delta tables return.

        Raises what the stream raises, and InvalidOperationError after that, or after `close` if a file held them.
        """
        if self._rows is None:
            batches, self._batches = self._batches, None
            if batches is None:
                raise InvalidOperationError(
                    "The source of the merge was a stream, which can be read only once. Nothing was committed. Start "
                    "the merge again with a new stream."
                )
            step = progress.begin("Read the source", self._total, "rows")
            typed = (self._typed(batch) for batch in step.shown(iter(batches), len))
            self._rows = hold_rows(typed, self._schema, self._most)
        return self._rows

    def close(self) -> None:
        """Remove the temporary file, if there is one. Rows in memory can still be read."""
        if isinstance(self._rows, SpilledRows):
            self._rows.folder.remove()
            self._rows = None

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch if batch.schema.equals(self._schema) else batch.cast(self._schema)


@dataclass(frozen=True)
class ArrowSource:
    """Held rows as the source of a merge, as `statements.merge.merge.MergeSource` says.

    `read_from` returns what they were read from, if it is the table itself. `alias` names them in conditions.
    """

    held: HeldRows
    alias: str | None
    read_from: Callable[[Snapshot, IsolationLevel | None], ReadSet]
    time_zone: str
    materialize_ms: ClassVar[int] = 0

    @property
    def schema(self) -> StructType:
        """The columns."""
        return self.held.types

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.held.rows().num_rows)

    def reads(self, snapshot: Snapshot) -> ReadSet:
        """Return what the source was read from, if it is the table itself."""
        return self.read_from(snapshot, None)

    def find_keys(self, keys: Sequence[Key]) -> SourceKeys:
        """Return the keys of rows in a file, batch by batch."""
        names = [field.name for key in keys if (field := self.schema.find(key.source[-1])) is not None]
        found: KeyReport | None = None
        for batch in self.held.rows().select(names).to_batches():
            if batch.num_rows:
                report = KeyReport(batch.num_rows, tuple(map(KeyRanges.of, batch.columns)))
                found = report if found is None else KeyReport.joined([found, report])
        return SourceKeys(0, NEVER) if found is None else source_keys(found, keys, self.time_zone)

    def collect_if_small(self, columns: StructType) -> pa.Table | None:
        """Return some columns of rows in memory."""
        rows = self.held.rows()
        return rows.select(list(columns.names)) if isinstance(rows, pa.Table) else None

    def collect(self, columns: StructType) -> pa.Table | SpilledRows:
        """Return some columns."""
        return self.held.rows().select(list(columns.names))
