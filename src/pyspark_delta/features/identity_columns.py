"""identityColumns: columns with generated, unique values for new rows (Identity Columns; C395-C401)."""

from __future__ import annotations

from pyspark_delta.errors import InvalidOperationError, InvalidTableError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature, any_field_has
from pyspark_delta.protocol.identity import next_number
from pyspark_delta.protocol.rows import ComputedColumn, ComputedKind
from pyspark_delta.schema.declaration_keys import (
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_MARK,
    IDENTITY_START,
    IDENTITY_STEP,
)
from pyspark_delta.schema.types import LONG, StructField


class IdentityColumns(TableFeature):
    name = "identityColumns"
    declaration_check = "P08"
    KEYS = (IDENTITY_START, IDENTITY_STEP, IDENTITY_MARK, IDENTITY_ALLOW_EXPLICIT_INSERT)
    legacy_writer_version = 6
    rebase_safe_field_keys = (IDENTITY_MARK,)

    def uses(self, configuration: TableConfiguration) -> bool:
        return any_field_has(configuration, *self.KEYS)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def validate(self, configuration: TableConfiguration) -> None:
        """Check that identity columns are longs, have a step other than 0, and are not partition columns (C395)."""
        for field in configuration.schema:
            if not any(key in field.metadata for key in self.KEYS):
                continue
            if field.type != LONG:
                raise _illegal(field, f"is of type {field.type}, not long", "UNSUPPORTED_DATA_TYPE")
            if field.metadata.get(IDENTITY_STEP) == 0:
                raise _illegal(field, "has the step 0", "ILLEGAL_STEP")
            if field.name in configuration.partition_columns:
                raise _illegal(field, "is a partition column", "PARTITION_NOT_SUPPORTED")

    def computed_columns(self, configuration: TableConfiguration) -> tuple[ComputedColumn, ...]:
        """Return the identity columns, each with the next value after its high-water mark (C399)."""
        return tuple(_computed(field) for field in configuration.schema if IDENTITY_START in field.metadata)


def _computed(field: StructField) -> ComputedColumn:
    _number(field, IDENTITY_START)
    if not (step := _number(field, IDENTITY_STEP)):
        raise InvalidTableError(
            f"The identity column '{field.name}' has the step 0, so it cannot generate values. Change the step with "
            "the engine that declared the column.",
            column=field.name,
        )
    if field.metadata.get(IDENTITY_MARK) is not None:
        _number(field, IDENTITY_MARK)
    explicit = field.metadata.get(IDENTITY_ALLOW_EXPLICIT_INSERT) is True
    kind = ComputedKind.IDENTITY_BY_DEFAULT if explicit else ComputedKind.IDENTITY_ALWAYS
    return ComputedColumn(field.name, kind, start=next_number(field), step=step)


def _number(field: StructField, key: str) -> int:
    value = field.metadata.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidTableError(
            f"{key} of the identity column '{field.name}' is {value!r}, not a number.", column=field.name
        )
    return value


def _illegal(field: StructField, what: str, kind: str) -> InvalidOperationError:
    return InvalidOperationError(
        f"The identity column '{field.name}' {what}. Declare it as a long with a step other than 0, outside of the "
        "partition columns.",
        error_class=f"DELTA_IDENTITY_COLUMNS_{kind}",
        column=field.name,
    )


FEATURE = IdentityColumns()
