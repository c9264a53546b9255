"""identityColumns: columns that number new rows (Identity Columns; C395-C401)."""

from __future__ import annotations

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature, any_field_has
from pyspark_delta.schema.types import LONG, StructField


class IdentityColumns(TableFeature):
    name = "identityColumns"
    KEYS = (
        "delta.identity.start",
        "delta.identity.step",
        "delta.identity.highWaterMark",
        "delta.identity.allowExplicitInsert",
    )
    legacy_writer_version = 6
    harmless_field_keys = ("delta.identity.highWaterMark",)
    write_obstacle = "An identity column would have to number the new rows. Write it with another engine for now."

    def is_active(self, configuration: TableConfiguration) -> bool:
        return any_field_has(configuration, *self.KEYS)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.is_active(configuration)

    def validate(self, configuration: TableConfiguration) -> None:
        """Identity columns are of type long, step forwards or backwards, and partition nothing (C395)."""
        for field in configuration.schema:
            if not any(key in field.metadata for key in self.KEYS):
                continue
            if field.type != LONG:
                raise _illegal(field, f"is of type {field.type}, not long", "UNSUPPORTED_DATA_TYPE")
            if field.metadata.get("delta.identity.step") == 0:
                raise _illegal(field, "would step by 0", "ILLEGAL_STEP")
            if field.name in configuration.partition_columns:
                raise _illegal(field, "is a partition column", "PARTITION_NOT_SUPPORTED")


def _illegal(field: StructField, what: str, kind: str) -> InvalidOperationError:
    return InvalidOperationError(
        f"The identity column '{field.name}' {what}. Declare it as a long that counts by a step other than 0.",
        error_class=f"DELTA_IDENTITY_COLUMNS_{kind}",
        column=field.name,
    )


FEATURE = IdentityColumns()
