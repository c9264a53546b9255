"""Constraints and computed columns of a table, from its schema and all its features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark_delta.expressions.exact import exact_type
from pyspark_delta.features import finish_order
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.expressions import check_generated_type, check_safe
from pyspark_delta.protocol.rows import CheckKind, ComputedColumn, ComputedKind, RowCheck
from pyspark_delta.schema.column_paths import column_path_text, quoted
from pyspark_delta.schema.text_lengths import length_condition
from pyspark_delta.schema.types import StructType


@dataclass(frozen=True, slots=True)
class RowRules:
    """The constraints of new rows, and the columns whose values the writer computes.

    NOT NULL is part of the schema, and the file writer checks it. Among the rules are only conditions for structs that
    have NOT NULL members.
    """

    checks: tuple[RowCheck, ...] = ()
    computed: tuple[ComputedColumn, ...] = ()

    @property
    def defaults(self) -> dict[str, str]:
        """The defaults in SQL, by the names of their columns."""
        return {one.name: one.expression for one in self.computed if one.kind is ComputedKind.DEFAULT}

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
    structs = tuple(_struct_checks(configuration.schema))
    return RowRules(checks=lengths + structs + rules.checks, computed=rules.computed)


def _struct_checks(struct: StructType, path: tuple[str, ...] = (), *, can_be_null: bool = False) -> Iterator[RowCheck]:
    """Yield conditions for structs that a null would leave without their NOT NULL members.

    delta-spark refuses such a null, although a file could store it. Elements of arrays and maps may be null.
    """
    for field in struct:
        inner = field.type
        if not isinstance(inner, StructType) or inner.annotation is not None:
            continue
        at, nullable = (*path, field.name), can_be_null or field.nullable
        member = next((f.name for f in inner if not f.nullable), None)
        if nullable and member is not None:
            condition = f"{'.'.join(map(quoted, at))} IS NOT NULL"
            yield RowCheck(column_path_text((*at, member)), condition, CheckKind.NOT_NULL)
        yield from _struct_checks(inner, at, can_be_null=nullable)


def check_declared(configuration: TableConfiguration, before: TableConfiguration | None) -> None:
    """Check the SQL of rules that a change adds or edits. Other rules are not checked, so that they can be dropped.

    Raises InvalidOperationError for a rule whose text is not allowed, and for a generated column of another type than
    its expression.
    """
    known = set() if before is None else set(_texts(_declared(before)))
    for rule in _texts(_declared(configuration)):
        if rule not in known:
            check_safe(rule, configuration.schema)
            if rule.kind is ComputedKind.GENERATED:
                found = exact_type(rule.expression, configuration.schema)
                check_generated_type(rule.name, found, configuration.schema)


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
