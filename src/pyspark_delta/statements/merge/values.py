"""The columns that the clauses of a MERGE give values to, the same for every engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark_delta.engines.row_changes import RowAction
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.name_resolution import suggestion
from pyspark_delta.protocol.rows import ComputedColumn, ComputedKind
from pyspark_delta.schema.types import StructType
from pyspark_delta.statements.assignments import check_no_identity
from pyspark_delta.statements.merge.clauses import Clause


def columns_from_source(
    schema: StructType, source: StructType, clause: Clause, computed: Mapping[str, ComputedColumn], *, evolves: bool
) -> tuple[str, ...]:
    """Return the columns of the table that a clause for all columns sets to those of the source, by name.

    The others are the columns `computed` by the table, and with `evolves` those that the source lacks. Raises
    InvalidOperationError for other columns that the source lacks, or has twice.
    """
    names = [name.casefold() for name in source.names]
    found = []
    for field in schema:
        count = names.count(field.name.casefold())
        if count == 1:
            found.append(field.name)
        elif field.name not in computed and (count or not evolves):
            raise InvalidOperationError(
                f"{clause.name} * sets every column to the source column of the same name, but the source has no "
                f"column '{field.name}', or several. {suggestion((field.name,), source)} Set the columns "
                "one by one, or add the column to the source. With withSchemaEvolution(), an update does not "
                "change columns that the source lacks, and an insert gives them their default or null.",
                error_class="DELTA_MERGE_UNRESOLVED_EXPRESSION",
                sqlstate="42601",
                column=field.name,
            )
    return tuple(found)


def check_identity_values(
    schema: StructType, computed: Mapping[str, ComputedColumn], clause: Clause, paths: Iterable[tuple[str, ...]]
) -> None:
    """Raise InvalidOperationError if a clause gives values to an identity column that it may not set."""
    paths = list(paths)
    if clause.action is RowAction.UPDATE:
        check_no_identity(schema, dict.fromkeys(paths), clause.name)
        return
    for path in paths:
        column = computed.get(path[0])
        if column is not None and column.kind is ComputedKind.IDENTITY_ALWAYS:
            raise InvalidOperationError(
                f"{clause.name} gives values to the column '{column.name}', which is GENERATED ALWAYS AS IDENTITY: "
                "only the table assigns its values. Leave it out.",
                error_class="DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
                sqlstate="42808",
                column=column.name,
            )
