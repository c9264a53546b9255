"""Expressions of a table that use a column, and would break if it were dropped, renamed or changed in type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.references import is_among, referenced_columns
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.expressions import INVARIANT, invariant_condition
from pyspark_delta.protocol.properties import CONSTRAINT_PREFIX
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.schema.declaration_keys import GENERATION_EXPRESSION
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructType


def check_no_dependents(configuration: TableConfiguration, paths: Sequence[Sequence[str]], what: str) -> None:
    """Check that no CHECK constraint, invariant or generated column names any of the columns.

    `what` is the intended change, such as "renamed". Raises InvalidOperationError naming all dependents of one column.
    """
    constraints = [
        _Text.of(name[len(CONSTRAINT_PREFIX) :], text)
        for name, text in configuration.properties.items()
        if name.casefold().startswith(CONSTRAINT_PREFIX)
    ]
    invariants, computed = [], []
    for column, metadata in _described(configuration.schema, ()):
        if text := invariant_condition(metadata.get(INVARIANT)):
            invariants.append(_Text.of(column, text))
        if text := str(metadata.get(GENERATION_EXPRESSION, "")):
            computed.append(_Text.of(column, text))
    for path in paths:
        _check_not_named(path, constraints, invariants, computed, what)


class _Text(NamedTuple):
    """An expression of the table, the constraint or column that it belongs to, and the columns that it uses."""

    owner: str
    text: str
    references: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, owner: str, text: str) -> _Text:
        """Return an expression, parsed."""
        return cls(owner, text, referenced_columns(text))

    def __str__(self) -> str:
        return f"{self.owner} ({self.text})"


def _naming(path: Sequence[str], texts: Iterable[_Text]) -> str:
    """Return the expressions that name a column, as text; empty if none does."""
    return ", ".join(str(text) for text in texts if is_among(path, text.references))


def _check_not_named(
    path: Sequence[str], constraints: Iterable[_Text], invariants: Iterable[_Text], computed: Iterable[_Text], what: str
) -> None:
    if named := _naming(path, constraints):
        raise InvalidOperationError(
            f"The column '{column_path_text(path)}' cannot be {what}: these CHECK constraints use it: {named}. Drop "
            "them first, and add them again afterwards.",
            error_class="DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
            column=column_path_text(path),
        )
    if named := _naming(path, invariants):
        raise InvalidOperationError(
            f"The column '{column_path_text(path)}' cannot be {what}: these column invariants use it: {named}. Remove "
            "them with the engine that declared them, and declare CHECK constraints instead.",
            error_class="DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
            column=column_path_text(path),
        )
    if named := _naming(path, computed):
        raise InvalidOperationError(
            f"The column '{column_path_text(path)}' cannot be {what}: these generated columns are computed from it: "
            f"{named}.",
            error_class="DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
            column=column_path_text(path),
        )


def _described(data_type: DataType, prefix: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the path and the metadata of every field that has any, nested ones too."""
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
