"""`spark.readStream` of enabled sessions: PySpark's DataStreamReader, with Delta streams by pyspark-delta."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType as SparkStruct
from pyspark.sql.types import _parse_datatype_string

from pyspark_delta.catalog.contract import TableName
from pyspark_delta.catalog.log_tail import TailFiles
from pyspark_delta.catalog.names import resolve
from pyspark_delta.errors import InvalidOptionError, StorageError, TableNotFoundError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import latest_snapshot
from pyspark_delta.spark.conf.sessions import session_time_zone
from pyspark_delta.spark.frames.stream_options import StreamRead
from pyspark_delta.spark.hadoop.default_system import on_default_system
from pyspark_delta.spark.session.identifiers import Identified, identify
from pyspark_delta.spark.session.mixins import FormatMixin, OptionsMixin, path_option
from pyspark_delta.spark.session.reader import opened_on_server
from pyspark_delta.spark.streaming.reading import read_stream, stream_by_workers


class DeltaAwareStreamReader(FormatMixin, OptionsMixin):
    """PySpark's DataStreamReader with Delta."""

    _delta_schema: Any = None
    _delta_name: str | None = None

    def schema(self, schema: Any) -> Any:
        self._delta_schema = schema
        return super().schema(schema)

    def name(self, source_name: str) -> Any:
        named = super().name(source_name)
        self._delta_name = source_name
        return named

    def load(self, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> DataFrame:  # noqa: A002
        if not self._delta_chosen(format):
            return cast(DataFrame, super().load(path, format, schema, **options))
        if schema is not None:
            self.schema(schema)
        given = self._delta_options.items(options)
        return self._delta_read(on_default_system(self._delta_session, path or path_option(given)), given)

    def table(self, tableName: str) -> DataFrame:
        found = identify(self._delta_session, tableName)
        if found is None:
            return cast(DataFrame, super().table(tableName))
        return self._delta_read(found.path, self._delta_options.items(), found)

    def _delta_read(self, path: Any, options: Mapping[str, str], found: Identified | None = None) -> DataFrame:
        spark = self._delta_session
        read = StreamRead.parse(path, options, time_zone=session_time_zone(spark))
        if found is not None:
            storage_options = {**read.storage_options, **found.storage_options}
            read = replace(read, storage_options=storage_options, catalog_table=found.catalog_table)
        schema = _parsed(self._delta_schema)
        try:
            return read_stream(spark, read, _Opener.of(read, found), options, schema, self._delta_name)
        except (TableNotFoundError, StorageError):
            if hasattr(spark, "_jsparkSession"):
                raise
            # This process cannot access the table, but the Spark Connect server perhaps can.
            return opened_on_server(stream_by_workers(spark, read, options, self._delta_name))


@dataclass
class _Opener:
    """Opens the newest snapshot of a table. It does not refer to the session, because plans refer to it.

    `name` is the name in a connected catalog, and `tail` what the catalog returned for it, which is used once.
    """

    read: StreamRead
    name: TableName | None
    tail: TailFiles | None

    @classmethod
    def of(cls, read: StreamRead, found: Identified | None) -> _Opener:
        return cls(read, None, None) if found is None else cls(read, found.name, found.tail)

    def __call__(self) -> Snapshot:
        tail, self.tail = self.tail, None
        location, options, table = self.read.location, self.read.storage_options, self.read.catalog_table
        if self.name is not None and tail is None:
            again = resolve(self.name)  # credentials of a catalog expire
            location, options = again.location, {**options, **again.storage_options}
            table, tail = again.catalog_table, again.tail
        return latest_snapshot(location, options, catalog_table=table, tail=tail)


def _parsed(schema: Any) -> SparkStruct | None:
    given = _parse_datatype_string(schema) if isinstance(schema, str) else schema
    if given is None or isinstance(given, SparkStruct):
        return given
    raise InvalidOptionError(f"A schema is a StructType or a string such as 'id BIGINT, name STRING', found {given!r}.")
