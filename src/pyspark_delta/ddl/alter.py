"""Changes to what a table declares, one commit each, for every entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

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
from pyspark_delta.ddl.column_replacement import replace_columns
from pyspark_delta.ddl.constraints import add_constraint, drop_constraint
from pyspark_delta.ddl.properties import set_description, set_properties, unset_properties
from pyspark_delta.ddl.row_ids import enable_row_ids, promises_row_ids
from pyspark_delta.ddl.types import change_type
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.features.support import check_writable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.protocol.rows import RowCheck
from pyspark_delta.schema.column_paths import parse_column_path
from pyspark_delta.schema.edits import After, First, Position
from pyspark_delta.schema.text_lengths import declared_lengths
from pyspark_delta.schema.types import StructField
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.evolution import evolve

ColumnChange: TypeAlias = Callable[[TableConfiguration], TableChange]
"""Returns a change of one column of a table that declares this."""


@dataclass(frozen=True)
class Alteration:
    """Makes changes on the latest version, which `open_snapshot` returns.

    `check_rows` checks that existing rows meet a condition, and raises an error otherwise. Columns are named as in SQL:
    nested ones by dots, with `element`, `key` and `value` inside arrays and maps, names that hold dots between
    backticks. Every method raises InvalidOperationError, before anything is written, for a change that the table does
    not allow, and CommitConflictError if a concurrent commit changed the table.
    """

    open_snapshot: Callable[[], Snapshot]
    check_rows: Callable[[Snapshot, RowCheck], None]
    engine_info: str = ""

    # ------------------------------------------------------------------------------------------------- columns
    def add_column(self, path: Sequence[str], field: StructField, *, first: bool, after: str | None) -> None:
        """Add a column to the struct at a path, the table itself for an empty path."""
        self.add_new_columns([NewColumn(field, tuple(path), position_of(first=first, after=after))])

    def add_columns(self, fields: Sequence[StructField]) -> None:
        """Add top-level columns in one commit."""
        self.add_new_columns([NewColumn(field) for field in fields])

    def add_new_columns(self, columns: Sequence[NewColumn]) -> None:
        """Add columns at any place, in one commit."""
        self._change(lambda snapshot: add_columns(snapshot.configuration, columns))

    def drop_columns(self, names: Sequence[str]) -> None:
        """Drop columns."""
        paths = [parse_column_path(name) for name in names]
        self._change(
            lambda snapshot: drop_columns(
                snapshot.configuration, paths, clustering_columns=snapshot.clustering_columns()
            )
        )

    def replace_columns(self, columns: Sequence[StructField]) -> None:
        """Set all columns, in one commit: their order, comments, types and nullability."""
        self._change(
            lambda snapshot: replace_columns(
                snapshot.configuration, columns, clustering_columns=snapshot.clustering_columns()
            )
        )

    def rename_column(self, name: str, new_name: str) -> None:
        """Rename a column without moving it."""
        self._change(lambda snapshot: rename(snapshot.configuration, parse_column_path(name), new_name))

    def move_column(self, name: str, *, first: bool, after: str | None) -> None:
        """Move a column within its struct."""
        position = position_of(first=first, after=after)
        if position is None:
            raise InvalidOperationError(
                f"Give the position of the column '{name}': first=True, or after='another column'."
            )
        self._change_column(lambda before: move(before, parse_column_path(name), position))

    def change_type(self, name: str, wider: StructField) -> None:
        """Give a column the type of another one, which is wider."""
        path, length = parse_column_path(name), declared_lengths(wider).get(())
        self._change_column(lambda before: change_type(before, path, wider.type, length))

    def set_column_comment(self, name: str, comment: str | None) -> None:
        """Set the comment of a column; None removes it."""
        self._change_column(lambda before: set_comment(before, parse_column_path(name), comment))

    def set_nullable(self, name: str, nullable: bool) -> None:
        """Forbid or allow null in a column."""
        self._change_column(lambda before: set_nullable(before, parse_column_path(name), nullable))

    def set_default(self, name: str, expression: str | None) -> None:
        """Set the default of a column, as SQL; None removes it."""
        self._change_column(lambda before: set_default(before, parse_column_path(name), expression))

    @contextmanager
    def together(self) -> Iterator[Alteration]:
        """Yield an object whose changes of columns become one commit at the end of the block."""
        changes = list[ColumnChange]()
        yield _Together(self.open_snapshot, self.check_rows, self.engine_info, changes)
        snapshot = self._open_writable()
        after, made = snapshot.configuration, list[TableChange]()
        for change in changes:
            made.append(change(after))
            keeps_files = snapshot.num_files() > 0
            after = evolve(after, made[-1].metadata, features=made[-1].features, keeps_files=keeps_files)
        checks = [one.row_check for one in made if one.row_check is not None]
        for check in checks[1:]:
            self.check_rows(snapshot, check)
        columns = ",".join(str(one.operation.parameters["column"]) for one in made)
        self._commit(
            TableChange(
                operation=Operation("CHANGE COLUMNS", {"columns": f"[{columns}]"}),
                metadata=after.metadata,
                features=tuple(feature for one in made for feature in one.features),
                row_check=checks[0] if checks else None,
            ),
            snapshot,
        )

    # --------------------------------------------------------------------------------------------- constraints
    def add_constraint(self, name: str, condition: str) -> None:
        """Add a CHECK constraint that existing rows meet."""
        self._change(lambda snapshot: add_constraint(snapshot.configuration, name, condition))

    def drop_constraint(self, name: str, *, if_exists: bool) -> None:
        """Drop a CHECK constraint."""
        self._change(lambda snapshot: drop_constraint(snapshot.configuration, name, if_exists=if_exists))

    # -------------------------------------------------------------------------------- properties and clustering
    def set_properties(self, properties: Mapping[str, object]) -> None:
        """Set table properties, which enables the features that they need.

        Enabling row tracking on a table with files takes several commits, which first assign row ids to the files.
        """

        def make(snapshot: Snapshot) -> TableChange:
            return set_properties(snapshot.configuration, properties)

        snapshot = self._open_writable()
        change = make(snapshot)
        if promises_row_ids(change, snapshot):
            enable_row_ids(make, snapshot, engine_info=self.engine_info)
        else:
            self._commit(change, snapshot)

    def unset_properties(self, names: Sequence[str], *, if_exists: bool) -> None:
        """Reset properties to their defaults."""
        self._change(lambda snapshot: unset_properties(snapshot.configuration, names, if_exists=if_exists))

    def set_comment(self, comment: str | None) -> None:
        """Set the description of the table; None removes it."""
        self._change(lambda snapshot: set_description(snapshot.configuration, comment))

    def cluster_by(self, columns: Sequence[str]) -> None:
        """Set the columns by which files are clustered; no columns ends clustering.

        Files that have no statistics for a new clustering column get them in the same commit; for this they are opened.
        """
        paths = [parse_column_path(name) for name in columns]
        self._change(lambda snapshot: recluster(snapshot, paths))

    # ------------------------------------------------------------------------------------------------- details
    def _change_column(self, change: ColumnChange) -> None:
        self._change(lambda snapshot: change(snapshot.configuration))

    def _change(self, make: Callable[[Snapshot], TableChange | None]) -> None:
        snapshot = self._open_writable()
        change = make(snapshot)
        if change is not None:
            self._commit(change, snapshot)

    def _commit(self, change: TableChange, snapshot: Snapshot) -> None:
        if change.row_check is not None:
            self.check_rows(snapshot, change.row_check)
        commit_change(change, snapshot, engine_info=self.engine_info)

    def _open_writable(self) -> Snapshot:
        snapshot = self.open_snapshot()
        check_writable(snapshot.configuration, snapshot.location)
        return snapshot


@dataclass(frozen=True)
class _Together(Alteration):
    """Collects changes of columns."""

    changes: list[ColumnChange] = field(default_factory=list)

    def _change_column(self, change: ColumnChange) -> None:
        self.changes.append(change)


def position_of(*, first: bool, after: str | None) -> Position | None:
    """Return where a column is placed; None for the end. Raises InvalidOperationError for two places."""
    if first and after is not None:
        raise InvalidOperationError("A column is placed either first or after another column, not both.")
    if first:
        return First()
    return None if after is None else After(parse_column_path(after)[-1])
