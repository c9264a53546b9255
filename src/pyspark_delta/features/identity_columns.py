"""identityColumns: columns that number new rows (Identity Columns; C395-C401)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature, any_field_has


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


FEATURE = IdentityColumns()
