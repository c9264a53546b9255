"""SYNC IDENTITY: the high-water marks of identity columns follow the values that the rows have (C397)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.name_resolution import suggestion
from pyspark_delta.protocol.draft import CommitDraft, Operation, ReadSet
from pyspark_delta.protocol.identity import move_marks
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.schema.declaration_keys import IDENTITY_MARK, IDENTITY_STEP
from pyspark_delta.schema.json import dump_json, type_to_json
from pyspark_delta.schema.types import StructField
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of

_REPAIR = Operation("SYNC IDENTITY")


def identity_field(snapshot: Snapshot, column: tuple[str, ...]) -> StructField:
    """Return the identity column of a name. Raises InvalidOperationError for any other column."""
    field = snapshot.schema.find(column[0]) if len(column) == 1 else None
    if field is None or IDENTITY_STEP not in field.metadata:
        name = column_path_text(column)
        what = f"There is no column '{name}'" if field is None else f"The column '{name}' is not an identity column"
        hint = suggestion(column, snapshot.schema) if field is None else "SYNC IDENTITY takes identity columns only."
        raise InvalidOperationError(
            f"{what} in '{snapshot.location}'. {hint}",
            error_class="DELTA_IDENTITY_ALTER_COLUMN_NOT_IDENTITY",
            column=name,
        )
    return field


def counts_up(field: StructField) -> bool:
    """Return True if the values of an identity column grow: their mark is then the largest one."""
    return bool(field.metadata[IDENTITY_STEP] > 0)


def sync_identity(snapshot: Snapshot, field: StructField, mark: int, engine_info: str) -> None:
    """Advance the high-water mark of a column to a value of the rows of a snapshot. Raises as `commit_marks`.

    As in delta-spark, the history has a change of the column, which is shown without its mark.
    """
    described = {
        "name": field.name,
        "type": type_to_json(field.type),
        "nullable": field.nullable,
        "metadata": {key: value for key, value in field.metadata.items() if key != IDENTITY_MARK},
    }
    operation = Operation("CHANGE COLUMN", {"column": dump_json(described).decode()})
    commit_marks(snapshot, {field.name: mark}, engine_info, operation)


def commit_marks(
    snapshot: Snapshot, marks: Mapping[str, int], engine_info: str, operation: Operation = _REPAIR
) -> bool:
    """Advance high-water marks to values of the rows of a snapshot, by column; False if none is beyond its mark.

    Raises CommitConflictError if other rows are committed meanwhile.
    """
    metadata = move_marks(snapshot.configuration, marks)
    if metadata is None:
        return False
    draft = CommitDraft(
        operation=operation,
        metadata=metadata,
        data_change=False,
        reads=ReadSet(whole_table=True),
        engine_info=engine_info,
    )
    commit_draft(draft, state_of(snapshot))
    return True
