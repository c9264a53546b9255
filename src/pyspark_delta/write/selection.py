"""The rows of a table that a write replaces, by its mode and options; checked before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pyspark_delta.errors import InvalidOptionError, InvalidPredicateError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.syntax import parse
from pyspark_delta.expressions.text import columns_of, is_opaque
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.lazy_sqlglot import exp
from pyspark_delta.schema.types import ArrayType, MapType, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.write.options import WriteOptions
from pyspark_delta.write.target import resolve_columns


@dataclass(frozen=True, slots=True)
class Nothing:
    """The write only adds rows."""


@dataclass(frozen=True, slots=True)
class Everything:
    """All rows."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """The rows of every partition that occurs in the data."""


@dataclass(frozen=True, slots=True)
class Where:
    """The rows that meet a condition: `text` for Spark, `predicate` for files. With `check`, new rows must meet it."""

    text: str
    predicate: Expression
    check: bool


@dataclass(frozen=True, slots=True)
class EqualKeys:
    """The rows with the same values in some columns as a row of the data."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class On:
    """The rows for which a condition on them and a row of the data is true."""

    condition: str
    table_alias: str | None


Selection: TypeAlias = Nothing | Everything | Partitions | Where | EqualKeys | On


@dataclass(frozen=True, slots=True)
class ReplaceWhere:
    """What conditions of replaceWhere may be.

    `data_columns`: they may name columns that are not partition columns. `check`: new rows must meet them.
    `is_understood` returns True for a condition on a table of this schema that this package cannot evaluate, but the
    engine can; then only the engine applies it. `as_read` returns the text with the meaning that a condition has in the
    engine.
    """

    data_columns: bool = True
    check: bool = True
    is_understood: Callable[[str, StructType], bool] = lambda text, schema: False
    as_read: Callable[[str], str] = lambda text: text


def select_rows(
    mode: str, options: WriteOptions, snapshot: Snapshot, time_zone: str, conditions: ReplaceWhere
) -> Selection:
    """Return the rows that a write to an existing table replaces.

    Raises InvalidPredicateError, InvalidOptionError and InvalidOperationError for conditions and columns that do not
    fit the table.
    """
    if mode == "replace":
        return Everything()
    if mode != "overwrite":
        return Nothing()
    if options.replace_where is not None:
        if options.dynamic_partitions and snapshot.configuration.partition_columns:
            raise InvalidOptionError(
                "The options replaceWhere and partitionOverwriteMode=dynamic cannot be combined: each states which "
                "rows are replaced. Give one of them.",
                error_class="DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
                option="replaceWhere",
            )
        return _where(options.replace_where, snapshot, time_zone, conditions)
    if options.replace_using:
        return EqualKeys(_keys(snapshot.schema, options.replace_using))
    if options.replace_on is not None:
        data_alias(options.replace_on, options.target_alias)
        return On(options.replace_on, options.target_alias)
    if options.dynamic_partitions and snapshot.configuration.partition_columns:
        return Partitions()
    return Everything()


def _keys(schema: StructType, names: tuple[str, ...]) -> tuple[str, ...]:
    keys = resolve_columns(schema, names, "replaceUsing")
    for key in keys:
        column = schema.find(key)
        if column is not None and isinstance(column.type, MapType | StructType | ArrayType):
            raise InvalidOptionError(
                f"The option 'replaceUsing' names '{key}' of type {column.type}; rows are matched by columns of simple "
                "types. Use the option replaceOn for a condition of your own.",
                option="replaceUsing",
            )
    return keys


def _where(text: str, snapshot: Snapshot, time_zone: str, conditions: ReplaceWhere) -> Where:
    read = conditions.as_read(text)
    try:
        predicate = parse_predicate(read, snapshot.schema, time_zone=time_zone)
    except InvalidPredicateError:
        if not conditions.is_understood(text, snapshot.schema):
            raise
        predicate = parse_predicate(read, snapshot.schema, time_zone=time_zone, on_opaque="keep")
    partitions = {name.casefold() for name in snapshot.configuration.partition_columns}
    named = {column.path[0].casefold() for column in columns_of(predicate)}
    only_partitions = named <= partitions and not is_opaque(predicate)
    if not conditions.data_columns and not only_partitions:
        raise InvalidOptionError(
            f"The condition of replaceWhere, '{text}', names columns that are not partition columns, which the "
            "session setting spark.databricks.delta.replaceWhere.dataColumns.enabled=false forbids.",
            option="replaceWhere",
        )
    return Where(text, predicate, conditions.check or only_partitions)


def data_alias(condition: str, table_alias: str | None) -> str:
    """Return the name that a condition of replaceOn uses for the data; empty if it uses none.

    The names before dots say which side a column is of: `table_alias` the table, another name the data. Raises
    InvalidOptionError for a condition with more names, or with columns without one.
    """
    columns = list(parse(condition).find_all(exp.Column))
    qualifiers = dict.fromkeys(column.parts[0].name for column in columns if len(column.parts) > 1)
    others = [name for name in qualifiers if name.casefold() != (table_alias or "").casefold()]
    bare = sorted({column.name for column in columns if len(column.parts) == 1})
    if bare:
        raise InvalidOptionError(
            f"The condition of replaceOn, '{condition}', is ambiguous: {', '.join(bare)} may be a column of the table "
            "or of the data. Write t.column with the option targetAlias='t' for the table, and s.column for the data.",
            error_class="DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION",
            option="replaceOn",
        )
    if len(others) > 1:
        raise InvalidOptionError(
            f"The condition of replaceOn, '{condition}', refers to {', '.join(others)}: it may name the table, by the "
            f"option targetAlias ({table_alias or 'not given'}), and the data by one other name.",
            option="replaceOn",
        )
    return others[0] if others else ""
