"""UPDATE of which Arrow computes the condition and all new values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_delta.expressions.columns import find_fields, is_collated, is_padded
from pyspark_delta.expressions.exact import exact_value, names_of_table
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.schema.types import VARIANT, VOID, DecimalType, PrimitiveType, StructField
from pyspark_delta.spark.engine.dml.arrow.changing import PlainChange
from pyspark_delta.spark.engine.dml.arrow.checks import bound_checks
from pyspark_delta.spark.engine.dml.changed import context_of
from pyspark_delta.spark.engine.dml.target import Target
from pyspark_delta.spark.engine.dml.task import RowAction
from pyspark_delta.spark.frames.column_text import value_text

if TYPE_CHECKING:
    from pyspark.sql import Column


def plain_update(target: Target, resolved: Mapping[tuple[str, ...], Column | str]) -> PlainChange | None:
    """New values by the path of their column, which Spark has analyzed, as Arrow computes them.

    None where a value, or what new rows must meet, is left to Spark.
    """
    checks = bound_checks(target)
    values = None if checks is None else _bound_values(target, resolved)
    if checks is None or values is None:
        return None
    actions = (RowAction.UPDATE, *([RowAction.PREIMAGE] if target.has_feed else []))
    context = context_of(target, target.context, actions, has_changes=target.has_feed)
    moves = not values.keys().isdisjoint(target.context.partition_columns)
    return PlainChange(replace(context, in_any_order=moves), target.context.schema, values, checks)


def _bound_values(target: Target, resolved: Mapping[tuple[str, ...], Column | str]) -> dict[str, Expression] | None:
    bound: dict[str, Expression] = {}
    for path, given in resolved.items():
        field = target.configuration.schema.find(path[0])
        value = None if len(path) > 1 or field is None else _bound_value(target, field, given)
        if value is None:
            return None
        bound[path[0]] = value
    return bound


def _bound_value(target: Target, field: StructField, given: Column | str) -> Expression | None:
    """A value of a column; None where it, or what the column makes of it, is left to Spark."""
    schema = target.configuration.schema
    text = value_text(target.empty(), given) if _is_simple(field) else None
    if text is None:
        return None
    value = exact_value(text, field.type, schema, names_of_table(schema, target.alias), target.time_zone)
    if value is None:
        return None
    used = [fields for column in columns_of(value) if (fields := find_fields(column.path, schema)) is not None]
    return None if any(is_padded(fields) or is_collated(fields) for fields in used) else value


def _is_simple(field: StructField) -> bool:
    """Whether its values are of a type without parts, and of no meaning beside it."""
    plain = isinstance(field.type, PrimitiveType | DecimalType) and field.type not in (VARIANT, VOID)
    return plain and field.type.annotation is None and not (is_padded([field]) or is_collated([field]))
