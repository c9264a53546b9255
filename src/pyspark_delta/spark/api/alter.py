"""`DeltaTable.alter()`: changes to columns, constraints, properties and clustering, each a commit of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType as SparkType
from pyspark.sql.types import StructField as SparkField
from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.ddl.change import TableChange, commit_change
from pyspark_delta.ddl.clustering import recluster
from pyspark_delta.ddl.columns import (
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
    """Changes to what a table declares. Each method makes one commit and returns this object for the next.

    Columns are named as in SQL: nested ones by dots, with `element`, `key` and `value` inside arrays and maps, names
    that hold dots between backticks. Every method raises InvalidOperationError, before anything is written, for a
    change that the table does not allow, and CommitConflictError when the table was changed meanwhile.

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
        """A new column, null in every row there is; the last one of its struct unless `first` or `after` a column."""
        *parent, last = parse_column_path(name)
        field = delta_field(last, dataType, comment=comment)
        return self._change(
            lambda snapshot: add_columns(
                snapshot.configuration, [NewColumn(field, tuple(parent), _position(first, after))]
            )
        )

    def addColumns(self, columns: SparkStruct | Sequence[SparkField]) -> DeltaTableAlter:
        """New top-level columns, in one commit."""
        new = [NewColumn(delta_field(f.name, f.dataType, f.nullable, metadata=f.metadata)) for f in columns]
        return self._change(lambda snapshot: add_columns(snapshot.configuration, new))

    def dropColumns(self, *names: str) -> DeltaTableAlter:
        """Columns leave the schema; the table must map columns (delta.columnMapping.mode)."""
        paths = [parse_column_path(name) for name in names]
        return self._change(
            lambda snapshot: drop_columns(
                snapshot.configuration, paths, clustering_columns=snapshot.clustering_columns()
            )
        )

    def renameColumn(self, name: str, newName: str) -> DeltaTableAlter:
        """Another name for a column, which stays where it is; the table must map columns."""
        return self._change(lambda snapshot: rename(snapshot.configuration, parse_column_path(name), newName))

    def moveColumn(self, name: str, *, first: bool = False, after: str | None = None) -> DeltaTableAlter:
        """Another place for a column in its struct."""
        position = _position(first, after)
        if position is None:
            raise InvalidOperationError(f"Say where the column '{name}' goes: first=True, or after='another column'.")
        return self._change(lambda snapshot: move(snapshot.configuration, parse_column_path(name), position))

    def changeType(self, name: str, dataType: str | SparkType) -> DeltaTableAlter:
        """A wider type for a column, which needs the property delta.enableTypeWidening."""
        wider = delta_type(dataType)
        return self._change(lambda snapshot: change_type(snapshot.configuration, parse_column_path(name), wider))

    def setColumnComment(self, name: str, comment: str | None) -> DeltaTableAlter:
        """Another comment for a column; None removes it."""
        return self._change(lambda snapshot: set_comment(snapshot.configuration, parse_column_path(name), comment))

    def setNotNull(self, name: str) -> DeltaTableAlter:
        """Null is forbidden from now on. Raises ConstraintViolationError when rows have it."""
        return self._change(lambda snapshot: set_nullable(snapshot.configuration, parse_column_path(name), False))

    def dropNotNull(self, name: str) -> DeltaTableAlter:
        """Null is allowed from now on."""
        return self._change(lambda snapshot: set_nullable(snapshot.configuration, parse_column_path(name), True))

    def setDefault(self, name: str, expression: str) -> DeltaTableAlter:
        """The default, as SQL, of a column for new rows that do not give it."""
        return self._change(lambda snapshot: set_default(snapshot.configuration, parse_column_path(name), expression))

    def dropDefault(self, name: str) -> DeltaTableAlter:
        """New rows that do not give the column have null again."""
        return self._change(lambda snapshot: set_default(snapshot.configuration, parse_column_path(name), None))

    # --------------------------------------------------------------------------------------------- constraints
    def addConstraint(self, name: str, condition: str) -> DeltaTableAlter:
        """A CHECK constraint. Raises ConstraintViolationError, with examples, when rows there are break it."""
        return self._change(lambda snapshot: add_constraint(snapshot.configuration, name, condition))

    def dropConstraint(self, name: str, *, ifExists: bool = False) -> DeltaTableAlter:
        """A CHECK constraint holds no longer."""
        return self._change(lambda snapshot: drop_constraint(snapshot.configuration, name, if_exists=ifExists))

    # -------------------------------------------------------------------------------- properties and clustering
    def setProperties(self, properties: Mapping[str, object]) -> DeltaTableAlter:
        """New values for table properties, which enables the table features that they need.

        Row tracking for a table with files takes several commits, which number the files first.
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
        """Properties go back to their defaults."""
        return self._change(lambda snapshot: unset_properties(snapshot.configuration, names, if_exists=ifExists))

    def setComment(self, comment: str | None) -> DeltaTableAlter:
        """Another description of the table; None removes it."""
        return self._change(lambda snapshot: set_description(snapshot.configuration, comment))

    def clusterBy(self, *columns: str) -> DeltaTableAlter:
        """The columns by which files are clustered from now on; none at all ends clustering.

        Raises InvalidOperationError if files of the table have no statistics for a new clustering column.
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
        raise InvalidOperationError("A column goes either first or after another one, not both.")
    if first:
        return First()
    return None if after is None else After(parse_column_path(after)[-1])
