"""The sink of a query in output mode `update`: each micro-batch is merged into the table by the columns of a key.

A merge records the query and the number of the batch, as a batch that is appended does, also if no row changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_delta.actions.model import SetTransaction
from pyspark_delta.engines.row_changes import RowAction
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.name_resolution import suggestion
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot.cache import latest_snapshot
from pyspark_delta.spark.conf import write_defaults
from pyspark_delta.spark.conf.batches import BatchTransactions, naming
from pyspark_delta.spark.engine.dml.execution import run_statement
from pyspark_delta.spark.engine.dml.merge import merge_statement
from pyspark_delta.spark.engine.write.alignment import frame_schema
from pyspark_delta.spark.streaming.batch import query_id
from pyspark_delta.spark.streaming.sink import BatchRows
from pyspark_delta.statements.merge.clauses import Clause, RowKind
from pyspark_delta.write.engine import StreamBatch
from pyspark_delta.write.options import WriteOptions
from pyspark_delta.write.repeated_batches import check_repeated
from pyspark_delta.write.stream_options import check_no_void
from pyspark_delta.write.stream_target import create_for_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_delta.snapshot import Snapshot
    from pyspark_delta.statements.merge.merge import Merge

_TABLE, _BATCH = "t", "s"
_CLAUSES = (Clause(RowKind.MATCHED, RowAction.UPDATE), Clause(RowKind.NOT_MATCHED, RowAction.INSERT))


@dataclass(frozen=True)
class StreamUpsert:
    """What a query upserts: the table at a location, by the columns `keys`."""

    location: str
    keys: tuple[str, ...]
    options: WriteOptions
    output_mode: str = "Update"

    def checked(self, frame: DataFrame) -> StreamUpsert:
        """Create the table unless it exists, check the columns of the query, and return the writer of its batches.

        Raises InvalidOperationError for a key that is not a column of the query and of the table, and as `plan` of a
        merge for columns that do not fit.
        """
        spark, data = frame.sparkSession, frame_schema(frame)
        check_no_void(data)
        _check_keys(self.keys, data, "query")
        defaults = write_defaults.default_properties(spark)
        create_for_stream(self.location, data, self.options, f"PySpark/{spark.version}", defaults)
        _check_keys(self.keys, self._open().schema, f"table '{self.location}'")
        return self

    def write(self, frame: DataFrame, number: int) -> None:
        """Merge a batch in the thread of its query, unless the table holds it.

        Raises as `DeltaMergeBuilder.execute`.
        """
        spark = frame.sparkSession
        query = query_id(spark)
        assert query is not None
        snapshot = self._open()
        if snapshot.holds_transaction(SetTransaction(app_id=query, version=number)):
            check_repeated(snapshot, StreamBatch(query, number, self.output_mode))
            return
        with naming(spark, BatchTransactions(query, number)):
            run_statement(spark, self._open, self._merge(frame, snapshot.schema))

    def _merge(self, frame: DataFrame, schema: StructType) -> Merge:
        rows = BatchRows(frame).rows()
        merge = merge_statement(frame.sparkSession, rows.alias(_BATCH), self._condition(schema), _TABLE)
        return replace(merge, clauses=_CLAUSES, evolves=bool(self.options.merge_schema))

    def _condition(self, schema: StructType) -> str:
        """Return the condition for rows of one key. Null is a value of a key, as it is of GROUP BY."""
        conditions = []
        for key in self.keys:
            field = schema.find(key)
            operator = "=" if field is not None and not field.nullable else "<=>"
            conditions.append(f"{_TABLE}.{quoted(key)} {operator} {_BATCH}.{quoted(key)}")
        return " AND ".join(conditions)

    def _open(self) -> Snapshot:
        options = self.options
        return latest_snapshot(self.location, options.files.storage_options, catalog_table=options.catalog_table)


def _check_keys(keys: tuple[str, ...], schema: StructType, owner: str) -> None:
    missing = next((key for key in keys if schema.find(key) is None), None)
    if missing is not None:
        raise InvalidOperationError(
            f"The key '{missing}' is not a column of the {owner}. Nothing was started. {suggestion([missing], schema)}",
            error_class="DELTA_COLUMN_NOT_FOUND",
            column=missing,
        )
