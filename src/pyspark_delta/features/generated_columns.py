"""generatedColumns: columns with values computed by an expression (Generated Columns; C389-C390)."""

from __future__ import annotations

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.expressions import check_expression
from pyspark_delta.protocol.feature import TableFeature, any_field_has
from pyspark_delta.protocol.rows import ComputedColumn, ComputedKind
from pyspark_delta.schema.declaration_keys import GENERATION_EXPRESSION


class GeneratedColumns(TableFeature):
    name = "generatedColumns"
    declaration_check = "P07"
    KEY = GENERATION_EXPRESSION
    legacy_writer_version = 4

    def uses(self, configuration: TableConfiguration) -> bool:
        return any_field_has(configuration, self.KEY)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def validate(self, configuration: TableConfiguration) -> None:
        """Check that expressions are SQL over other columns that are not generated themselves."""
        generated = {f.name.casefold(): f for f in configuration.schema if self.KEY in f.metadata}
        for field in generated.values():
            what = f"The expression of the generated column '{field.name}'"
            for path in check_expression(field.metadata[self.KEY], configuration.schema, what):
                if path[0].casefold() in generated:
                    raise InvalidOperationError(
                        f"{what} names '{path[0]}', which is also generated. Repeat its expression instead.",
                        error_class="UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
                        column=field.name,
                    )

    def computed_columns(self, configuration: TableConfiguration) -> tuple[ComputedColumn, ...]:
        """Return the generated columns: in every row, the value is that of the expression (C390)."""
        return tuple(
            ComputedColumn(field.name, ComputedKind.GENERATED, str(field.metadata[self.KEY]))
            for field in configuration.schema
            if self.KEY in field.metadata
        )


FEATURE = GeneratedColumns()
