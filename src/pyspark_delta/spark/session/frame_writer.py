"""`df.write` of enabled sessions: PySpark's DataFrameWriter, with Delta writes by pyspark-delta."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from pyspark_delta.errors import CatalogError, DeltaWarning, InvalidOperationError, InvalidOptionError
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.spark.conf.conditions import condition_of
from pyspark_delta.spark.conf.sessions import FORMATS
from pyspark_delta.spark.engine.write.save import insert_into, save
from pyspark_delta.spark.hadoop.default_system import on_default_system
from pyspark_delta.spark.session.format_check import FormatCheckedWriter
from pyspark_delta.spark.session.identifiers import (
    Identified,
    check_path_option,
    identify,
    identify_or_create,
    is_named,
)
from pyspark_delta.spark.session.mixins import column_names, path_option
from pyspark_delta.spark.session.sql_hooks import has_sql
from pyspark_delta.storage import normalize_location
from pyspark_delta.write.options import parse_mode, parse_options

# Spark's error classes for a write to a view, by its name or by its plan.
_VIEW_REFUSED = ("EXPECT_TABLE_NOT_VIEW", "UNSUPPORTED_INSERT", "VIEW_WRITE_NOT_ALLOWED")


class DeltaAwareWriter(FormatCheckedWriter):
    """PySpark's DataFrameWriter with Delta."""

    _delta_partitioning: tuple[str, ...] | None = None
    _delta_buckets: str | None = None  # the method that was called: bucketBy or sortBy

    def mode(self, saveMode: str | None) -> Any:
        if saveMode is not None:
            self._delta_mode = saveMode
        try:
            super().mode(saveMode)
        except Exception:
            # Spark refuses an unknown mode here. For Delta, `save` refuses it and lists the known modes.
            if (self._delta_source or "").lower() not in FORMATS:
                raise
        return self

    def partitionBy(self, *cols: Any) -> Any:
        self._delta_partitioning = column_names(cols)
        return super().partitionBy(*cols)

    def bucketBy(self, numBuckets: int, col: Any, *cols: Any) -> Any:
        self._delta_buckets = "bucketBy"
        return super().bucketBy(numBuckets, col, *cols)

    def sortBy(self, col: Any, *cols: Any) -> Any:
        self._delta_buckets = "sortBy"
        return super().sortBy(col, *cols)

    def save(
        self,
        path: Any = None,
        format: Any = None,  # noqa: A002
        mode: Any = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        if not self._delta_chosen(format):
            super().save(path, format, mode, partitionBy, **options)
            return
        self._delta_save(path, mode, partitionBy, options, None)

    def _delta_save(
        self, path: Any, mode: Any, partitionBy: Any, options: Mapping[str, Any], table: CatalogTable | None
    ) -> None:
        partitioning = self._delta_partitioning
        if partitionBy is not None:
            partitioning = column_names((partitionBy,) if isinstance(partitionBy, str) else partitionBy)
        if self._delta_buckets is not None:
            raise InvalidOperationError(
                f"Delta tables have no buckets: leave {self._delta_buckets} out, or use clusterBy."
            )
        given = self._delta_options.items(options)
        save(
            self._delta_frame,
            _location_to_save(self._delta_session, path, given),
            mode or self._delta_mode,
            partitioning,
            given,
            cluster_by=self._delta_clustering,
            catalog_table=table,
        )

    def saveAsTable(
        self,
        name: str,
        format: Any = None,  # noqa: A002
        mode: Any = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        check_path_option(self._delta_session, name, self._delta_options.items(options))
        is_chosen = self._delta_chosen(format)
        find = identify_or_create if is_chosen or is_named(self._delta_session, name) else identify
        found = find(self._delta_session, name)
        if found is not None:
            given = {**options, **found.storage_options}
            path = path_option(self._delta_options.items(options)) if found.register is not None else None
            self._delta_save(path or found.path, mode, partitionBy, given, found.catalog_table)
            if found.register is not None:
                self._delta_register(found, normalize_location(path or found.path), mode, is_external=path is not None)
        elif is_chosen:
            refuse_name(self._delta_session, name)
        else:
            super().saveAsTable(name, format, mode, partitionBy, **options)

    def _delta_register(self, found: Identified, location: str, mode: Any, *, is_external: bool) -> None:
        """Give a new table its name. A failure is a warning if the rows would be added again.

        Other modes raise CatalogError: to repeat them adds no rows.
        """
        assert found.register is not None
        try:
            found.register(location, is_external)
        except CatalogError as error:
            if parse_mode(mode or self._delta_mode) != "append":
                raise
            warnings.warn(DeltaWarning(error.message), stacklevel=3)

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:
        check_path_option(self._delta_session, tableName, self._delta_options.items())
        found = identify(self._delta_session, tableName)
        if found is None:
            with refusing_views(tableName):
                super().insertInto(tableName, overwrite)
            return
        if self._delta_partitioning is not None:
            raise InvalidOperationError(
                "insertInto writes to a table that has its partitioning already: leave partitionBy out."
            )
        replaces = overwrite if overwrite is not None else (self._delta_mode or "").lower() == "overwrite"
        options = parse_options(self._delta_options.items(found.storage_options))
        options = replace(options, catalog_table=found.catalog_table)
        insert_into(self._delta_frame, normalize_location(found.path), options, overwrite=replaces)


def refuse_name(spark: SparkSession, name: str) -> NoReturn:
    """Raise InvalidOperationError for a table that is not Delta, or in a catalog that does not keep its location."""
    if has_sql(spark):
        raise InvalidOperationError(
            f"Cannot write to '{name}' as a Delta table: it is a view, or a table of another format. Nothing was "
            "written. Choose another name, or drop it first.",
            error_class="DELTA_NOT_A_DELTA_TABLE",
        )
    raise InvalidOperationError(
        f"Cannot write to table '{name}': Spark's catalog does not keep the location of a Delta table, so its rows "
        'would be lost. Nothing was written. Write to a path, as in df.write.format("delta").save("/path/to/table") or '
        'df.writeTo("delta.`/path/to/table`"); or connect to a catalog with pyspark_delta.connect_catalog(url), and '
        "give the table a name in it, such as main.sales.orders.",
        error_class="DELTA_TABLE_LOCATION_UNKNOWN",
    )


@contextmanager
def refusing_views(name: str) -> Iterator[None]:
    """Raise InvalidOperationError, with an alternative, if Spark refuses to write into a view while the block runs."""
    try:
        yield
    except AnalysisException as error:
        if not condition_of(error).startswith(_VIEW_REFUSED):
            raise
        raise InvalidOperationError(
            f"'{name}' is a view, and rows cannot be written into a view. Nothing was written. Write to the table that "
            "the view reads: to its path, as in "
            'df.write.format("delta").mode("append").save("/path/to/table"), or to its name in a connected catalog, '
            "such as main.sales.orders.",
            error_class="DELTA_CANNOT_WRITE_INTO_VIEW",
            sqlstate="0A000",
        ) from error


def _location_to_save(spark: SparkSession, path: Any, options: Mapping[str, str]) -> str:
    target = path or path_option(options)
    if not target:
        raise InvalidOptionError(
            'Writing format \'delta\' needs a path, as in df.write.format("delta").save("/path/to/table").',
            error_class="DELTA_MISSING_PATH",
        )
    return normalize_location(on_default_system(spark, target))
