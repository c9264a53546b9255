"""`DeltaTable.alter()`: changes to columns, constraints, properties and clustering."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType as SparkType
from pyspark.sql.types import StructField as SparkField
from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.ddl.alter import Alteration
from pyspark_delta.display import html_facts
from pyspark_delta.schema.column_paths import parse_column_path, parse_name
from pyspark_delta.schema.types import StructField
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.api.column_types import delta_field
from pyspark_delta.spark.api.existing_rows import check_existing_rows
from pyspark_delta.transaction.commit_info import engine_info


class DeltaTableAlter:
    """Changes to the definition of a table. Each method makes one commit and returns this object, for chained calls.

    The changes of `DeltaTransaction.alter()` are part of the commit of the transaction instead.

    Names of columns are written as in SQL: with dots for nested columns, with `element`, `key` and `value` inside
    arrays and maps, and with backticks around a name that contains dots. Every method raises UnsupportedFeatureError
    for a table that cannot be written to, InvalidOperationError for a change that the table does not allow, both before
    anything is written, and CommitConflictError if a concurrent commit conflicts with the change.

    >>> table.alter().addColumn("price", "decimal(10,2)", comment="without tax")   # doctest: +SKIP
    >>> table.alter().addConstraint("positive", "price > 0").setProperties({"delta.appendOnly": True})  # doctest: +SKIP
    """

    def __init__(self, table: object, changes: Alteration) -> None:
        self._table, self._changes = table, changes

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
        self._changes.add_column(parent, delta_field(last, dataType, comment=comment), first=first, after=after)
        return self

    def addColumns(self, columns: SparkStruct | Sequence[SparkField]) -> DeltaTableAlter:
        """Add top-level columns in one commit."""
        self._changes.add_columns(_fields(columns))
        return self

    def dropColumns(self, *names: str) -> DeltaTableAlter:
        """Drop columns. The table must use column mapping (delta.columnMapping.mode)."""
        self._changes.drop_columns(names)
        return self

    def replaceColumns(self, columns: SparkStruct | Sequence[SparkField]) -> DeltaTableAlter:
        """Set all columns in one commit.

        Columns are matched by name: this sets their order, comments and wider types, and adds columns that are new.
        Columns that are left out are dropped, which needs column mapping. A struct cannot gain and lose columns at
        once.
        """
        self._changes.replace_columns(_fields(columns))
        return self

    def renameColumn(self, name: str, newName: str) -> DeltaTableAlter:
        """Rename a column without moving it. `newName` may be in backticks. The table must use column mapping."""
        self._changes.rename_column(name, parse_name(newName))
        return self

    def moveColumn(self, name: str, *, first: bool = False, after: str | None = None) -> DeltaTableAlter:
        """Move a column within its struct: to the first place, or after another column."""
        self._changes.move_column(name, first=first, after=after)
        return self

    def changeType(self, name: str, dataType: str | SparkType) -> DeltaTableAlter:
        """Widen the type of a column. The table must have the property delta.enableTypeWidening.

        A `char` or `varchar` can become a longer `varchar`, or a string, without it.
        """
        self._changes.change_type(name, delta_field(name, dataType))
        return self

    def setColumnComment(self, name: str, comment: str | None) -> DeltaTableAlter:
        """Set the comment of a column; None removes it."""
        self._changes.set_column_comment(name, comment)
        return self

    def setNotNull(self, name: str) -> DeltaTableAlter:
        """Forbid null in a column. Raises ConstraintViolationError if existing rows have null in it."""
        self._changes.set_nullable(name, False)
        return self

    def dropNotNull(self, name: str) -> DeltaTableAlter:
        """Allow null in a column."""
        self._changes.set_nullable(name, True)
        return self

    def setDefault(self, name: str, expression: str) -> DeltaTableAlter:
        """Set the default of a column, an expression in SQL, for new rows without a value."""
        self._changes.set_default(name, expression)
        return self

    def dropDefault(self, name: str) -> DeltaTableAlter:
        """Remove the default of a column. New rows without a value then have null."""
        self._changes.set_default(name, None)
        return self

    # --------------------------------------------------------------------------------------------- constraints
    def addConstraint(self, name: str, condition: str) -> DeltaTableAlter:
        """Add a CHECK constraint, in SQL. Raises ConstraintViolationError with examples if existing rows violate it."""
        self._changes.add_constraint(name, condition)
        return self

    def dropConstraint(self, name: str, *, ifExists: bool = False) -> DeltaTableAlter:
        """Drop a CHECK constraint.

        Raises InvalidOperationError if it does not exist, unless `ifExists` is True.
        """
        self._changes.drop_constraint(name, if_exists=ifExists)
        return self

    # -------------------------------------------------------------------------------- properties and clustering
    def setProperties(self, properties: Mapping[str, object]) -> DeltaTableAlter:
        """Set table properties, and enable the table features that they need.

        Enabling row tracking on a table with files takes several commits; the first of them assign row ids to the
        files. Raises InvalidOptionError for an unknown `delta.` property or an invalid value.
        """
        self._changes.set_properties(properties)
        return self

    def unsetProperties(self, *names: str, ifExists: bool = False) -> DeltaTableAlter:
        """Reset properties to their defaults."""
        self._changes.unset_properties(names, if_exists=ifExists)
        return self

    def setComment(self, comment: str | None) -> DeltaTableAlter:
        """Set the description of the table; None removes it."""
        self._changes.set_comment(comment)
        return self

    def clusterBy(self, *columns: str) -> DeltaTableAlter:
        """Set the columns by which files are clustered. Without columns, clustering ends.

        Files without statistics for a new clustering column get them in the same commit (C351). This process computes
        them, from file footers where possible. Raises DataFileError for a file that cannot be opened.
        """
        self._changes.cluster_by(columns)
        return self

    def __repr__(self) -> str:
        return f"{self._table!r}.alter()"

    def _repr_html_(self) -> str:
        return html_facts("DeltaTableAlter", {"table": repr(self._table)})


def alteration(spark: SparkSession, open_snapshot: Callable[[], Snapshot]) -> Alteration:
    """Return changes that are committed one by one, on the version that `open_snapshot` returns."""
    return Alteration(open_snapshot, partial(check_existing_rows, spark), engine_info(f"PySpark/{spark.version}"))


def _fields(columns: SparkStruct | Sequence[SparkField]) -> list[StructField]:
    return [delta_field(f.name, f.dataType, f.nullable, metadata=f.metadata) for f in columns]
