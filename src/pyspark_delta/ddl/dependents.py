"""What else of a table names a column: it would break if the column went away, or changed its name or type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.references import is_among, referenced_columns
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import CONSTRAINT_PREFIX
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructType

GENERATION_EXPRESSION = "delta.generationExpression"


def check_no_dependents(configuration: TableConfiguration, paths: Sequence[Sequence[str]], what: str) -> None:
    """Check that neither a CHECK constraint nor a generated column names any of the columns.

    `what` is the change that is to be made, as in "renamed". Raises InvalidOperationError naming all of one column.
    """
    constraints = [
        _Text(name[len(CONSTRAINT_PREFIX) :], text, referenced_columns(text))
        for name, text in configuration.properties.items()
        if name.casefold().startswith(CONSTRAINT_PREFIX)
    ]
    computed = [_Text(name, text, referenced_columns(text)) for name, text in _generated(configuration.schema, ())]
    for path in paths:
        _check_not_named(path, constraints, computed, what)


class _Text(NamedTuple):
    """An expression of the table, what it belongs to, and the columns that it names."""

    owner: str
    text: str
    references: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        return f"{self.owner} ({self.text})"


def _check_not_named(path: Sequence[str], constraints: Iterable[_Text], computed: Iterable[_Text], what: str) -> None:
    checks = [str(text) for text in constraints if is_among(path, text.references)]
    if checks:
        raise InvalidOperationError(
            f"The column '{column_path_text(path)}' cannot be {what}: CHECK constraints name it: "
            f"{', '.join(checks)}. Drop them first, and add them again for the new column.",
            error_class="DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
            column=column_path_text(path),
        )
    generated = [str(text) for text in computed if is_among(path, text.references)]
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
