"""REPLACE COLUMNS: all columns of a table at once, with their order, comments and types, as one change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark_delta.ddl.change import TableChange, with_schema
from pyspark_delta.ddl.column_changes import NewColumn, add_columns, described_column, drop_columns
from pyspark_delta.ddl.types import change_type
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.schema.column_mapping import mapping_mode
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.schema.declaration_keys import COMMENT, CURRENT_DEFAULT, GENERATION_EXPRESSION, IDENTITY_START
from pyspark_delta.schema.json import dump_json
from pyspark_delta.schema.text_lengths import DECLARED_TYPE, declared_lengths, declared_type
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType
from pyspark_delta.transaction.column_rules import check_distinct

_Path = tuple[str, ...]


def replace_columns(
    configuration: TableConfiguration, columns: Sequence[StructField], *, clustering_columns: Sequence[str] = ()
) -> TableChange:
    """Set the columns of a table: columns of the same name, regardless of case, keep their values.

    Other columns are added, null in every existing row, or dropped. A struct does not gain and lose columns at once,
    because this could be a renamed column. A comment that is not given stays, and so do defaults, generation
    expressions and identities.

    Raises InvalidOperationError for such a struct, for declarations that existing rows need not meet, and as
    `drop_columns`, `add_columns` and `change_type`; SchemaMismatchError for duplicate names and types that do not hold
    all old values.
    """
    wanted = StructType(tuple(columns))
    check_distinct(wanted)
    _check_declarations(wanted)
    found = _differences(configuration.schema, wanted)
    after = configuration
    if found.dropped:
        _check_droppable(configuration, found.dropped)
        after = _changed(after, drop_columns(after, found.dropped, clustering_columns=clustering_columns))
    for path, data_type, length in found.retyped:
        after = _changed(after, change_type(after, path, data_type, length))
    if found.added:
        after = _changed(after, add_columns(after, found.added))
    schema = _arranged(after.schema, wanted)
    assert isinstance(schema, StructType)
    described = [described_column(column, [column.name]) for column in columns]
    return TableChange(
        operation=Operation("REPLACE COLUMNS", {"columns": dump_json(described).decode()}),
        metadata=with_schema(after.metadata, schema),
    )


# ------------------------------------------------------------------------------------------------- differences
@dataclass(slots=True)
class _Differences:
    """What the wanted columns change, apart from order, comments and nullability."""

    dropped: list[_Path] = field(default_factory=list)
    added: list[NewColumn] = field(default_factory=list)
    retyped: list[tuple[_Path, DataType, str | None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The declared lengths of texts before and after, by path in lower case, and the differences found so far."""

    before: Mapping[_Path, str]
    after: Mapping[_Path, str]
    found: _Differences = field(default_factory=_Differences)

    def types(self, before: DataType, wanted: DataType, path: _Path) -> None:
        """Compare two types at a path."""
        match before, wanted:
            case StructType(), StructType():
                self._structs(before, wanted, path)
            case ArrayType(old, had_null), ArrayType(new, has_null):
                self._member((old, had_null), (new, has_null), (*path, "element"))
            case MapType(old_key, old, had_null), MapType(new_key, new, has_null):
                self._member((old_key, False), (new_key, False), (*path, "key"))
                self._member((old, had_null), (new, has_null), (*path, "value"))
            case _ if before != wanted or self.before.get(_folded(path)) != self.after.get(_folded(path)):
                self.found.retyped.append((path, wanted, self.after.get(_folded(path))))

    def _member(self, before: tuple[DataType, bool], wanted: tuple[DataType, bool], path: _Path) -> None:
        """Compare the types of two columns, elements, keys or values, each with whether it may be null."""
        (old, had_null), (new, has_null) = before, wanted
        if had_null and not has_null:
            name = column_path_text(path)
            raise _refused(
                f"The column '{name}' would become NOT NULL, but existing rows may have null in it. Set it afterwards "
                f"with ALTER TABLE ... ALTER COLUMN {name} SET NOT NULL, which checks the rows."
            )
        self.types(old, new, path)

    def _structs(self, before: StructType, wanted: StructType, path: _Path) -> None:
        dropped = [known.name for known in before if wanted.find(known.name) is None]
        added = [column for column in wanted if before.find(column.name) is None]
        if dropped and added:
            where = f" of the struct '{column_path_text(path)}'" if path else ""
            raise _refused(
                f"It would drop the columns {_names(dropped)}{where} and add {_names([f.name for f in added])}, which "
                "could be meant as new names. Use ALTER TABLE ... RENAME COLUMN, DROP COLUMNS and ADD COLUMNS."
            )
        self.found.dropped += [(*path, name) for name in dropped]
        self.found.added += [NewColumn(self._with_lengths(column, path), path) for column in added]
        for column in wanted:
            known = before.find(column.name)
            if known is not None:
                self._member((known.type, known.nullable), (column.type, column.nullable), (*path, known.name))

    def _with_lengths(self, column: StructField, parent: _Path) -> StructField:
        """Return a new column with the lengths that a field above it declares."""
        path = _folded((*parent, column.name))
        inside = {name[len(path) :]: text for name, text in self.after.items() if name[: len(path)] == path}
        if not inside:
            return column
        return replace(column, metadata={**column.metadata, DECLARED_TYPE: declared_type(column.type, inside)})


def _differences(before: StructType, wanted: StructType) -> _Differences:
    comparison = _Comparison(_lengths(before), _lengths(wanted))
    comparison.types(before, wanted, ())
    return comparison.found


def _lengths(schema: StructType) -> dict[_Path, str]:
    return {_folded((f.name, *path)): text for f in schema for path, text in declared_lengths(f).items()}


def _folded(path: _Path) -> _Path:
    return tuple(part.casefold() for part in path)


# ----------------------------------------------------------------------------------------------------- details
def _arranged(current: DataType, wanted: DataType) -> DataType:
    """Return a type with the order, comments and nullability of another one that has the same columns."""
    match current, wanted:
        case StructType(), StructType():
            return StructType(tuple(_as_wanted(current, column) for column in wanted))
        case ArrayType(element), ArrayType(new, has_null):
            return ArrayType(_arranged(element, new), has_null)
        case MapType(key, value), MapType(new_key, new, has_null):
            return MapType(_arranged(key, new_key), _arranged(value, new), has_null)
        case _:
            return current


def _as_wanted(struct: StructType, wanted: StructField) -> StructField:
    known = struct.find(wanted.name)
    assert known is not None
    metadata = dict(known.metadata)
    if COMMENT in wanted.metadata:
        metadata[COMMENT] = wanted.metadata[COMMENT]
    return replace(known, type=_arranged(known.type, wanted.type), nullable=wanted.nullable, metadata=metadata)


def _changed(before: TableConfiguration, change: TableChange) -> TableConfiguration:
    return TableConfiguration(before.protocol, change.metadata, before.location)


def _check_declarations(wanted: StructType) -> None:
    for column in wanted:
        if column.metadata.keys() & {CURRENT_DEFAULT, GENERATION_EXPRESSION, IDENTITY_START}:
            raise _refused(
                f"The column '{column.name}' has a default or is generated. Leave this out: columns keep what they "
                "have. ALTER TABLE ... ALTER COLUMN ... SET DEFAULT changes a default."
            )


def _check_droppable(configuration: TableConfiguration, dropped: Sequence[_Path]) -> None:
    if mapping_mode(configuration) == "none":
        raise _refused(
            f"It would drop the columns {_names(map(column_path_text, dropped))}. Name all columns; or set the table "
            "property delta.columnMapping.mode to 'name' first, because data files keep the dropped columns."
        )


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _refused(why: str) -> InvalidOperationError:
    return InvalidOperationError(
        f"ALTER TABLE ... REPLACE COLUMNS is not possible, and nothing was changed. {why}",
        error_class="DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
        sqlstate="0AKDC",
    )
