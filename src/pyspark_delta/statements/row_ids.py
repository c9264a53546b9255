"""Row ids of the rows that a statement changes: the columns that store them, and the context of tasks."""

from __future__ import annotations

import random

from pyspark_delta.data.writer import WriteContext
from pyspark_delta.engines.row_changes import ChangeContext, RowAction
from pyspark_delta.protocol.properties import MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID
from pyspark_delta.schema.types import LONG, StructField, StructType
from pyspark_delta.statements.target import Target
from pyspark_delta.write.change_data import change_context
from pyspark_delta.write.written import with_columns

_PAIR_BITS = 62  # as good as unique, like the names of files; the numbers of all files of a statement follow it


def context_of(
    target: Target,
    data: WriteContext,
    actions: tuple[RowAction, ...],
    *,
    has_changes: bool,
    in_any_order: bool = False,
) -> ChangeContext:
    """Return the context of tasks for rows with all columns of the table, then the stored ids (C324, C326).

    An updated row keeps its id and gets the version of this commit, which files store as null.
    """
    schema = target.context.schema
    shown, stored = StructType(schema.fields), stored_ids(target) if target.has_row_ids else StructType(())
    if stored.fields:
        shown, data = StructType((*schema, *stored)), with_columns(data, stored)
    has_pairs = has_changes and target.in_transaction and RowAction.PREIMAGE in actions
    changes = change_context(target.context, pairs=has_pairs) if has_changes else None
    first_pair = random.getrandbits(_PAIR_BITS) if has_pairs else None
    return ChangeContext(actions, shown, data, changes, in_any_order, first_pair)


def stored_ids(target: Target) -> StructType:
    """Return the columns in which files store ids."""
    properties = target.configuration.properties
    names = (MATERIALIZED_ROW_ID.of(properties), MATERIALIZED_ROW_COMMIT_VERSION.of(properties))
    return StructType(tuple(StructField(name, LONG) for name in names if name is not None))
