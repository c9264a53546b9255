"""What a DataFrame reads: the table, one version of it, and the columns and rows requested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.changes.plan import change_schema, plan_changes
from pyspark_delta.changes.versions import VersionRange, resolve_range
from pyspark_delta.errors import InvalidOptionError, SchemaMismatchError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.tree import Expression, all_of
from pyspark_delta.scan.plan import ScanPlan
from pyspark_delta.scan.planner import ROW_TRACKING_FIELDS, plan_scan, require_row_tracking
from pyspark_delta.schema.types import StructField, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.frames.read_options import ReadOptions
from pyspark_delta.spark.frames.schemas import differences, to_spark


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Read options with the version resolved. It is picklable, so that it can move between Spark's processes."""

    options: ReadOptions
    changes: VersionRange | None = None  # of the change data feed, if it is read

    @classmethod
    def resolve(cls, options: Mapping[str, str]) -> ReadRequest:
        """Parse the options and resolve the version.

        Raises what opening a table raises, and InvalidOptionError.
        """
        parsed = ReadOptions.parse(None, options)
        snapshot = Snapshot.load(
            parsed.location,
            version=parsed.version,
            timestamp_ms=parsed.timestamp_ms,
            storage_options=parsed.storage_options,
        )
        changes = None if parsed.changes is None else resolve_range(snapshot, parsed.changes)
        return cls(replace(parsed, version=snapshot.version, timestamp_ms=None), changes)

    def snapshot(self) -> Snapshot:
        """Return the snapshot of the resolved version."""
        asked = self.options
        return Snapshot.load(asked.location, version=asked.version, storage_options=asked.storage_options)

    def columns(self) -> StructType:
        """Return the requested columns of the table, in the requested order. Raises InvalidOptionError."""
        schema = self._everything()
        if self.options.columns is None:
            return schema
        return StructType(tuple(_field(schema, name) for name in self.options.columns))

    def schema(self) -> StructType:
        """Return the logical schema of the rows: the columns, then row id and row commit version if requested.

        Raises InvalidOperationError for row ids of a table that has none.
        """
        if not self.options.row_tracking:
            return self.columns()
        require_row_tracking(self.snapshot().configuration)
        return StructType((*self.columns(), *ROW_TRACKING_FIELDS))

    def spark_schema(self) -> SparkStruct:
        """Return the schema as a type of PySpark, with all fields nullable (C374)."""
        return to_spark(self.schema())

    def check_schema(self, given: SparkStruct) -> None:
        """Raise SchemaMismatchError if the user's schema is not the table's (names, types, order)."""
        found = differences(expected=self.spark_schema(), given=given)
        if found:
            raise SchemaMismatchError(
                f"The schema given with .schema(...) is not the schema of '{self.options.location}': "
                f"{'; '.join(found)}. Leave out .schema(...); the table knows its schema.",
                error_class="DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
            )

    def plans(self, pushed: tuple[Expression, ...] = ()) -> tuple[ScanPlan, ...]:
        """Return plans of scans for the rows for which the option `where` and the pushed filters may be true.

        Reading the table takes one scan; reading the change data feed takes those of `plan_changes`.
        """
        snapshot, time_zone = self.snapshot(), self.options.time_zone
        operands = pushed
        if self.options.where is not None:
            where = parse_predicate(self.options.where, self._everything(), time_zone=time_zone)
            operands = (where, *pushed)
        predicate = all_of(*operands)
        names, row_ids = self.columns().names, self.options.row_tracking
        if self.changes is not None:
            plan = plan_changes(snapshot, self.changes, names, predicate, time_zone=time_zone)
            return tuple(scan.plan for scan in plan.scans)
        return (plan_scan(snapshot, names, predicate, row_ids=row_ids, time_zone=time_zone),)

    def _everything(self) -> StructType:
        """Return all columns that can be requested."""
        snapshot = self.snapshot()
        return snapshot.schema if self.changes is None else change_schema(snapshot, self.changes)


def _field(schema: StructType, name: str) -> StructField:
    field = schema.find(name)
    if field is None:
        raise InvalidOptionError(
            f"The option 'columns' names '{name}', which the table does not have; its columns are "
            f"{', '.join(schema.names)}.",
            error_class="DELTA_COLUMN_NOT_FOUND",
        )
    return field
