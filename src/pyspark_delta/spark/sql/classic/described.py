"""DESCRIBE EXTENDED of a Delta table in Spark's session catalog, with the rows of delta-spark.

Spark describes the copy in its catalog, which has no partition columns and no protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson
import pyarrow as pa

from pyspark_delta.ddl.column_changes import CURRENT_DEFAULT
from pyspark_delta.protocol.properties import FEATURE_PREFIX, MIN_READER_VERSION, MIN_WRITER_VERSION
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.arrow import frame_of_arrow
from pyspark_delta.spark.frames.catalyst.jvm import Jvm, jvm_of
from pyspark_delta.spark.frames.catalyst.nodes import elements
from pyspark_delta.spark.frames.schemas import to_spark
from pyspark_delta.spark.sql.classic.entries import is_external_entry, uri_text
from pyspark_delta.spark.sql.targets import SqlTable, session_entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Row: TypeAlias = tuple[str, str | None, str | None]

_EMPTY: _Row = ("", "", "")
_DETAILS: _Row = ("# Detailed Table Information", "", "")
_DEFAULTS: _Row = ("# Column Default Values", "", "")
_CLUSTERING = "clusteringColumns"
_SCHEMA = pa.schema([(name, pa.string()) for name in ("col_name", "data_type", "comment")])


def with_details(spark: SparkSession, columns: DataFrame, table: SqlTable) -> DataFrame:
    """Return the result of DESCRIBE EXTENDED. `columns` are the rows before the details, and others after them."""
    rows: list[_Row] = [(row[0], row[1], row[2]) for row in columns.collect()]
    before = rows[: rows.index(_DETAILS) - 1] if _DETAILS in rows else rows
    found = [*before, *_details(spark, table)]
    arrays = [pa.array(column, pa.string()) for column in zip(*found, strict=True)]
    return frame_of_arrow(spark, pa.Table.from_arrays(arrays, schema=_SCHEMA))


def declared_properties(snapshot: Snapshot) -> dict[str, str]:
    """Return the table properties as delta-spark shows them: with protocol versions, table features and clustering."""
    protocol, clustering = snapshot.protocol, snapshot.clustering_paths()
    found = {
        **snapshot.properties,
        MIN_READER_VERSION.name: str(protocol.min_reader_version),
        MIN_WRITER_VERSION.name: str(protocol.min_writer_version),
        **{f"{FEATURE_PREFIX}{feature}": "supported" for feature in protocol.listed_features},
    }
    if clustering:
        found[_CLUSTERING] = orjson.dumps(clustering).decode()
    return dict(sorted(found.items()))


def _details(spark: SparkSession, table: SqlTable) -> Iterator[_Row]:
    jvm, snapshot, entry = jvm_of(spark), table.snapshot(), session_entry(spark, table.name)
    catalog, schema, name = table.name
    yield _EMPTY
    yield _DETAILS
    yield "Catalog", catalog, ""
    yield "Namespace", schema, ""
    yield "Database", schema, ""
    yield "Table", name, ""
    yield "Type", str(entry.tableType().name()), ""
    if snapshot.metadata.description is not None:
        yield "Comment", snapshot.metadata.description, ""
    yield "Location", uri_text(jvm, entry.location()), ""
    yield "Provider", "delta", ""
    if entry.owner():
        yield "Owner", str(entry.owner()), ""
    if not is_external_entry(entry):
        yield "Is_managed_location", "true", ""
    shown = _redacted(spark, jvm, declared_properties(snapshot))
    yield "Table Properties", f"[{','.join(f'{key}={value}' for key, value in shown.items())}]", ""
    yield from _defaults(snapshot)


def _defaults(snapshot: Snapshot) -> Iterator[_Row]:
    fields = [(f, f.metadata[CURRENT_DEFAULT]) for f in snapshot.schema if CURRENT_DEFAULT in f.metadata]
    if fields:
        yield _EMPTY
        yield _DEFAULTS
    types = to_spark(snapshot.schema)
    for field, default in fields:
        yield field.name, types[field.name].dataType.simpleString(), str(default)


def _redacted(spark: SparkSession, jvm: Jvm, properties: dict[str, str]) -> dict[str, str]:
    """Return properties without the values that the session hides (`spark.sql.redaction.options.regex`)."""
    java: Any = spark
    shown = elements(java._jsparkSession.sessionState().conf().redactOptions(jvm.map(properties)).toSeq())
    return dict(sorted((str(pair._1()), str(pair._2())) for pair in shown))
