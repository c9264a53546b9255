"""Constraints and computed columns of a table, from its schema and all its features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark_delta.features import finish_order
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.expressions import check_safe
from pyspark_delta.protocol.rows import CheckKind, ComputedColumn, ComputedKind, RowCheck
from pyspark_delta.schema.text_lengths import length_condition


@dataclass(frozen=True, slots=True)
class RowRules:
    """The constraints of new rows, and the columns whose values the writer computes.

    NOT NULL is not among them: it is part of the schema, and the file writer checks it.
    """

    checks: tuple[RowCheck, ...] = ()
    computed: tuple[ComputedColumn, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.checks or self.computed)


def row_rules(configuration: TableConfiguration) -> RowRules:
    """Return the rules of the schema, then those of every supported feature, with SQL that is safe to evaluate.

    Raises InvalidTableError, and InvalidOperationError for a rule whose text is not allowed (`check_safe`).
    """
    rules = _declared(configuration)
    for rule in _texts(rules):
        check_safe(rule, configuration.schema)
    lengths = tuple(
        RowCheck(field.name, condition, CheckKind.LENGTH)
        for field in configuration.schema
        if (condition := length_condition(field))
    )
    return RowRules(checks=lengths + rules.checks, computed=rules.computed)


def check_declared(configuration: TableConfiguration, before: TableConfiguration | None) -> None:
    """Check the SQL of rules that a change adds or edits. Other rules are not checked, so that they can be dropped.

    Raises InvalidOperationError for a rule whose text is not allowed.
    """
    known = set() if before is None else set(_texts(_declared(before)))
    for rule in _texts(_declared(configuration)):
        if rule not in known:
            check_safe(rule, configuration.schema)


def _texts(rules: RowRules) -> Iterator[RowCheck | ComputedColumn]:
    """Yield the rules that are SQL text."""
    yield from rules.checks
    yield from (column for column in rules.computed if column.kind in (ComputedKind.GENERATED, ComputedKind.DEFAULT))


def _declared(configuration: TableConfiguration) -> RowRules:
    features = finish_order(configuration)
    return RowRules(
        checks=tuple(check for f in features for check in f.row_checks(configuration)),
        computed=tuple(column for f in features for column in f.computed_columns(configuration)),
    )
