"""allowColumnDefaults: columns have a default for rows that give no value (Default Columns; C391-C394)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature, any_field_has
from pyspark_delta.protocol.rows import ComputedColumn, ComputedKind


class AllowColumnDefaults(TableFeature):
    name = "allowColumnDefaults"
    KEY = "CURRENT_DEFAULT"

    def is_active(self, configuration: TableConfiguration) -> bool:
        return any_field_has(configuration, self.KEY)

    def computed_columns(self, configuration: TableConfiguration) -> tuple[ComputedColumn, ...]:
        """The columns with a default, which counts for rows that lack the column; null is a value (C392)."""
        return tuple(
            ComputedColumn(field.name, ComputedKind.DEFAULT, str(field.metadata[self.KEY]))
            for field in configuration.schema
            if self.KEY in field.metadata
        )


FEATURE = AllowColumnDefaults()
