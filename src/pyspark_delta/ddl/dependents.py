"""What else of a table names a column: it would break if the column went away, or changed its name or type."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.references import names_column
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import CONSTRAINT_PREFIX
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructType

GENERATION_EXPRESSION = "delta.generationExpression"


def check_no_dependents(configuration: TableConfiguration, path: Sequence[str], what: str) -> None:
    """Check that neither a CHECK constraint nor a generated column names the column.

    `what` is the change that is to be made, as in "renamed". Raises InvalidOperationError naming them all.
    """
    constraints = [
        f"{name[len(CONSTRAINT_PREFIX) :]} ({text})"
        for name, text in configuration.properties.items()
        if name.casefold().startswith(CONSTRAINT_PREFIX) and names_column(text, path)
    ]
    if constraints:
        raise InvalidOperationError(
            f"The column '{column_path_text(path)}' cannot be {what}: CHECK constraints name it: "
            f"{', '.join(constraints)}. Drop them first, and add them again for the new column.",
            error_class="DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
            column=column_path_text(path),
        )
    generated = [
        f"{column} ({text})" for column, text in _generated(configuration.schema, ()) if names_column(text, path)
    ]
    if generated:
        raise InvalidOperationError(
            f"The column '{column_path_text(path)}' cannot be {what}: generated columns are computed from it: "
            f"{', '.join(generated)}.",
            error_class="DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
            column=column_path_text(path),
        )


def _generated(data_type: DataType, prefix: tuple[str, ...]) -> list[tuple[str, str]]:
    match data_type:
        case StructType(fields):
            found = []
            for field in fields:
                path = (*prefix, field.name)
                expression = field.metadata.get(GENERATION_EXPRESSION)
                if isinstance(expression, str):
                    found.append((column_path_text(path), expression))
                found += _generated(field.type, path)
            return found
        case ArrayType(element):
            return _generated(element, (*prefix, "element"))
        case MapType(key, value):
            return _generated(key, (*prefix, "key")) + _generated(value, (*prefix, "value"))
        case _:
            return []
