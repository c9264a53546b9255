"""CONVERT TO DELTA of a Parquet table of the session catalog: in place, with the columns that the catalog declares."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.errors import InvalidOperationError, SchemaMismatchError
from pyspark_delta.maintenance.convert import ConvertPlan, ConvertRequest, plan_convert
from pyspark_delta.parser.statements import ConvertToDelta
from pyspark_delta.schema.declaration_keys import CURRENT_DEFAULT, EXISTS_DEFAULT
from pyspark_delta.schema.types import StructField, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.sessions import FORMATS, session_time_zone
from pyspark_delta.spark.frames.catalyst.jvm import jvm_of
from pyspark_delta.spark.frames.catalyst.nodes import elements
from pyspark_delta.spark.frames.schemas import from_spark, to_spark
from pyspark_delta.spark.sql.classic.alterations import update_entry
from pyspark_delta.spark.sql.classic.entries import location_of_uri
from pyspark_delta.spark.sql.classic.plans import option
from pyspark_delta.spark.sql.targets import session_entry, whole_name
from pyspark_delta.spark.sql.transactions import check_none
from pyspark_delta.storage.paths import decode, is_absolute
from pyspark_delta.transaction.commit_info import engine_info
from pyspark_delta.transaction.new_table import new_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_DEFAULTS = (EXISTS_DEFAULT, CURRENT_DEFAULT)
_OF_HIVE = ("transient_lastDdlTime", "EXTERNAL", "numFiles", "totalSize")


def names_table(spark: SparkSession, statement: ConvertToDelta) -> bool:
    """Return True if the source is the name of a table or view of the session catalog, not a path."""
    source = statement.source
    if source.file_format is not None and is_absolute(source.parts[1]):
        return False
    return session_entry(spark, whole_name(spark, source.parts)) is not None


def convert_table(spark: SparkSession, statement: ConvertToDelta) -> None:
    """Convert the table, and let its entry in the catalog be that of a Delta table. A Delta table stays as it is.

    Raises InvalidOperationError for a table of another format, for PARTITIONED BY, and for files that are not those of
    the table; SchemaMismatchError for files with other columns than the catalog declares; and as `plan_convert`.
    """
    check_none(spark, "CONVERT TO DELTA")
    name = whole_name(spark, statement.source.parts)
    entry = session_entry(spark, name)
    provider = str(option(entry.provider()) or "view").lower()
    if provider in FORMATS:
        return
    _check_kind(".".join(name), provider, statement)
    jvm = jvm_of(spark)
    location = location_of_uri(jvm, entry.location())
    request = ConvertRequest(
        location=location,
        partition_schema=from_spark(lambda: _struct(entry.partitionSchema())),
        statistics=statement.statistics,
        properties=_properties(entry),
        time_zone=session_time_zone(spark),
    )
    plan = plan_convert(request)
    if plan.configuration is not None:
        _check_partitions(spark, plan, entry, location)
        plan = _with_columns(plan, _struct(entry.schema()), option(entry.comment()))
        plan.execute(
            user_metadata=spark.conf.get(_USER_METADATA, None), engine_info=engine_info(f"PySpark/{spark.version}")
        )
    update_entry(spark, Snapshot.load(location), name)


def _check_kind(name: str, provider: str, statement: ConvertToDelta) -> None:
    if provider != "parquet":
        found = "is a view" if provider == "view" else f"has the format {provider}"
        raise InvalidOperationError(
            f"CONVERT TO DELTA converts Parquet tables, but '{name}' {found}. Nothing was changed. "
            "Use CREATE TABLE ... USING delta AS SELECT.",
            error_class="DELTA_CONVERT_NON_PARQUET_TABLE",
        )
    if statement.partition_schema is not None:
        raise InvalidOperationError(
            f"The catalog knows the partition columns of '{name}'. Nothing was changed. Leave PARTITIONED BY out.",
            error_class="DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER",
        )


def _check_partitions(spark: SparkSession, plan: ConvertPlan, entry: Any, location: str) -> None:
    """Check that the directories of the files are the partitions that the catalog has, if it has any.

    A query of the table reads these partitions only, wherever they are.
    """
    if not entry.tracksPartitionsInCatalog() or not entry.partitionColumnNames().size():
        return
    java: Any = spark
    jvm = jvm_of(spark)
    partitions = elements(java._jsparkSession.sessionState().catalog().listPartitions(entry.identifier(), jvm.none))
    known = {location_of_uri(jvm, one.location()).rstrip("/") for one in partitions}
    root = location.rstrip("/")
    elsewhere = sorted(one for one in known if not one.startswith(f"{root}/"))
    found = {str(PurePosixPath(decode(path)).parent) for path in plan.files["path"].to_pylist()}
    unknown = sorted(one for one in found if f"{root}/{one}" not in known)
    if elsewhere or unknown:
        what = (
            f"has a partition at '{elsewhere[0]}', outside of the directory '{root}'"
            if elsewhere
            else f"has no partition for the directory '{unknown[0]}', which has files"
        )
        raise InvalidOperationError(
            f"The table {entry.identifier().unquotedString()} {what}. A Delta table has the files of its directory. "
            "Nothing was changed. Run MSCK REPAIR TABLE or move the files first, or use CREATE TABLE ... AS SELECT.",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
        )


def _with_columns(plan: ConvertPlan, declared: SparkStruct, comment: str | None) -> ConvertPlan:
    """Return the plan with the columns of the catalog, in their order and with their comments."""
    assert plan.configuration is not None
    files = {field.name: field for field in plan.configuration.schema.fields}
    types = {field.name: field.dataType.simpleString() for field in to_spark(plan.configuration.schema).fields}
    unlike = [f"the files have a column '{name}'" for name in files if name not in declared.names]
    unlike += [
        f"the column '{field.name}' is {types[field.name]}, not {field.dataType.simpleString()}"
        for field in declared.fields
        if types.get(field.name, field.dataType.simpleString()) != field.dataType.simpleString()
    ]
    unlike += [
        f"the column '{field.name}' has a default, which rows without the column show"
        for field in declared.fields
        if any(key in field.metadata for key in _DEFAULTS)
    ]
    if unlike:
        raise SchemaMismatchError(
            f"The files at '{plan.location}' are not what the catalog declares: {'; '.join(unlike)}. Nothing was "
            "changed. Use CREATE TABLE ... USING delta AS SELECT.",
            error_class="DELTA_CONVERT_TO_DELTA_SCHEMA_MISMATCH",
        )
    fields = tuple(
        StructField(field.name, files[field.name].type if field.name in files else field.type, True, field.metadata)
        for field in from_spark(lambda: declared).fields
    )
    made = new_table(StructType(fields), plan.configuration.partition_columns, plan.request.properties)
    return replace(plan, configuration=replace(made, metadata=replace(made.metadata, description=comment)))


def _properties(entry: Any) -> dict[str, str]:
    """Return the properties that users gave the table."""
    pairs = {str(pair._1()): str(pair._2()) for pair in elements(entry.properties().toSeq())}
    return {key: value for key, value in pairs.items() if key not in _OF_HIVE and not key.startswith("spark.sql.")}


def _struct(java: Any) -> SparkStruct:
    return SparkStruct.fromJson(json.loads(java.json()))
