"""CREATE TABLE and REPLACE TABLE, with and without a query, in the catalogs that Spark reaches through Python."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.ddl.create import CreateMode, create_table
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.schema.stored import check_no_intervals
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.sessions import FORMATS
from pyspark_delta.spark.conf.write_defaults import default_properties
from pyspark_delta.spark.engine.write.save import write_table
from pyspark_delta.spark.frames.catalyst.jvm import Jvm
from pyspark_delta.spark.frames.catalyst.proxies import crossing
from pyspark_delta.spark.frames.generated_types import check_generated_types
from pyspark_delta.spark.frames.schemas import to_spark
from pyspark_delta.spark.sql.classic.definitions import Declared, declared
from pyspark_delta.spark.sql.classic.relations import CONNECTOR
from pyspark_delta.spark.sql.classic.sessions import SessionReference
from pyspark_delta.spark.sql.classic.travel import parts_of
from pyspark_delta.spark.sql.classic.writes import StagedDeltaTable, Target, WritableTable
from pyspark_delta.spark.sql.transactions import check_none
from pyspark_delta.transaction.commit_info import engine_info
from pyspark_delta.write.engine import WriteRequest
from pyspark_delta.write.options import parse_options

_STATEMENTS = {
    CreateMode.CREATE: "CREATE TABLE AS SELECT",
    CreateMode.REPLACE: "REPLACE TABLE AS SELECT",
    CreateMode.CREATE_OR_REPLACE: "CREATE OR REPLACE TABLE AS SELECT",
}


def _nothing() -> None:
    return None


@dataclass(frozen=True)
class Destination:
    """The place of a table that a statement creates or writes to. `register` gives a new table its name, if needed.

    With `is_managed`, Spark's catalog deletes the files with the table.
    """

    location: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    catalog_table: CatalogTable | None = None
    register: Callable[[], None] = _nothing
    is_managed: bool = False


class Creation:
    """The methods of Spark's `StagingTableCatalog`, for a class that says where a new table is."""

    INTERFACE: ClassVar[str] = f"{CONNECTOR}.StagingTableCatalog"
    _session: SessionReference
    _jvm: Jvm

    # ------------------------------------------------------------------------------------------ called by the JVM
    @crossing
    def createTable(self, identifier: Any, *info: Any) -> Any:
        """Create a table. Null as the answer tells Spark to load it if it needs it."""
        parts, made = parts_of(identifier), self._declared(info)
        destination = self._destination(parts, made, CreateMode.CREATE)
        self._create(destination, made, CreateMode.CREATE)

    @crossing
    def stageCreate(self, identifier: Any, *info: Any) -> Any:
        return self._stage(identifier, info, CreateMode.CREATE)

    @crossing
    def stageReplace(self, identifier: Any, *info: Any) -> Any:
        return self._stage(identifier, info, CreateMode.REPLACE)

    @crossing
    def stageCreateOrReplace(self, identifier: Any, *info: Any) -> Any:
        return self._stage(identifier, info, CreateMode.CREATE_OR_REPLACE)

    def createTableLike(self, identifier: Any, info: Any, source: Any) -> Any:
        """Create a table with the columns of another one, which are in `info` already."""
        return self.createTable(identifier, info)

    @crossing
    def loadChangelog(self, identifier: Any, *context: Any) -> Any:
        name = ".".join(parts_of(identifier))
        raise InvalidOperationError(
            f"CHANGES of a Delta table is a function: SELECT * FROM table_changes('{name}', first_version), or "
            "table_changes_by_path('/path/to/table', first_version).",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
        )

    def supportedCustomMetrics(self) -> Any:
        return self._jvm.array((), "org.apache.spark.sql.connector.metric.CustomMetric")

    # -------------------------------------------------------------------------------------------- for subclasses
    @abstractmethod
    def _destination(self, parts: Sequence[str], made: Declared, mode: CreateMode) -> Destination:
        """Return the place of a new or replaced table. Raises InvalidOperationError if it cannot be there."""

    # --------------------------------------------------------------------------------------------------- details
    def _declared(self, info: tuple[Any, ...]) -> Declared:
        made = declared(self._jvm, info)
        if made.provider is not None and made.provider not in FORMATS:
            raise InvalidOperationError(
                f"This catalog has Delta tables only, but the statement says USING {made.provider}. Nothing was "
                "created. Say USING delta, or create the table in spark_catalog.",
                error_class="DELTA_OPERATION_NOT_ALLOWED",
            )
        for column in made.definition.schema:
            check_no_intervals(column)  # or Spark would complain about the type of the query's column
        return made

    def _create(self, destination: Destination, made: Declared, mode: CreateMode) -> None:
        spark = self._session.spark
        check_none(spark, _STATEMENTS[mode].removesuffix(" AS SELECT"))
        check_generated_types(spark, made.definition.schema)
        create_table(
            destination.location,
            replace(made.definition, defaults=default_properties(spark), is_managed=destination.is_managed),
            mode,
            storage_options=destination.storage_options,
            catalog_table=destination.catalog_table,
            engine_info=engine_info(f"PySpark/{spark.version}"),
        )
        destination.register()

    def _stage(self, identifier: Any, info: tuple[Any, ...], mode: CreateMode) -> Any:
        check_none(self._session.spark, _STATEMENTS[mode])
        parts, made = parts_of(identifier), self._declared(info)
        destination = self._destination(parts, made, mode)

        def write(frame: DataFrame, _: str, __: bool | None, options: Mapping[str, str]) -> None:
            parsed = made.options(parse_options({**options, **destination.storage_options}))
            parsed = replace(parsed, catalog_table=destination.catalog_table)
            kind = "error" if mode is CreateMode.CREATE else "replace"
            must_exist = mode is CreateMode.REPLACE
            request = WriteRequest(destination.location, kind, parsed, must_exist, _STATEMENTS[mode])
            write_table(frame, replace(request, is_managed=destination.is_managed))

        def finish(is_written: bool) -> None:
            if is_written:
                destination.register()
            else:
                self._create(destination, made, mode)

        target = Target(parts, to_spark(made.definition.schema, collated=True))
        return StagedDeltaTable(self._session, target, write, finish)


def writable(session: SessionReference, snapshot: Snapshot, name: Sequence[str]) -> WritableTable:
    """Return an existing table that Spark writes to."""
    schema: SparkStruct = to_spark(snapshot.schema)

    def write(frame: DataFrame, mode: str, dynamic: bool | None, options: Mapping[str, str]) -> None:
        parsed = parse_options({**options, **snapshot.storage_options})
        parsed = replace(parsed, catalog_table=snapshot.catalog_table)
        if dynamic is not None:
            parsed = replace(parsed, dynamic_partitions=dynamic)
        write_table(frame, WriteRequest(snapshot.location, mode, parsed, must_exist=True))

    return WritableTable(session, Target(tuple(name), schema), write)
