"""What statements share: where names are looked up, the engine of queries, and how progress is shown."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from pyspark_delta.interpreter.names import Namespace
from pyspark_delta.interpreter.queries import Engine, run_query
from pyspark_delta.parser.change_calls import ChangeCall
from pyspark_delta.parser.values import TableName, TableReference, TimeTravel
from pyspark_delta.progress import ShowProgress, operation
from pyspark_delta.schema.types import StructType
from pyspark_delta.table import Changes, Scan, Table
from pyspark_delta.table.alter import TableAlter
from pyspark_delta.table.sources import RowStream, open_rows


@dataclass
class Session:
    """The state of a sequence of statements; `USE` changes `names`."""

    names: Namespace = field(default_factory=Namespace)
    engine: Engine | None = None
    progress: ShowProgress = None

    def open(self, reference: TableReference, time: TimeTravel | None = None) -> Table:
        """Open the table of a reference. Raises as `Target.open` and `Namespace.resolve`."""
        return self.names.resolve(reference).open(time)

    def read(self, reference: TableReference, time: TimeTravel | None = None) -> Scan:
        """Open the table of a reference in a query. Raises as `Target.read` and `Namespace.resolve`."""
        return self.names.resolve(reference).read(time).scan()

    def alter(self, reference: TableReference) -> TableAlter:
        """Return the changes to what a table declares. Raises as `open`."""
        return self.open(reference).alter(progress=self.progress)

    def schema(self, reference: TableReference) -> StructType:
        """Return the schema that a change of a table begins with. Raises as `open`."""
        return self.open(reference).schema

    def query(self, text: str) -> pa.RecordBatchReader:
        """Run a query over the tables that its names mean. Raises as `run_query`."""
        return run_query(text, self.read, self.changes, self.engine)

    def changes(self, call: ChangeCall) -> Changes:
        """Open the change data feed that a call names. Raises as `Table.changes`."""
        first, last = call.first, call.last
        return self.open(call.table).changes(
            starting_version=first if isinstance(first, int) else None,
            starting_timestamp=None if isinstance(first, int) else first,
            ending_version=last if isinstance(last, int) else None,
            ending_timestamp=None if isinstance(last, int) else last,
        )

    def rows_for(self, table: Table, text: str) -> RowStream:
        """Run a query whose rows change a table. If it reads the same table, other changes of it are conflicts."""
        scans = list[Scan]()

        def scanned(name: TableName, time: TimeTravel | None) -> Scan:
            scans.append(self.read(name, time))
            return scans[-1]

        rows = open_rows(run_query(text, scanned, self.changes, self.engine), table.schema)
        own = [scan for scan in scans if scan.is_latest and scan.snapshot.location == table.location]
        return replace(rows, scan=own[0]) if own else rows

    def operation(self) -> AbstractContextManager[Any]:
        """Return the operation that shows the progress of a statement."""
        return operation(self.progress)

    @property
    def storage_options(self) -> Mapping[str, str]:
        """The options of the stores of tables at paths."""
        return self.names.storage_options
