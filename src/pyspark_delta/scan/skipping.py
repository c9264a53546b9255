"""Split a predicate on rows for file skipping: conditions on partition values, on statistics, and the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pyspark_delta.expressions.name_resolution import find_fields, is_collated
from pyspark_delta.expressions.normal import negation_normal
from pyspark_delta.expressions.text import columns_of, conjuncts, is_opaque
from pyspark_delta.expressions.tree import (
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    StartsWith,
    all_of,
    replace_columns,
)
from pyspark_delta.log.request import PARTITION_VALUES
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.bounds import NEVER, Rewriter, StatisticsColumn, conjunction
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.types import BOOLEAN, DOUBLE, StructField, StructType

PREFIX_LENGTH_PROPERTY = "delta.dataSkippingStringPrefixLength"
DEFAULT_PREFIX_LENGTH = 32
TYPE_CHANGES_KEY = "delta.typeChanges"

_TRUE = Literal(True, BOOLEAN)


class Split(NamedTuple):
    """The parts of a predicate; None if a part has no condition.

    A file is dropped if `partition` or `stats` is definitely FALSE for it. `partition` is over the partition columns,
    by physical name and typed; `stats` over `minValues`, `maxValues`, `nullCount` (and the physical path),
    `numRecords`, and `partitionValues` (and the physical name) if an OR joins both kinds. `residual` is the condition
    that must still be checked on the rows of the kept files, over logical columns.
    """

    partition: Expression | None
    stats: Expression | None
    residual: Expression | None


@dataclass(frozen=True, slots=True)
class Skipping:
    """A split predicate with its explanation: the conditions behind each part, and why others were not used."""

    split: Split
    partition_conditions: tuple[Expression, ...]
    stats_conditions: tuple[Expression, ...]
    reasons: tuple[str, ...]


def split(predicate: Expression | None, configuration: TableConfiguration) -> Split:
    """Split a bound predicate on logical columns for a table (see `Split`)."""
    return plan_skipping(predicate, configuration).split


def plan_skipping(predicate: Expression | None, configuration: TableConfiguration) -> Skipping:
    """Split a predicate and keep the reasons."""
    if predicate is None:
        return Skipping(Split(None, None, None), (), (), ())
    partitions = _partition_columns(configuration)
    exact: list[Expression] = []
    rest: list[Expression] = []
    for condition in conjuncts(predicate):
        if isinstance(condition, Literal):
            if condition.value is not True:
                return Skipping(Split(NEVER, None, predicate), (condition,), (), ())
        elif _is_decided(condition, partitions):
            exact.append(condition)
        else:
            rest.append(condition)
    partition_parts = [_definite(_physical(condition, partitions)) for condition in exact]
    partly = [(c, _weakened(negation_normal(c), partitions)) for c in rest] if partitions else []
    partition_parts += [part for _, part in partly if part is not None]
    mixed = {path: Column((PARTITION_VALUES, *column.path), column.type) for path, column in partitions.items()}
    rewriter = Rewriter(
        _statistics_columns(configuration), _prefix_length(configuration), lambda c: _on_partition_values(c, mixed)
    )
    rewritten = rewriter.rewrite(rest)
    return Skipping(
        Split(all_of(*partition_parts), conjunction(rewritten), all_of(*rest)),
        (*exact, *(condition for condition, part in partly if part is not None)),
        tuple(condition for condition, part in zip(rest, rewritten, strict=True) if part is not None),
        (*_partition_reasons(predicate, configuration), *rewriter.reasons),
    )


# --------------------------------------------------------------------------------------------------- partitions
def _partition_columns(configuration: TableConfiguration) -> dict[tuple[str, ...], Column]:
    """Return the partition columns by logical path, as physical columns; collated ones are left out."""
    mode = mapping_mode(configuration)
    found: dict[tuple[str, ...], Column] = {}
    for name in configuration.partition_columns:
        f = configuration.schema.find(name)
        if f is not None and not is_collated([f]):
            found[(f.name,)] = Column((physical_field(f, mode).name,), f.type)
    return found


def _is_decided(condition: Expression, partitions: Mapping[tuple[str, ...], Column]) -> bool:
    if not partitions:
        return False
    columns = columns_of(condition)
    return bool(columns) and all(c.path in partitions for c in columns) and not is_opaque(condition)


def _definite(condition: Expression) -> Expression:
    """Replace an unknown condition by FALSE: the file is dropped, as no row in it meets the condition."""
    match condition:
        case Comparison("<=>", _, _) | IsNull() | Not(IsNull()):
            return condition
        case Comparison(_, Column() as column, Literal(value, _)) if value is not None:
            return And((condition, Not(IsNull(column))))
        case In(Column() as column, values) if all(value.value is not None for value in values):
            return And((condition, Not(IsNull(column))))
        case StartsWith(Column() as column, _):
            return And((condition, Not(IsNull(column))))
    return Comparison("<=>", condition, _TRUE)


def _weakened(condition: Expression, partitions: Mapping[tuple[str, ...], Column]) -> Expression | None:
    """Return the condition on partition values alone for a condition in negation normal form; None if there is none."""
    match condition:
        case And(operands):
            return all_of(*(_weakened(o, partitions) for o in operands))
        case Or(operands):
            parts = [_weakened(o, partitions) for o in operands]
            known = [part for part in parts if part is not None]
            return Or(tuple(known)) if len(known) == len(parts) else None
    return _on_partition_values(condition, partitions)


def _on_partition_values(condition: Expression, partitions: Mapping[tuple[str, ...], Column]) -> Expression | None:
    """Return a condition on partition columns alone over the given form of them; None for any other."""
    return _definite(_physical(condition, partitions)) if _is_decided(condition, partitions) else None


def _physical(condition: Expression, columns: Mapping[tuple[str, ...], Column]) -> Expression:
    return replace_columns(condition, lambda column: columns[column.path])


def _partition_reasons(predicate: Expression, configuration: TableConfiguration) -> list[str]:
    reasons: list[str] = []
    for column in columns_of(predicate):
        fields = find_fields(column.path, configuration.schema)
        if fields and fields[0].name in configuration.partition_columns and is_collated(fields):
            reasons.append(f"the partition column '{fields[0].name}' has a collation")
    return reasons


# --------------------------------------------------------------------------------------------------- statistics
def _statistics_columns(configuration: TableConfiguration) -> dict[tuple[str, ...], StatisticsColumn]:
    """Return every column that may have statistics, nested fields too, by logical path (C407, C414)."""
    mode = mapping_mode(configuration)
    partitions = {name.casefold() for name in configuration.partition_columns}
    found: dict[tuple[str, ...], StatisticsColumn] = {}

    def visit(f: StructField, physical: StructField, above: tuple[StructField, ...], path: tuple[str, ...]) -> None:
        chain, stored = (*above, f), (*path, physical.name)
        found[tuple(x.name for x in chain)] = StatisticsColumn(stored, _unusable(chain))
        if isinstance(f.type, StructType) and isinstance(physical.type, StructType) and f.type.annotation is None:
            for inner, inner_physical in zip(f.type, physical.type, strict=True):
                visit(inner, inner_physical, chain, stored)

    for f in configuration.schema:
        if f.name.casefold() not in partitions:
            visit(f, physical_field(f, mode), (), ())
    return found


def _unusable(chain: tuple[StructField, ...]) -> str:
    if is_collated(chain):
        return "has a collation, which orders strings differently from its bounds"
    changes = chain[-1].metadata.get(TYPE_CHANGES_KEY)
    if chain[-1].type == DOUBLE and changes and any(change.get("fromType") == "float" for change in changes):
        return "was a float, and the JSON of float bounds is not exact as a double"
    return ""


def _prefix_length(configuration: TableConfiguration) -> int:
    text = configuration.properties.get(PREFIX_LENGTH_PROPERTY, "")
    own = int(text) if text.strip().isdecimal() else DEFAULT_PREFIX_LENGTH
    return max(min(own, DEFAULT_PREFIX_LENGTH), 1)
