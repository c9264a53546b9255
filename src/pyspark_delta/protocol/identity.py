"""High-water marks of identity columns: the last assigned value, in the metadata of the field (C397).

A commit that assigns values advances the high-water marks and changes nothing else in its metadata action.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark_delta.actions.model import Metadata
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.schema.declaration_keys import IDENTITY_MARK, IDENTITY_START, IDENTITY_STEP
from pyspark_delta.schema.json import schema_to_json
from pyspark_delta.schema.types import StructField, StructType


def next_number(field: StructField) -> int:
    """Return the next value of an identity column after the high-water mark: the next `start + k * step` (C399)."""
    start, step, mark = field.metadata[IDENTITY_START], field.metadata[IDENTITY_STEP], field.metadata.get(IDENTITY_MARK)
    return int(start if mark is None else start + max(0, (mark - start) // step + 1) * step)


def move_marks(configuration: TableConfiguration, marks: Mapping[str, int]) -> Metadata | None:
    """Return the metadata with these high-water marks, by column; None if none is beyond the current one."""
    fields, moved = [], False
    for field in configuration.schema:
        mark = marks.get(field.name)
        if mark is not None and _is_beyond(mark, field):
            field = replace(field, metadata={**field.metadata, IDENTITY_MARK: mark})
            moved = True
        fields.append(field)
    if not moved:
        return None
    return replace(configuration.metadata, schema_string=schema_to_json(StructType(tuple(fields))))


def differ_in_marks_only(before: TableConfiguration, after: TableConfiguration) -> bool:
    """True if the metadata differ only in the high-water marks of identity columns."""
    return (
        before.metadata != after.metadata
        and before.protocol == after.protocol
        and _without_marks(before) == _without_marks(after)
    )


def _is_beyond(mark: int, field: StructField) -> bool:
    known = field.metadata.get(IDENTITY_MARK)
    return known is None or (mark - known) * field.metadata[IDENTITY_STEP] > 0


def _without_marks(configuration: TableConfiguration) -> tuple[Metadata, StructType]:
    plain = StructType(
        tuple(
            replace(field, metadata={key: value for key, value in field.metadata.items() if key != IDENTITY_MARK})
            for field in configuration.schema
        )
    )
    return replace(configuration.metadata, schema_string=""), plain
