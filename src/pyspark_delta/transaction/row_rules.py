"""What a table asks of new rows, of all its features together."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_delta.features import finish_order
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.rows import CheckKind, ComputedColumn, RowCheck
from pyspark_delta.schema.text_lengths import length_condition


@dataclass(frozen=True, slots=True)
class RowRules:
    """The conditions that new rows must meet, and the columns whose values the writer computes.

    NOT NULL is not among them: the schema says it, and the writer of the files checks it.
    """

    checks: tuple[RowCheck, ...] = ()
    computed: tuple[ComputedColumn, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.checks or self.computed)


def row_rules(configuration: TableConfiguration) -> RowRules:
    """The rules of the schema, then those of every supported feature. Raises InvalidTableError."""
    lengths = tuple(
        RowCheck(field.name, condition, CheckKind.LENGTH)
        for field in configuration.schema
        if (condition := length_condition(field))
    )
    features = finish_order(configuration)
    return RowRules(
        checks=lengths + tuple(check for f in features for check in f.row_checks(configuration)),
        computed=tuple(column for f in features for column in f.computed_columns(configuration)),
    )
