"""`DeltaTable.create()` and similar methods: a builder for the definition of a table, with delta-spark's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType as SparkType
from pyspark.sql.types import StructField as SparkField
from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.ddl.create import CreateMode, TableDefinition, create_table
from pyspark_delta.ddl.properties import property_text
from pyspark_delta.display import html_facts, listed
from pyspark_delta.errors import CatalogNameNotFoundError, InvalidOperationError
from pyspark_delta.schema.column_paths import parse_column_path
from pyspark_delta.schema.declaration_keys import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_START,
    IDENTITY_STEP,
)
from pyspark_delta.schema.types import StructField, StructType
from pyspark_delta.spark.api.column_types import delta_field
from pyspark_delta.spark.conf.arguments import check_text
from pyspark_delta.spark.conf.write_defaults import default_properties
from pyspark_delta.spark.frames.generated_types import check_generated_types
from pyspark_delta.spark.frames.tables import read_options
from pyspark_delta.spark.hadoop.default_system import on_default_system
from pyspark_delta.spark.session.identifiers import (
    Identified,
    identify,
    identify_or_create,
    is_in_catalog,
    path_of_identifier,
)
from pyspark_delta.storage import normalize_location
from pyspark_delta.transaction.commit_info import engine_info

TableT = TypeVar("TableT")


@dataclass(frozen=True)
class IdentityGenerator:
    """The values of an identity column: `start`, `start + step` and so on, with gaps.

    Raises TypeError if `start` or `step` is not an int, and ValueError if `step` is 0.
    """

    start: int = 1
    step: int = 1

    def __post_init__(self) -> None:
        for name, value in (("start", self.start), ("step", self.step)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} of an IdentityGenerator is an int, found {type(value).__name__}.")
        if self.step == 0:
            raise ValueError("step of an IdentityGenerator must not be 0.")


class DeltaTableBuilder(Generic[TableT]):
    """A builder for the definition of a table; `execute` creates the table.

    Methods raise TypeError, with the name of the argument, for an argument of the wrong type.

    >>> DeltaTable.create(spark).location("/data/events").addColumn("id", "bigint", nullable=False) \\
    ...     .addColumn("day", "date", generatedAlwaysAs="CAST(at AS DATE)").addColumn("at", "timestamp") \\
    ...     .partitionedBy("day").property("delta.appendOnly", "true").execute()            # doctest: +SKIP
    """

    def __init__(
        self,
        spark: SparkSession,
        mode: CreateMode,
        open_table: Callable[[Identified], TableT],
    ) -> None:
        self._spark = spark
        self._mode = mode
        self._open_table = open_table
        self._fields: list[StructField] = []
        self._properties: dict[str, str] = {}
        self._location: str | None = None
        self._identifier: str | None = None
        self._partitioning: tuple[str, ...] = ()
        self._clustering: tuple[str, ...] = ()
        self._description: str | None = None

    def __repr__(self) -> str:
        facts = (self._identifier, self._location, listed([field.name for field in self._fields]))
        return f"DeltaTableBuilder({', '.join(filter(None, (self._mode.value, *facts)))})"

    def _repr_html_(self) -> str:
        facts = {
            "mode": self._mode.value,
            "table": self._identifier,
            "location": self._location,
            "columns": StructType(tuple(self._fields)) if self._fields else None,
            "partitioned by": listed(self._partitioning),
            "clustered by": listed(self._clustering),
            "comment": self._description,
            **self._properties,
        }
        return html_facts("DeltaTableBuilder", facts)

    def tableName(self, identifier: str) -> DeltaTableBuilder[TableT]:
        """Set the table: a path such as ``delta.`/path/to/table` ``, or a name in a catalog such as `main.s.orders`."""
        self._identifier = check_text("identifier", identifier)
        return self

    def location(self, location: str) -> DeltaTableBuilder[TableT]:
        """Set the location of the table."""
        self._location = check_text("location", location)
        return self

    def comment(self, comment: str) -> DeltaTableBuilder[TableT]:
        """Set the description of the table."""
        self._description = check_text("comment", comment)
        return self

    def addColumn(
        self,
        colName: str,
        dataType: str | SparkType,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
        *,
        default: str | None = None,
    ) -> DeltaTableBuilder[TableT]:
        """Add a column. `dataType` is a PySpark type or its name in SQL.

        `generatedAlwaysAs` is an expression over other columns, in SQL, or an IdentityGenerator. `generatedByDefaultAs`
        is an IdentityGenerator for rows without a value, and `default` an expression in SQL for such rows. Raises
        TypeError, ValueError if both generators are given, and InvalidOperationError for the name of an unknown type.
        """
        check_text("colName", colName)
        if not isinstance(dataType, str | SparkType):
            raise TypeError(f"dataType is a DataType or str, found {type(dataType).__name__} {dataType!r}.")
        if not isinstance(nullable, bool):
            raise TypeError(f"nullable is a bool, found {type(nullable).__name__} {nullable!r}.")
        if comment is not None:
            check_text("comment", comment)
        metadata = _generation(generatedAlwaysAs, generatedByDefaultAs)
        if default is not None:
            metadata[CURRENT_DEFAULT] = check_text("default", default)
        self._fields.append(delta_field(colName, dataType, nullable, comment=comment, metadata=metadata))
        return self

    def addColumns(self, cols: SparkStruct | Sequence[SparkField]) -> DeltaTableBuilder[TableT]:
        """Add all columns of a schema."""
        if not isinstance(cols, SparkStruct | list | tuple) or not all(isinstance(c, SparkField) for c in cols):
            raise TypeError(f"cols is a StructType or a list of StructField, found {type(cols).__name__}.")
        self._fields += [delta_field(f.name, f.dataType, f.nullable, metadata=f.metadata) for f in cols]
        return self

    def partitionedBy(self, *cols: str | Sequence[str]) -> DeltaTableBuilder[TableT]:
        """Set the partition columns."""
        self._partitioning = _names(cols)
        return self

    def clusterBy(self, *cols: str | Sequence[str]) -> DeltaTableBuilder[TableT]:
        """Set the columns by which files are clustered, at most four."""
        self._clustering = _names(cols)
        return self

    def property(self, key: str, value: object) -> DeltaTableBuilder[TableT]:
        """Set a table property; the value is text, a bool or a number."""
        self._properties[check_text("key", key)] = property_text(key, value)
        return self

    def execute(self) -> TableT:
        """Create or replace the table, and return it.

        Raises TableAlreadyExistsError (`create`), TableNotFoundError and CatalogNameNotFoundError (`replace`), and
        InvalidOperationError for an invalid definition or a missing location.
        """
        target = self._target()
        options = read_options(self._spark, target.path, target.storage_options)
        schema = StructType(tuple(self._fields))
        check_generated_types(self._spark, schema)
        create_table(
            options.location,
            TableDefinition(
                schema=schema,
                partition_columns=self._partitioning,
                clustering=tuple(parse_column_path(name) for name in self._clustering),
                properties=self._properties,
                defaults=default_properties(self._spark),
                description=self._description,
            ),
            self._mode,
            storage_options=options.storage_options,
            catalog_table=target.catalog_table,
            engine_info=engine_info(f"PySpark/{self._spark.version}"),
        )
        if target.register is not None:
            target.register(options.location, self._location is not None)
        return self._open_table(replace(target, path=options.location, storage_options=options.storage_options))

    def _target(self) -> Identified:
        path = None
        if self._identifier is not None:
            if is_in_catalog(self._spark, self._identifier):
                return self._in_catalog(self._identifier)
            path = path_of_identifier(self._identifier)
            named = None if path is not None else identify_or_create(self._spark, self._identifier)
            if named is not None:
                return self._in_spark(named, self._identifier)
            if path is None:
                remedy = "Give a location" if self._location is None else "Leave the name out"
                raise InvalidOperationError(
                    f"The table name '{self._identifier}' is neither a path identifier such as delta.`/path/to/table` "
                    "nor a name in a connected catalog, and Spark's catalog does not keep the location of a Delta "
                    f"table. {remedy}, or connect with pyspark_delta.connect_catalog(url).",
                    error_class="DELTA_MISSING_PATH",
                )
        if path is not None and self._location is not None and path != self._location:
            raise InvalidOperationError(
                f"tableName() gives the path '{path}', but location() gives '{self._location}'. Give only one of them.",
                error_class="DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
            )
        target = self._location or path
        if target is None:
            raise InvalidOperationError(
                "Give the name or the location of the table, as in .location('/path/to/table').",
                error_class="DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION",
            )
        return Identified(on_default_system(self._spark, target))

    def _in_spark(self, named: Identified, identifier: str) -> Identified:
        """Return a table of Spark's catalog, a new one at the location that was given."""
        if self._mode is CreateMode.REPLACE and named.register is not None:
            raise CatalogNameNotFoundError(
                f"There is no table '{identifier}' to replace. Define it with createOrReplace.", table=identifier
            )
        location = on_default_system(self._spark, self._location)
        if location is None or normalize_location(location) == normalize_location(named.path):
            return named
        if named.register is None:
            raise InvalidOperationError(
                f"The table '{identifier}' is at '{named.path}', not at '{self._location}'. Leave location() out.",
                error_class="DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
            )
        return replace(named, path=location)

    def _in_catalog(self, identifier: str) -> Identified:
        if self._location is not None:
            raise InvalidOperationError(
                f"The catalog of '{identifier}' chooses the location of the table. Either leave the location "
                f"'{self._location}' out, or create the table there by its path and register it in the catalog.",
                error_class="DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
            )
        find = identify if self._mode is CreateMode.REPLACE else identify_or_create
        found = find(self._spark, identifier)
        assert found is not None
        return found


def _generation(always: str | IdentityGenerator | None, by_default: IdentityGenerator | None) -> dict[str, object]:
    if always is not None and by_default is not None:
        raise ValueError("Give either generatedAlwaysAs or generatedByDefaultAs, not both.")
    if by_default is not None and not isinstance(by_default, IdentityGenerator):
        raise TypeError(f"generatedByDefaultAs is an IdentityGenerator, found {type(by_default).__name__}.")
    identity = always if isinstance(always, IdentityGenerator) else by_default
    if identity is not None:
        return {
            IDENTITY_START: identity.start,
            IDENTITY_STEP: identity.step,
            IDENTITY_ALLOW_EXPLICIT_INSERT: by_default is not None,
        }
    return {} if always is None else {GENERATION_EXPRESSION: check_text("generatedAlwaysAs", always)}


def _names(columns: Sequence[str | Sequence[str]]) -> tuple[str, ...]:
    if len(columns) == 1 and isinstance(columns[0], list | tuple):
        columns = columns[0]
    return tuple(check_text("cols", name) for name in columns)
