"""The clauses of a MERGE: the rows of each, the actions, and which lists of clauses are valid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

from pyspark_delta.display import html_rows
from pyspark_delta.engines.row_changes import RowAction
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.name_resolution import suggestion
from pyspark_delta.features import Feature, is_active
from pyspark_delta.protocol.rows import ComputedColumn, ComputedKind
from pyspark_delta.schema.column_paths import parse_column_path
from pyspark_delta.schema.json import schema_to_json
from pyspark_delta.schema.merge import merge_schemas
from pyspark_delta.schema.store_assignment import SCHEMA_EVOLUTION
from pyspark_delta.schema.types import StructField, StructType
from pyspark_delta.statements.assignments import check_no_identity
from pyspark_delta.statements.conditions import check_deterministic
from pyspark_delta.statements.target import Condition, Target
from pyspark_delta.transaction.evolution import evolve
from pyspark_delta.transaction.new_table import stored_columns


class RowKind(Enum):
    """The rows that a clause applies to; the values are the words of SQL."""

    MATCHED = "MATCHED"  # a row of the table and one of the source, for which the condition of the merge is true
    NOT_MATCHED = "NOT MATCHED"  # a row of the source that matches none of the table
    BY_SOURCE = "NOT MATCHED BY SOURCE"  # a row of the table that no row of the source matches


_OMITTED = {
    RowKind.MATCHED: "NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    RowKind.NOT_MATCHED: "NON_LAST_NOT_MATCHED_BY_TARGET_CLAUSE_OMIT_CONDITION",
    RowKind.BY_SOURCE: "NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
}
EXAMPLES, MOST_COLUMNS = 5, 5
"""How many rows an error about repeated matches shows at most, and how many columns of each."""
_WORDS = {RowAction.UPDATE: "update", RowAction.DELETE: "delete", RowAction.INSERT: "insert"}


@dataclass(frozen=True)
class Clause:
    """One clause. `values` are new values by column; None, of an update or insert, means all columns by their names."""

    kind: RowKind
    action: RowAction
    condition: Condition | None = None
    values: Mapping[str, Condition] | None = None

    @property
    def word(self) -> str:
        """The action as the history names it."""
        return _WORDS[self.action]

    @property
    def name(self) -> str:
        """The clause as messages name it."""
        return f"WHEN {self.kind.value} THEN {self.word.upper()}"

    @property
    def takes_all(self) -> bool:
        """True if columns get the values of the source's columns of the same names."""
        return self.values is None and self.action is not RowAction.DELETE


def merge_text(name: str, condition: Condition, clauses: Sequence[Clause]) -> str:
    """Return a merge as one line."""
    shown = "".join(f" {clause.name}" for clause in clauses)
    return f"{name}(on {condition}{',' if shown else ''}{shown})"


def merge_html(name: str, condition: Condition, clauses: Sequence[Clause]) -> str:
    """Return a merge as a small HTML table."""
    rows = [(clause.name, "" if clause.condition is None else clause.condition) for clause in clauses]
    return html_rows(name, (), [("ON", condition), *rows])


def of_kind(clauses: Sequence[Clause], kind: RowKind) -> tuple[Clause, ...]:
    """Return the clauses for one kind of rows, in order."""
    return tuple(clause for clause in clauses if clause.kind is kind)


def is_single_delete(clauses: Sequence[Clause]) -> bool:
    """Return True if the only action on matched rows is an unconditional deletion.

    Then a row may match several source rows.
    """
    matched = of_kind(clauses, RowKind.MATCHED)
    return len(matched) == 1 and matched[0].action is RowAction.DELETE and matched[0].condition is None


def check_clauses(clauses: Sequence[Clause]) -> None:
    """Raise InvalidOperationError if there is no clause, or one after a clause that takes all rows of its kind.

    Raises InvalidPredicateError for conditions that are not deterministic.
    """
    if not clauses:
        raise InvalidOperationError(
            "A merge needs at least one clause, such as whenMatchedUpdateAll() or whenNotMatchedInsertAll().",
            error_class="DELTA_MERGE_MISSING_WHEN",
            sqlstate="42601",
        )
    for kind in RowKind:
        for clause in of_kind(clauses, kind)[:-1]:
            if clause.condition is None:
                raise InvalidOperationError(
                    f"A clause {clause.name} without a condition takes all rows that are {kind.value}, so the clauses "
                    "after it would never apply. Only the last of a kind may omit its condition.",
                    error_class=_OMITTED[kind],
                    sqlstate="42613",
                )
    for clause in clauses:
        if clause.condition is not None:
            check_deterministic(clause.condition, f"the clause {clause.name}")


TargetT = TypeVar("TargetT", bound=Target)


def evolve_target(target: TargetT, source: StructType, clauses: Sequence[Clause]) -> TargetT:
    """Return the target with the source columns that clauses give values to, by name or as all columns.

    Raises InvalidOperationError and SchemaMismatchError for a schema that the table cannot have.
    """
    before = target.configuration
    if any(clause.takes_all for clause in clauses):
        data = source
    else:
        names = [name for clause in clauses for name in clause.values or ()]
        data = _reachable(source, [_path(name, before.schema, target.alias) for name in names])
    widen = is_active(before, Feature.TYPE_WIDENING)
    schema = merge_schemas(before.schema, stored_columns(data), widen=widen)
    if schema == before.schema:
        return target
    metadata = replace(before.metadata, schema_string=schema_to_json(schema))
    return replace(target, evolved=evolve(before, metadata, keeps_files=True))


def _path(name: str, schema: StructType, alias: str | None) -> tuple[str, ...]:
    """Return the parts of a column's name, without the table's name."""
    parts = tuple(parse_column_path(name))
    qualified = len(parts) > 1 and alias is not None and parts[0].casefold() == alias.casefold()
    return parts[1:] if qualified and schema.find(parts[0]) is None else parts


def _reachable(schema: StructType, paths: Sequence[tuple[str, ...]]) -> StructType:
    """Return the fields that paths name, with their nested and enclosing fields."""
    fields: list[StructField] = []
    for field in schema:
        inner = [path[1:] for path in paths if path[0].casefold() == field.name.casefold()]
        if () in inner:
            fields.append(field)
        elif inner and isinstance(field.type, StructType):
            fields.append(replace(field, type=_reachable(field.type, inner)))
    return StructType(tuple(fields))


# ------------------------------------------------------------------------------------------- for every engine
def columns_from_source(
    schema: StructType, source: StructType, clause: Clause, computed: Mapping[str, ComputedColumn], *, evolves: bool
) -> tuple[str, ...]:
    """Return the columns of the table that a clause for all columns sets to those of the source, by name.

    The others are the columns `computed` by the table, and with `evolves` those that the source lacks. Raises
    InvalidOperationError for other columns that the source lacks, or has twice.
    """
    names = [name.casefold() for name in source.names]
    found = []
    for field in schema:
        count = names.count(field.name.casefold())
        if count == 1:
            found.append(field.name)
        elif field.name not in computed and (count or not evolves):
            raise InvalidOperationError(
                f"{clause.name} * sets every column to the source column of the same name, but the source has no "
                f"column '{field.name}', or several. {suggestion((field.name,), source)} Set the columns "
                f"one by one, or add the column to the source. With {SCHEMA_EVOLUTION}, an update does not change "
                "columns that the source lacks, and an insert gives them their default or null.",
                error_class="DELTA_MERGE_UNRESOLVED_EXPRESSION",
                sqlstate="42601",
                column=field.name,
            )
    return tuple(found)


def check_identity_values(
    schema: StructType, computed: Mapping[str, ComputedColumn], clause: Clause, paths: Iterable[tuple[str, ...]]
) -> None:
    """Raise InvalidOperationError if a clause gives values to an identity column that it may not set."""
    paths = list(paths)
    if clause.action is RowAction.UPDATE:
        check_no_identity(schema, dict.fromkeys(paths), clause.name)
        return
    for path in paths:
        column = computed.get(path[0])
        if column is not None and column.kind is ComputedKind.IDENTITY_ALWAYS:
            raise InvalidOperationError(
                f"{clause.name} gives values to the column '{column.name}', which is GENERATED ALWAYS AS IDENTITY: "
                "only the table assigns its values. Leave it out.",
                error_class="DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
                sqlstate="42808",
                column=column.name,
            )


def repeated_match_error(shown: Sequence[str]) -> InvalidOperationError:
    """Return the error; `shown` are examples of rows, each with how many rows of the source it matched."""
    examples = "; ".join(shown) or "rows that cannot be shown: the source returns other rows when it is computed again"
    return InvalidOperationError(
        "Several rows of the source match one row of the table and would change it, so the result would be ambiguous. "
        f"Nothing was committed. Found for {examples}. Leave one of these source rows, for example "
        "with dropDuplicates or an aggregation by the key, or make the condition more specific.",
        error_class="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        sqlstate="21506",
        rows=len(shown),
    )
