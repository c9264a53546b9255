"""CREATE TABLE LIKE, if the new table is a Delta table: an empty table with the definition of another one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.ddl.create import CreateMode, TableDefinition, create_table
from pyspark_delta.ddl.like import definition_like
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.schema.types import StructType
from pyspark_delta.spark.conf.sessions import FORMATS
from pyspark_delta.spark.conf.write_defaults import default_properties
from pyspark_delta.spark.frames.catalyst.jvm import jvm_of
from pyspark_delta.spark.frames.catalyst.nodes import elements, node_name, texts
from pyspark_delta.spark.frames.schemas import from_spark
from pyspark_delta.spark.frames.tables import read_options
from pyspark_delta.spark.sql.classic.definitions import declared_field
from pyspark_delta.spark.sql.classic.entries import uri_text
from pyspark_delta.spark.sql.classic.plans import named_table, option
from pyspark_delta.spark.sql.destinations import destination_of
from pyspark_delta.spark.sql.targets import (
    find_table,
    has_only_delta_tables,
    is_delta_name,
    is_temporary_view,
    session_entry,
    table_exists,
    whole_name,
)
from pyspark_delta.spark.sql.transactions import check_none
from pyspark_delta.transaction.commit_info import engine_info

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STATEMENT = "CREATE TABLE LIKE"
_COMMAND = "CreateTableLikeCommand"  # of PySpark 4.1 and older
_Parts: TypeAlias = "tuple[tuple[str, ...] | None, tuple[str, ...] | None, str | None, bool]"

LIKE_NODES = ("CreateTableLike", _COMMAND)
"""The nodes of parsed statements that are a CREATE TABLE LIKE."""


@dataclass(frozen=True)
class LikeStatement:
    """A parsed CREATE TABLE LIKE. The names are None if they are computed, and not from constants.

    `has_storage` says whether ROW FORMAT or STORED AS is given.
    """

    target: tuple[str, ...] | None
    source: tuple[str, ...] | None
    provider: str | None
    location: str | None
    has_storage: bool
    properties: Mapping[str, str]
    if_not_exists: bool

    @classmethod
    def of(cls, spark: SparkSession, node: Any) -> LikeStatement:
        """Return the statement of a node of `LIKE_NODES`."""
        target, source, location, has_storage = (_of_command if node_name(node) == _COMMAND else _of_plan)(spark, node)
        return cls(
            target=target,
            source=source,
            provider=option(node.provider()),
            location=location,
            has_storage=has_storage,
            properties={str(pair._1()): str(pair._2()) for pair in elements(node.properties().toSeq())},
            if_not_exists=bool(node.ifNotExists()),
        )


def _of_plan(spark: SparkSession, node: Any) -> _Parts:
    target, source = named_table(spark, node.name()), named_table(spark, node.source())
    names = (None if found is None else tuple(found.parts) for found in (target, source))
    return *names, option(node.location()), bool(node.serdeInfo().isDefined())


def _of_command(spark: SparkSession, node: Any) -> _Parts:
    """Return the parts of a statement of PySpark 4.1 and older."""
    target, source = (texts(identifier.nameParts()) for identifier in (node.targetTable(), node.sourceTable()))
    storage = node.fileFormat()
    location = option(storage.locationUri())
    if location is not None:
        location = uri_text(jvm_of(spark), location)
    has_storage = bool(storage.serde().isDefined() or storage.inputFormat().isDefined())
    return tuple(target), tuple(source), location, has_storage


def makes_delta_table(spark: SparkSession, statement: LikeStatement) -> bool:
    """Return True if a CREATE TABLE LIKE makes a Delta table: by USING, or by its target or source without USING."""
    if statement.provider is not None:
        return statement.provider.lower() in FORMATS
    if statement.target is not None and has_only_delta_tables(spark, statement.target):
        return True
    return statement.source is not None and _is_delta_table(spark, statement.source)


def create_like(spark: SparkSession, statement: LikeStatement) -> None:
    """Create the table, in one commit.

    Raises TableAlreadyExistsError, InvalidOperationError for a target that cannot be a Delta table at that place and
    for ROW FORMAT and STORED AS, Spark's AnalysisException for a source that does not exist, and as `create_table`.
    """
    check_none(spark, _STATEMENT)
    target, source, location = statement.target, statement.source, statement.location
    if target is None or source is None:
        raise InvalidOperationError(f"{_STATEMENT} needs the names of two tables. Nothing was created.")
    if statement.has_storage:
        raise InvalidOperationError(
            f"ROW FORMAT and STORED AS of {_STATEMENT} are not for Delta tables. Nothing was created. Leave them out.",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
        )
    if statement.if_not_exists and table_exists(spark, target):
        return
    definition = _definition(spark, source, statement.properties)
    place = destination_of(spark, target, location)
    options = read_options(spark, place.path, place.storage_options)
    create_table(
        options.location,
        replace(definition, defaults=default_properties(spark)),
        CreateMode.CREATE_IF_NOT_EXISTS if statement.if_not_exists else CreateMode.CREATE,
        storage_options=options.storage_options,
        catalog_table=place.catalog_table,
        engine_info=engine_info(f"PySpark/{spark.version}"),
    )
    if place.register is not None:
        place.register(options.location, location is not None)


def _is_delta_table(spark: SparkSession, parts: Sequence[str]) -> bool:
    return not is_temporary_view(spark, parts) and is_delta_name(spark, parts)


def _definition(spark: SparkSession, source: Sequence[str], properties: Mapping[str, str]) -> TableDefinition:
    """Return the definition of the new table. A table that is no Delta table gives no properties."""
    if _is_delta_table(spark, source):
        table = find_table(spark, source)
        assert table is not None
        return definition_like(table.snapshot(), properties)
    entry = None if is_temporary_view(spark, source) else session_entry(spark, whole_name(spark, source))
    if entry is None:
        schema = spark.table(".".join(map(quoted, source))).schema
        return TableDefinition(schema=_delta_schema(schema), properties=properties)
    return TableDefinition(
        schema=_delta_schema(SparkStruct.fromJson(json.loads(entry.schema().json()))),
        partition_columns=texts(entry.partitionColumnNames()),
        properties=properties,
        description=option(entry.comment()),
    )


def _delta_schema(schema: SparkStruct) -> StructType:
    return from_spark(lambda: SparkStruct([declared_field(field) for field in schema.fields]))
