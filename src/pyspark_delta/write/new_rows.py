"""How new rows get the columns of a table, and the conditions that they must meet; the same for every engine.

An engine casts and fills the given columns, computes the others, and checks the rows. Empty texts in partition columns
become null before anything is computed from them or checked (C416).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark_delta.data.writer import WriteContext
from pyspark_delta.errors import ConstraintViolationError, InvalidOperationError
from pyspark_delta.protocol.rows import CheckKind, ComputedColumn, ComputedKind, RowCheck
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.schema.partition_values import has_empty_values
from pyspark_delta.schema.store_assignment import Cast, cast_of
from pyspark_delta.schema.text_lengths import padded_length, padded_text
from pyspark_delta.schema.types import BINARY, StructField, StructType
from pyspark_delta.transaction.row_rules import RowRules

_IDENTITY = (ComputedKind.IDENTITY_ALWAYS, ComputedKind.IDENTITY_BY_DEFAULT)


@dataclass(frozen=True, slots=True)
class NewRows:
    """What an engine does with rows of the schema `data` that are written to a table.

    `absent` are the computed columns that the rows lack, by name; of these, `numbered` are identity columns. `narrowed`
    are columns whose values may not fit the type of the table. `checks` are the conditions on the finished rows.
    """

    data: StructType
    absent: Mapping[str, ComputedColumn]
    numbered: tuple[ComputedColumn, ...]
    narrowed: tuple[StructField, ...]
    checks: tuple[RowCheck, ...]


def plan_new_rows(data: StructType, context: WriteContext, rules: RowRules) -> NewRows:
    """Return how rows of the schema `data` become rows of the table.

    Raises InvalidOperationError for values given to a column that only the table numbers, and ConstraintViolationError
    if the rows lack a NOT NULL column.
    """
    table = context.schema
    computed = computed_columns(rules, table)
    _check_given(data, table, computed)
    absent = {name: column for name, column in computed.items() if data.find(name) is None}
    numbered = tuple(column for column in absent.values() if column.kind in _IDENTITY)
    narrowed = tuple(field for field in table if _is_narrowed(data, field))
    given = [column for name, column in computed.items() if name not in absent]
    return NewRows(data, absent, numbered, narrowed, row_checks(rules, given, numbered, context))


def computed_columns(rules: RowRules, table: StructType) -> dict[str, ComputedColumn]:
    """Return the computed columns that the table has, by name."""
    return {column.name: column for column in rules.computed if table.find(column.name) is not None}


def row_checks(
    rules: RowRules, given: Sequence[ComputedColumn], numbered: Sequence[ComputedColumn], context: WriteContext
) -> tuple[RowCheck, ...]:
    """Return the conditions on finished rows: of the table, and of the computed columns.

    Computed columns whose values are `given` must have the value of their expression. Those `numbered` by this write
    are null if the number is beyond the 64 bits of the type (C400).
    """
    ranges = [RowCheck(column.name, f"{quoted(column.name)} IS NOT NULL", CheckKind.RANGE) for column in numbered]
    empty = empty_partition_values(context)
    generated = []
    for column in given:
        if column.kind is ComputedKind.GENERATED:
            expected = f"({column.expression})"
            if column.name in empty:  # an empty result is null in a partition column
                expected = f"nullif({expected}, {empty[column.name]})"
            field = context.schema.find(column.name)
            length = None if field is None else padded_length(field)
            expected = expected if length is None else padded_text(expected, length)
            generated.append(RowCheck(column.name, f"{quoted(column.name)} <=> {expected}", CheckKind.GENERATED))
    return (*ranges, *rules.checks, *generated)


def empty_partition_values(context: WriteContext) -> dict[str, str]:
    """Return the partition columns whose values may be empty, with the empty value in SQL.

    The log stores empty values as null.
    """
    fields = (context.schema.find(name) for name in context.partition_columns)
    found = (field for field in fields if field is not None and has_empty_values(field.type))
    return {field.name: "X''" if field.type == BINARY else "''" for field in found}


def _check_given(data: StructType, table: StructType, computed: Mapping[str, ComputedColumn]) -> None:
    for field in table:
        given, column = data.find(field.name), computed.get(field.name)
        if given is not None and column is not None and column.kind is ComputedKind.IDENTITY_ALWAYS:
            raise InvalidOperationError(
                f"The rows have values for the column '{field.name}', which is GENERATED ALWAYS AS IDENTITY: only the "
                f"table assigns its values. Leave the column out, for example with df.drop('{field.name}').",
                error_class="DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
                sqlstate="42808",
                column=field.name,
            )
        if given is None and column is None and not field.nullable:
            raise ConstraintViolationError(
                f"The column '{field.name}' is NOT NULL, but the rows to write do not have it. Nothing was committed. "
                "Add the column with values.",
                error_class="DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
                sqlstate="23502",
                column=field.name,
            )


def _is_narrowed(data: StructType, field: StructField) -> bool:
    source = data.find(field.name)
    return source is not None and cast_of(source.type, field.type) is Cast.CHECK
