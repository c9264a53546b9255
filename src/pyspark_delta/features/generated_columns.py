"""generatedColumns: columns whose values an expression gives (Generated Columns; C389-C390)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature, any_field_has


class GeneratedColumns(TableFeature):
    name = "generatedColumns"
    KEY = "delta.generationExpression"
    legacy_writer_version = 4
    write_obstacle = (
        "A column is generated from others, and new rows would have to be computed. "
        "Write it with another engine for now."
    )

    def is_active(self, configuration: TableConfiguration) -> bool:
        return any_field_has(configuration, self.KEY)


FEATURE = GeneratedColumns()
