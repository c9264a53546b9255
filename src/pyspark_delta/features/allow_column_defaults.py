"""allowColumnDefaults: columns have a default for rows that give no value (Default Columns; C391-C394)."""

from __future__ import annotations

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.references import referenced_columns
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

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.is_active(configuration)

    def validate(self, configuration: TableConfiguration) -> None:
        """Defaults are SQL that names no column (C391)."""
        for field in configuration.schema:
            text = field.metadata.get(self.KEY)
            if isinstance(text, str) and (named := referenced_columns(text)):
                raise InvalidOperationError(
                    f"The default of the column '{field.name}' is {text}, which names '{'.'.join(named[0])}'. "
                    "A default is a constant, or computed from none of the columns.",
                    error_class="INVALID_DEFAULT_VALUE.NOT_CONSTANT",
                    column=field.name,
                )


FEATURE = AllowColumnDefaults()
