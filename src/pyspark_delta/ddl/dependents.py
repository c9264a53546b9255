"""What else of a table names a column: it would break if the column went away, or changed its name or type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.references import names_column
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.expressions import INVARIANT, invariant_condition
from pyspark_delta.protocol.properties import CONSTRAINT_PREFIX
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructType

GENERATION_EXPRESSION = "delta.generationExpression"


def check_no_dependents(configuration: TableConfiguration, path: Sequence[str], what: str) -> None:
    """Check that no CHECK constraint, invariant or generated column names the column.

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
    fields = list(_described(configuration.schema, ()))
    invariants = [
        f"{column} ({text})"
        for column, metadata in fields
        if (text := invariant_condition(metadata.get(INVARIANT))) and names_column(text, path)
    ]
    if invariants:
        raise InvalidOperationError(
            f"The column '{column_path_text(path)}' cannot be {what}: invariants of columns name it: "
            f"{', '.join(invariants)}. Remove them with the engine that declared them, and declare CHECK constraints "
            "instead.",
            error_class="DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
            column=column_path_text(path),
        )
    generated = [
        f"{column} ({text})"
        for column, metadata in fields
        if (text := str(metadata.get(GENERATION_EXPRESSION, ""))) and names_column(text, path)
    ]
    if generated:
        raise InvalidOperationError(
            f"The column '{column_path_text(path)}' cannot be {what}: generated columns are computed from it: "
            f"{', '.join(generated)}.",
            error_class="DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
            column=column_path_text(path),
        )


def _described(data_type: DataType, prefix: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The path and the metadata of every field that has any, nested ones too."""
    match data_type:
        case StructType(fields):
            for field in fields:
                path = (*prefix, field.name)
                if field.metadata:
                    yield column_path_text(path), field.metadata
                yield from _described(field.type, path)
        case ArrayType(element):
            yield from _described(element, (*prefix, "element"))
        case MapType(key, value):
            yield from _described(key, (*prefix, "key"))
            yield from _described(value, (*prefix, "value"))
        case _:
            return
