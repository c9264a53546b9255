"""allowColumnDefaults: columns have a default for rows without a value (Default Columns; C391-C394)."""

from __future__ import annotations

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.references import referenced_columns
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature, any_field_has
from pyspark_delta.protocol.rows import ComputedColumn, ComputedKind
from pyspark_delta.schema.declaration_keys import CURRENT_DEFAULT


class AllowColumnDefaults(TableFeature):
    name = "allowColumnDefaults"
    declaration_check = "P07"
    KEY = CURRENT_DEFAULT

    def uses(self, configuration: TableConfiguration) -> bool:
        return any_field_has(configuration, self.KEY)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def validate(self, configuration: TableConfiguration) -> None:
        """Check that defaults are SQL that refers to no column (C391)."""
        for field in configuration.schema:
            text = field.metadata.get(self.KEY)
            if isinstance(text, str) and (named := referenced_columns(text)):
                raise InvalidOperationError(
                    f"The default of the column '{field.name}' is {text}, which refers to '{'.'.join(named[0])}'. "
                    "A default is a constant, or an expression without columns.",
                    error_class="INVALID_DEFAULT_VALUE.NOT_CONSTANT",
                    column=field.name,
                )

    def computed_columns(self, configuration: TableConfiguration) -> tuple[ComputedColumn, ...]:
        """Return the columns with a default, which applies to rows that lack the column; null is a value (C392)."""
        return tuple(
            ComputedColumn(field.name, ComputedKind.DEFAULT, str(field.metadata[self.KEY]))
            for field in configuration.schema
            if self.KEY in field.metadata
        )


FEATURE = AllowColumnDefaults()
