"""`df.writeTo` of enabled sessions: PySpark's DataFrameWriterV2, for paths and for names in catalogs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark.sql import Column

from pyspark_delta.ddl.properties import property_text
from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.classes import has_data_sources
from pyspark_delta.spark.conf.sessions import FORMATS, STAND_IN
from pyspark_delta.spark.engine.write.save import write_table
from pyspark_delta.spark.frames.column_text import column_name, condition_text
from pyspark_delta.spark.session.frame_writer import refuse_name, refusing_views
from pyspark_delta.spark.session.identifiers import check_path_option, identify, identify_or_create, is_named
from pyspark_delta.spark.session.mixins import ClusteringMixin, OptionsMixin
from pyspark_delta.spark.session.sql_hooks import find_named, has_sql
from pyspark_delta.storage import normalize_location
from pyspark_delta.write.engine import WriteRequest
from pyspark_delta.write.options import parse_options


class DeltaAwareTableWriter(ClusteringMixin, OptionsMixin):
    """PySpark's DataFrameWriterV2 with Delta."""

    _delta_partitioning: tuple[str, ...] = ()

    def _delta_begin_table(self, table: str) -> None:
        self._delta_table = table
        spark = self._delta_session
        self._delta_is_named = is_named(spark, table) or find_named(spark, table, create=False) is not None
        self._delta_source = "delta" if self._delta_is_named else ""
        self._delta_properties: dict[str, str] = {}

    def using(self, provider: str) -> Any:
        self._delta_source = provider.lower()
        stands_in = self._delta_source in FORMATS and not has_data_sources()
        return super().using(STAND_IN if stands_in else provider)

    def tableProperty(self, property: str, value: str) -> Any:  # noqa: A002
        self._delta_properties[property] = property_text(property, value)
        return super().tableProperty(property, value)

    def partitionedBy(self, col: Column, *cols: Column) -> Any:
        if not self._delta_is_named:
            return super().partitionedBy(col, *cols)
        # A classic session would parse the name again, and reject spaces in it.
        self._delta_partitioning = tuple(column_name(one, "partitionedBy") for one in (col, *cols))
        return self

    def clusterBy(self, col: str, *cols: str) -> Any:
        return super().clusterBy(col, *cols)

    def create(self) -> None:
        self._delta_write(super().create, "error", statement="CREATE TABLE AS SELECT")

    def replace(self) -> None:
        self._delta_write(super().replace, "replace", must_exist=True, statement="REPLACE TABLE AS SELECT")

    def createOrReplace(self) -> None:
        self._delta_write(super().createOrReplace, "replace", statement="CREATE OR REPLACE TABLE AS SELECT")

    def append(self) -> None:
        self._delta_write(super().append, "append", must_exist=True)

    def overwrite(self, condition: Column) -> None:
        where, overwrite = "", super().overwrite
        found = identify(self._delta_session, self._delta_table)
        if found is not None:
            snapshot = Snapshot.load(
                normalize_location(found.path),
                storage_options=found.storage_options,
                catalog_table=found.catalog_table,
            )
            where = condition_text(self._delta_session, condition, snapshot.schema)
        self._delta_write(lambda: overwrite(condition), "overwrite", must_exist=True, replaceWhere=where)

    def overwritePartitions(self) -> None:
        dynamic = {"partitionOverwriteMode": "dynamic"}
        self._delta_write(super().overwritePartitions, "overwrite", must_exist=True, **dynamic)

    def _delta_write(
        self,
        without_delta: Callable[[], None],
        mode: str,
        *,
        must_exist: bool = False,
        statement: str = "",
        **more: str,
    ) -> None:
        if not self._delta_is_named:
            if self._delta_source in FORMATS and not has_sql(self._delta_session):
                refuse_name(self._delta_session, self._delta_table)
            self._delta_check_clustering("use df.write.format('delta').clusterBy(...).saveAsTable(name)")
            with refusing_views(self._delta_table):
                without_delta()
            return
        if self._delta_source not in FORMATS:
            raise InvalidOptionError(
                f"'{self._delta_table}' is a Delta table, but using('{self._delta_source}') names another format."
            )
        find = identify if must_exist else identify_or_create
        check_path_option(self._delta_session, self._delta_table, self._delta_options.items())
        found = find(self._delta_session, self._delta_table)
        assert found is not None
        options = parse_options(self._delta_options.items({**more, **found.storage_options}))
        if statement:
            options = replace(
                options,
                partition_by=self._delta_partitioning or options.partition_by,
                cluster_by=self._delta_clustering or options.cluster_by,
                properties={**options.properties, **self._delta_properties},
            )
        options = replace(options, catalog_table=found.catalog_table)
        location = normalize_location(found.path)
        write_table(self._delta_frame, WriteRequest(location, mode, options, must_exist, statement))
