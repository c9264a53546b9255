"""Reads of a transaction that changes the schema: which of its conditions mean the same before and after the change."""

from __future__ import annotations

from dataclasses import replace

from pyspark_delta.expressions.name_resolution import find_fields
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.expressions.tree import Column, Expression
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import ReadSet
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field


def reads_across(reads: ReadSet, before: TableConfiguration, after: TableConfiguration) -> ReadSet:
    """Return reads for the conflict check, which evaluates conditions in the schema of the base.

    Some conditions are bound to the schema `before`, others to the schema `after` the changes of the transaction. If
    one names a column that is not the same in both, the transaction depends on the whole table.
    """
    if before.metadata.schema_string == after.metadata.schema_string:
        return reads
    if all(_is_same(one, before, after) for one in reads.predicates):
        return reads
    return replace(reads, whole_table=True, predicates=())


def _is_same(predicate: Expression, before: TableConfiguration, after: TableConfiguration) -> bool:
    return all(_stored(c, before) == _stored(c, after) is not None for c in columns_of(predicate))


def _stored(column: Column, configuration: TableConfiguration) -> tuple[object, ...] | None:
    """Return the physical names on the path of a column, and its type; None if the schema has no such column."""
    fields, mode = find_fields(column.path, configuration.schema), mapping_mode(configuration)
    if fields is None:
        return None
    return *(physical_field(field, mode).name for field in fields), fields[-1].type
