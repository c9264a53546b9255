"""The Python Data Source `delta`: `spark.read.format("delta")` uses it if the session is not enabled.

Spark runs it in short-lived processes: one to look it up, one for the schema, one to plan, and workers to read. All of
them import this module. So it imports only PySpark and the errors of this package, and the rest when it is used.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from pyspark_delta.spark.source.availability import require_stream_reader, require_stream_writer
from pyspark_delta.spark.source.boundary import boundary

if TYPE_CHECKING:
    from pyspark_delta.spark.source.request import ReadRequest
    from pyspark_delta.spark.source.stream_reader import StreamRequest

__all__ = ["DefaultSource", "DeltapySource"]

_NO_START = "DELTA_NO_START_FOR_CDC_READ"  # a stream needs none


class DefaultSource(DataSource):
    """Reads and writes Delta tables.

    Spark finds it under the name in the environment variable `PYSPARK_DELTA_SHORT_NAME`, by default `delta`. A read
    resolves the version when the DataFrame is created, so its schema and its rows are of the same version.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._request: ReadRequest | None = None

    @classmethod
    def name(cls) -> str:
        return os.environ.get("PYSPARK_DELTA_SHORT_NAME") or "delta"

    def schema(self) -> StructType:
        with boundary():
            from pyspark_delta.errors import InvalidOptionError
            from pyspark_delta.spark.frames.stream_options import has_stream_options, tracks_schema

            if tracks_schema(self.options):
                return self._stream().spark_schema()
            try:
                return self._resolve().spark_schema()
            except InvalidOptionError as error:
                # Spark does not say if the rows are read as a stream, whose options are errors in other reads.
                if not has_stream_options(self.options, only=error.error_class == _NO_START):
                    raise
                try:
                    request = self._stream()
                except InvalidOptionError:
                    raise error from None
                return request.spark_schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        with boundary():
            from pyspark_delta.spark.source.reader import make_reader

            request = self._resolve()
            request.check_schema(schema)
            return make_reader(request, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        with boundary():
            from pyspark_delta.spark.source.writer import make_writer

            return make_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        with boundary():
            require_stream_writer()
            from pyspark_delta.spark.source.stream_writer import make_stream_writer

            return make_stream_writer(self.options, schema, overwrite=overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        with boundary():
            request = self._stream()
            from pyspark_delta.spark.source.stream_reader import make_stream_reader

            return make_stream_reader(request, schema)

    def _stream(self) -> StreamRequest:
        require_stream_reader()
        from pyspark_delta.spark.source.stream_reader import StreamRequest

        return StreamRequest.parse(self.options)

    def _resolve(self) -> ReadRequest:
        if self._request is None:
            from pyspark_delta.spark.source.request import ReadRequest

            self._request = ReadRequest.resolve(self.options)
        return self._request


class DeltapySource(DefaultSource):
    """The same source under the name `deltapy`, which no other implementation of Delta Lake uses."""

    @classmethod
    def name(cls) -> str:
        return "deltapy"
