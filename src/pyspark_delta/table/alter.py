"""`Table.alter()`: changes to columns, constraints, properties and clustering. Each one is a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import replace

from pyspark_delta.ddl.alter import Alteration
from pyspark_delta.display import html_facts
from pyspark_delta.engines.arrow.existing_rows import check_existing_rows
from pyspark_delta.progress import ShowProgress, operation
from pyspark_delta.protocol.rows import RowCheck
from pyspark_delta.schema.column_definitions import parse_columns
from pyspark_delta.schema.column_paths import parse_column_path, parse_name
from pyspark_delta.schema.types import DataType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.table.arguments import check_arguments
from pyspark_delta.table.creation import field_of
from pyspark_delta.table.refreshing import show_change


class TableAlter:
    """Changes to what a table declares. Each method makes one commit and returns this object for the next.

    Types are SQL text such as `decimal(10, 2)` or types of a schema. Columns are named as in SQL: nested ones by dots,
    with `element`, `key` and `value` inside arrays and maps, names that hold dots between backticks. Every method
    raises InvalidOperationError, before anything is written, for a change that the table does not allow, and
    CommitConflictError if a concurrent commit changed the table.

    >>> table.alter().add_column("price", "decimal(10,2)").add_constraint("positive", "price > 0")  # doctest: +SKIP
    """

    def __init__(self, location: str, changes: Alteration, refresh: Callable[[], object]) -> None:
        self._location, self._changes, self._refresh = location, changes, refresh

    @check_arguments
    def add_column(
        self,
        name: str,
        data_type: str | DataType,
        *,
        comment: str | None = None,
        first: bool = False,
        after: str | None = None,
    ) -> TableAlter:
        """Add a column, null in all existing rows. It is the last of its struct unless `first` or `after` is given."""
        *parent, last = parse_column_path(name)
        field = field_of(last, data_type)
        if comment is not None:
            field = replace(field, metadata={**field.metadata, "comment": comment})
        self._changes.add_column(parent, field, first=first, after=after)
        return self._done()

    @check_arguments
    def add_columns(self, definitions: str) -> TableAlter:
        """Add top-level columns in one commit, from definitions such as `a INT, b STRING COMMENT 'text'`."""
        self._changes.add_columns(parse_columns(definitions).fields)
        return self._done()

    @check_arguments
    def drop_columns(self, *names: str) -> TableAlter:
        """Drop columns. The table must use column mapping (delta.columnMapping.mode)."""
        self._changes.drop_columns(names)
        return self._done()

    @check_arguments
    def replace_columns(self, definitions: str) -> TableAlter:
        """Set all columns in one commit, from definitions such as `b STRING COMMENT 'text', a BIGINT`.

        Columns are matched by name: this sets their order, comments and wider types, and adds columns that are new.
        Columns that are left out are dropped, which needs column mapping. A struct cannot gain and lose columns at
        once.
        """
        self._changes.replace_columns(parse_columns(definitions).fields)
        return self._done()

    @check_arguments
    def rename_column(self, name: str, new_name: str) -> TableAlter:
        """Rename a column without moving it. `new_name` may be in backticks. The table must use column mapping."""
        self._changes.rename_column(name, parse_name(new_name))
        return self._done()

    @check_arguments
    def move_column(self, name: str, *, first: bool = False, after: str | None = None) -> TableAlter:
        """Move a column within its struct."""
        self._changes.move_column(name, first=first, after=after)
        return self._done()

    @check_arguments
    def change_type(self, name: str, data_type: str | DataType) -> TableAlter:
        """Widen the type of a column. This needs the property delta.enableTypeWidening.

        A `char` or `varchar` can become a longer `varchar`, or a string, without it.
        """
        self._changes.change_type(name, field_of(name, data_type))
        return self._done()

    @check_arguments
    def set_column_comment(self, name: str, comment: str | None) -> TableAlter:
        """Set the comment of a column; None removes it."""
        self._changes.set_column_comment(name, comment)
        return self._done()

    @check_arguments
    def set_not_null(self, name: str) -> TableAlter:
        """Forbid null in a column. Raises ConstraintViolationError if rows have it."""
        self._changes.set_nullable(name, False)
        return self._done()

    @check_arguments
    def drop_not_null(self, name: str) -> TableAlter:
        """Allow null in a column."""
        self._changes.set_nullable(name, True)
        return self._done()

    @check_arguments
    def set_default(self, name: str, expression: str) -> TableAlter:
        """Set the default of a column, as SQL, for new rows that do not give it."""
        self._changes.set_default(name, expression)
        return self._done()

    @check_arguments
    def drop_default(self, name: str) -> TableAlter:
        """Remove the default of a column: new rows that do not give it have null."""
        self._changes.set_default(name, None)
        return self._done()

    @check_arguments
    def add_constraint(self, name: str, condition: str) -> TableAlter:
        """Add a CHECK constraint. Raises ConstraintViolationError, with examples, if existing rows break it."""
        self._changes.add_constraint(name, condition)
        return self._done()

    @check_arguments
    def drop_constraint(self, name: str, *, if_exists: bool = False) -> TableAlter:
        """Drop a CHECK constraint."""
        self._changes.drop_constraint(name, if_exists=if_exists)
        return self._done()

    @check_arguments
    def set_properties(self, properties: Mapping[str, object]) -> TableAlter:
        """Set table properties. This enables the table features that they need.

        Enabling row tracking on a table with files takes several commits, which first assign row ids to the files.
        """
        self._changes.set_properties(properties)
        return self._done()

    @check_arguments
    def unset_properties(self, *names: str, if_exists: bool = False) -> TableAlter:
        """Reset properties to their defaults."""
        self._changes.unset_properties(names, if_exists=if_exists)
        return self._done()

    @check_arguments
    def set_comment(self, comment: str | None) -> TableAlter:
        """Set the description of the table; None removes it."""
        self._changes.set_comment(comment)
        return self._done()

    @check_arguments
    def cluster_by(self, *columns: str) -> TableAlter:
        """Set the columns by which files are clustered; no columns ends clustering.

        Files that have no statistics for a new clustering column get them in the same commit; for this they are opened.
        """
        self._changes.cluster_by(columns)
        return self._done()

    @contextmanager
    def _together(self) -> Iterator[TableAlter]:
        """Yield an object whose changes of columns become one commit at the end of the block."""
        with self._changes.together() as changes:
            collecting = copy(self)
            collecting._changes, collecting._refresh = changes, lambda: None
            yield collecting
        show_change(self._refresh)

    def __repr__(self) -> str:
        return f"TableAlter({self._location!r})"

    def _repr_html_(self) -> str:
        return html_facts("TableAlter", {"location": self._location})

    def _done(self) -> TableAlter:
        show_change(self._refresh)
        return self


def alteration(latest: Callable[[], Snapshot], progress: ShowProgress = None) -> Alteration:
    """Return changes that are committed one by one, on the version that `latest` returns."""

    def check(snapshot: Snapshot, rule: RowCheck) -> None:
        with operation(progress):
            check_existing_rows(snapshot, rule)

    return Alteration(latest, check)
