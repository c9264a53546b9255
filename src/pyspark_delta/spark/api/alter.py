"""`DeltaTable.alter()`: changes to columns, constraints, properties and clustering. Each one is a commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType as SparkType
from pyspark.sql.types import StructField as SparkField
from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.ddl.change import TableChange, commit_change
from pyspark_delta.ddl.clustering import recluster
from pyspark_delta.ddl.column_changes import (
    NewColumn,
    add_columns,
    drop_columns,
    move,
    rename,
    set_comment,
    set_default,
    set_nullable,
)
from pyspark_delta.ddl.constraints import add_constraint, drop_constraint
from pyspark_delta.ddl.properties import set_description, set_properties, unset_properties
from pyspark_delta.ddl.row_ids import enable_row_ids, promises_row_ids
from pyspark_delta.ddl.types import change_type
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.features.support import check_writable
from pyspark_delta.schema.column_paths import parse_column_path
from pyspark_delta.schema.edits import After, First, Position
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.api.column_types import delta_field, delta_type
from pyspark_delta.spark.api.existing_rows import check_existing_rows
from pyspark_delta.transaction.commit_info import engine_info


class DeltaTableAlter:
    """Changes to the definition of a table. Each method makes one commit and returns this object, for chained calls.

    Names of columns are written as in SQL: with dots for nested columns, with `element`, `key` and `value` inside
    arrays and maps, and with backticks around a name that contains dots. Every method raises UnsupportedFeatureError
    for a table that cannot be written to, InvalidOperationError for a change that the table does not allow, both before
    anything is written, and CommitConflictError if a concurrent commit conflicts with the change.

    >>> table.alter().addColumn("price", "decimal(10,2)", comment="without tax")   # doctest: +SKIP
    >>> table.alter().addConstraint("positive", "price > 0").setProperties({"delta.appendOnly": True})  # doctest: +SKIP
    """

    def __init__(self, spark: SparkSession, table: object, open_snapshot: Callable[[], Snapshot]) -> None:
        self._spark = spark
        self._table = table
        self._open = open_snapshot

    # ------------------------------------------------------------------------------------------------- columns
    def addColumn(
        self,
        name: str,
        dataType: str | SparkType,
        *,
        comment: str | None = None,
        first: bool = False,
        after: str | None = None,
    ) -> DeltaTableAlter:
        """Add a column, which is null in all existing rows. `dataType` is a PySpark type or its name in SQL.

        It becomes the last column of its struct, unless `first` is True or `after` names another column of the struct.
        """
        *parent, last = parse_column_path(name)
        field = delta_field(last, dataType, comment=comment)
        return self._change(
            lambda snapshot: add_columns(
                snapshot.configuration, [NewColumn(field, tuple(parent), _position(first, after))]
            )
        )

    def addColumns(self, columns: SparkStruct | Sequence[SparkField]) -> DeltaTableAlter:
        """Add top-level columns in one commit."""
        new = [NewColumn(delta_field(f.name, f.dataType, f.nullable, metadata=f.metadata)) for f in columns]
        return self._change(lambda snapshot: add_columns(snapshot.configuration, new))

    def dropColumns(self, *names: str) -> DeltaTableAlter:
        """Drop columns. The table must use column mapping (delta.columnMapping.mode)."""
        paths = [parse_column_path(name) for name in names]
        return self._change(
            lambda snapshot: drop_columns(
                snapshot.configuration, paths, clustering_columns=snapshot.clustering_columns()
            )
        )

    def renameColumn(self, name: str, newName: str) -> DeltaTableAlter:
        """Rename a column without moving it. The table must use column mapping."""
        return self._change(lambda snapshot: rename(snapshot.configuration, parse_column_path(name), newName))

    def moveColumn(self, name: str, *, first: bool = False, after: str | None = None) -> DeltaTableAlter:
        """Move a column within its struct: to the first place, or after another column."""
        position = _position(first, after)
        if position is None:
            raise InvalidOperationError(
                f"Give the position of the column '{name}': first=True, or after='another column'."
            )
        return self._change(lambda snapshot: move(snapshot.configuration, parse_column_path(name), position))

    def changeType(self, name: str, dataType: str | SparkType) -> DeltaTableAlter:
        """Widen the type of a column. The table must have the property delta.enableTypeWidening."""
        wider = delta_type(dataType)
        return self._change(lambda snapshot: change_type(snapshot.configuration, parse_column_path(name), wider))

    def setColumnComment(self, name: str, comment: str | None) -> DeltaTableAlter:
        """Set the comment of a column; None removes it."""
        return self._change(lambda snapshot: set_comment(snapshot.configuration, parse_column_path(name), comment))

    def setNotNull(self, name: str) -> DeltaTableAlter:
        """Forbid null in a column. Raises ConstraintViolationError if existing rows have null in it."""
        return self._change(lambda snapshot: set_nullable(snapshot.configuration, parse_column_path(name), False))

    def dropNotNull(self, name: str) -> DeltaTableAlter:
        """Allow null in a column."""
        return self._change(lambda snapshot: set_nullable(snapshot.configuration, parse_column_path(name), True))

    def setDefault(self, name: str, expression: str) -> DeltaTableAlter:
        """Set the default of a column, an expression in SQL, for new rows without a value."""
        return self._change(lambda snapshot: set_default(snapshot.configuration, parse_column_path(name), expression))

    def dropDefault(self, name: str) -> DeltaTableAlter:
        """Remove the default of a column. New rows without a value then have null."""
        return self._change(lambda snapshot: set_default(snapshot.configuration, parse_column_path(name), None))

    # --------------------------------------------------------------------------------------------- constraints
    def addConstraint(self, name: str, condition: str) -> DeltaTableAlter:
        """Add a CHECK constraint, in SQL. Raises ConstraintViolationError with examples if existing rows violate it."""
        return self._change(lambda snapshot: add_constraint(snapshot.configuration, name, condition))

    def dropConstraint(self, name: str, *, ifExists: bool = False) -> DeltaTableAlter:
        """Drop a CHECK constraint.

        Raises InvalidOperationError if it does not exist, unless `ifExists` is True.
        """
        return self._change(lambda snapshot: drop_constraint(snapshot.configuration, name, if_exists=ifExists))

    # -------------------------------------------------------------------------------- properties and clustering
    def setProperties(self, properties: Mapping[str, object]) -> DeltaTableAlter:
        """Set table properties, and enable the table features that they need.

        Enabling row tracking on a table with files takes several commits; the first of them assign row ids to the
        files. Raises InvalidOptionError for an unknown `delta.` property or an invalid value.
        """

        def make(snapshot: Snapshot) -> TableChange:
            return set_properties(snapshot.configuration, properties)

        snapshot = self._open_writable()
        change = make(snapshot)
        if promises_row_ids(change, snapshot):
            enable_row_ids(make, snapshot, engine_info=self._engine_info)
        else:
            self._commit(change, snapshot)
        return self

    def unsetProperties(self, *names: str, ifExists: bool = False) -> DeltaTableAlter:
        """Reset properties to their defaults.

        Raises InvalidOperationError for a property that is not set, unless `ifExists` is True.
        """
        return self._change(lambda snapshot: unset_properties(snapshot.configuration, names, if_exists=ifExists))

    def setComment(self, comment: str | None) -> DeltaTableAlter:
        """Set the description of the table; None removes it."""
        return self._change(lambda snapshot: set_description(snapshot.configuration, comment))

    def clusterBy(self, *columns: str) -> DeltaTableAlter:
        """Set the columns by which files are clustered. Without columns, clustering ends.

        Files without statistics for a new clustering column get them in the same commit (C351). This process computes
        them, from file footers where possible. Raises DataFileError for a file that cannot be opened.
        """
        paths = [parse_column_path(name) for name in columns]
        return self._change(lambda snapshot: recluster(snapshot, paths))

    # ------------------------------------------------------------------------------------------------- details
    def _change(self, make: Callable[[Snapshot], TableChange | None]) -> DeltaTableAlter:
        snapshot = self._open_writable()
        change = make(snapshot)
        if change is not None:
            self._commit(change, snapshot)
        return self

    def _commit(self, change: TableChange, snapshot: Snapshot) -> None:
        if change.row_check is not None:
            check_existing_rows(self._spark, snapshot, change.row_check)
        commit_change(change, snapshot, engine_info=self._engine_info)

    def _open_writable(self) -> Snapshot:
        snapshot = self._open()
        check_writable(snapshot.configuration, snapshot.location)
        return snapshot

    @property
    def _engine_info(self) -> str:
        return engine_info(f"PySpark/{self._spark.version}")

    def __repr__(self) -> str:
        return f"{self._table!r}.alter()"


def _position(first: bool, after: str | None) -> Position | None:
    if first and after is not None:
        raise InvalidOperationError("A column is placed either first or after another column, not both.")
    if first:
        return First()
    return None if after is None else After(parse_column_path(after)[-1])
