"""generatedColumns: columns whose values an expression gives (Generated Columns; C389-C390)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature, any_field_has
from pyspark_delta.protocol.rows import ComputedColumn, ComputedKind


class GeneratedColumns(TableFeature):
    name = "generatedColumns"
    KEY = "delta.generationExpression"
    legacy_writer_version = 4

    def is_active(self, configuration: TableConfiguration) -> bool:
        return any_field_has(configuration, self.KEY)

    def computed_columns(self, configuration: TableConfiguration) -> tuple[ComputedColumn, ...]:
        """The generated columns: of every row, the value is that of the expression (C390)."""
        return tuple(
            ComputedColumn(field.name, ComputedKind.GENERATED, str(field.metadata[self.KEY]))
            for field in configuration.schema
            if self.KEY in field.metadata
        )


FEATURE = GeneratedColumns()
