"""The rows of a table that a write replaces, by its mode and options; checked before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pyspark_delta.errors import InvalidOptionError, InvalidPredicateError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.text import columns_of, is_opaque
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.schema.types import ArrayType, MapType, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.probing import probing
from pyspark_delta.spark.conf.write_defaults import ReplaceWhereSettings, replace_where_settings
from pyspark_delta.spark.engine.write.row_matches import check_condition
from pyspark_delta.spark.frames.schemas import empty_frame, to_spark
from pyspark_delta.write.options import WriteOptions
from pyspark_delta.write.target import resolve_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


def select_rows(spark: SparkSession, mode: str, options: WriteOptions, snapshot: Snapshot, time_zone: str) -> Selection:
    """Return the rows that a write to an existing table replaces.

    Raises InvalidPredicateError, InvalidOptionError and InvalidOperationError for conditions and columns that do not
    fit the table.
    """
    if mode == "replace":
        return Everything()
    if mode != "overwrite":
        return Nothing()
    schema = snapshot.schema
    if options.replace_where is not None:
        return _where(spark, options.replace_where, snapshot, replace_where_settings(spark), time_zone)
    if options.replace_using:
        return EqualKeys(_keys(schema, options.replace_using))
    if options.replace_on is not None:
        check_condition(options.replace_on, options.target_alias)
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


def _where(spark: SparkSession, text: str, snapshot: Snapshot, settings: ReplaceWhereSettings, time_zone: str) -> Where:
    try:
        predicate = parse_predicate(text, snapshot.schema, time_zone=time_zone)
    except InvalidPredicateError:
        if not _spark_understands(spark, text, snapshot):
            raise
        predicate = parse_predicate(text, snapshot.schema, time_zone=time_zone, on_opaque="keep")
    partitions = {name.casefold() for name in snapshot.configuration.partition_columns}
    named = {column.path[0].casefold() for column in columns_of(predicate)}
    only_partitions = named <= partitions and not is_opaque(predicate)
    if not settings.data_columns and not only_partitions:
        raise InvalidOptionError(
            f"The condition of replaceWhere, '{text}', is about columns that are no partition columns, which the "
            "session setting spark.databricks.delta.replaceWhere.dataColumns.enabled=false forbids.",
            option="replaceWhere",
        )
    return Where(text, predicate, settings.check or only_partitions)


def _spark_understands(spark: SparkSession, text: str, snapshot: Snapshot) -> bool:
    """Return True if Spark accepts a condition that this package cannot evaluate; then Spark alone applies it."""
    try:
        with probing():
            empty_frame(spark, to_spark(snapshot.schema)).where(text).schema  # noqa: B018 - it is analyzed
    except Exception:
        return False
    return True
