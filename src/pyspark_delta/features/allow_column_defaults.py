"""allowColumnDefaults: columns have a default for rows that give no value (Default Columns; C391-C394)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature, any_field_has


class AllowColumnDefaults(TableFeature):
    name = "allowColumnDefaults"
    KEY = "CURRENT_DEFAULT"
    write_obstacle = (
        "A column has a default that rows without a value would have to be given. Write it with another engine for now."
    )

    def is_active(self, configuration: TableConfiguration) -> bool:
        return any_field_has(configuration, self.KEY)


FEATURE = AllowColumnDefaults()
