"""`spark.read` of enabled sessions: PySpark's DataFrameReader, with Delta reads by pyspark-delta."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType as SparkStruct
from pyspark.sql.types import _parse_datatype_string

from pyspark_delta.errors import InvalidOptionError, StorageError, TableNotFoundError, translate
from pyspark_delta.spark.conf.probing import probing
from pyspark_delta.spark.frames.tables import read_options, read_table
from pyspark_delta.spark.hadoop.default_system import on_default_system
from pyspark_delta.spark.session.identifiers import Identified, identify
from pyspark_delta.spark.session.mixins import FormatMixin, OptionsMixin, path_option


class DeltaAwareReader(FormatMixin, OptionsMixin):
    """PySpark's DataFrameReader with Delta."""

    _delta_schema: Any = None

    def schema(self, schema: Any) -> Any:
        self._delta_schema = schema
        return super().schema(schema)

    def load(self, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> DataFrame:  # noqa: A002
        if not self._delta_chosen(format):
            return cast(DataFrame, super().load(path, format, schema, **options))
        given = self._delta_options.items(options)
        if path is not None and not isinstance(path, str):
            given["paths"] = json.dumps(list(path))
        spark = self._delta_session
        frame = _read(spark, on_default_system(spark, path or path_option(given)), given, schema or self._delta_schema)
        return frame if frame is not None else opened_on_server(super().load(path, format, schema, **options))

    def table(self, tableName: str) -> DataFrame:
        found = identify(self._delta_session, tableName)
        if found is None:
            return cast(DataFrame, super().table(tableName))
        given = self._delta_options.items(found.storage_options)
        frame = _read(self._delta_session, found.path, given, self._delta_schema, found)
        return frame if frame is not None else cast(DataFrame, self.format("delta").load(found.path))


def opened_on_server(frame: DataFrame) -> DataFrame:
    """Return a frame of the data source on the server. Raises the error of opening the table there, such as
    TableNotFoundError, now and not in the first action.
    """
    with translate(), probing():
        _ = frame.schema
    return frame


def _read(
    spark: SparkSession, path: Any, options: Mapping[str, str], schema: Any, found: Identified | None = None
) -> DataFrame | None:
    """Return the frame; None if this process cannot access the table, but the Spark Connect server perhaps can."""
    parsed = read_options(spark, path if isinstance(path, str) else None, options)
    if found is not None:
        parsed = replace(parsed, catalog_table=found.catalog_table)
    given = _parse_datatype_string(schema) if isinstance(schema, str) else schema
    if given is not None and not isinstance(given, SparkStruct):
        raise InvalidOptionError(
            f"A schema is a StructType or a string such as 'id BIGINT, name STRING', found {given!r}."
        )
    try:
        return read_table(spark, parsed, given, tail=None if found is None else found.tail)
    except (TableNotFoundError, StorageError):
        if hasattr(spark, "_jsparkSession"):
            raise
        return None
