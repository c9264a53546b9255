"""From what Spark hands a catalog for CREATE and REPLACE to the definition of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.types import StructField as SparkField
from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.ddl.constraints import constraint_properties
from pyspark_delta.ddl.create import TableDefinition
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.schema.column_paths import parse_column_path, quoted
from pyspark_delta.schema.declaration_keys import (
    EXISTS_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_START,
    IDENTITY_STEP,
)
from pyspark_delta.spark.frames.catalyst.jvm import Jvm
from pyspark_delta.spark.frames.catalyst.nodes import kind_of, text_entries
from pyspark_delta.spark.frames.schemas import from_spark
from pyspark_delta.spark.sql.classic.providers import provider_name
from pyspark_delta.spark.sql.classic.relations import CATALYST, CONNECTOR
from pyspark_delta.write.options import WriteOptions

_DROPPED = frozenset((EXISTS_DEFAULT, "GENERATION_EXPRESSION"))  # keys of field metadata that Delta does not have
_COLUMN = f"{CONNECTOR}.Column"
_OPTION = "option."
_PROVIDER, _LOCATION, _COMMENT = "provider", "location", "comment"
_RESERVED = frozenset((_PROVIDER, _LOCATION, _COMMENT, "owner", "external", "is_managed_location", "table_type"))


@dataclass(frozen=True)
class Declared:
    """What a CREATE or REPLACE declares.

    `provider` is the format after USING, in lower case, None for the session's default. `clustering` are column names
    as users write them. `is_external` is True if the statement gives the location.
    """

    definition: TableDefinition
    provider: str | None
    location: str | None
    clustering: tuple[str, ...]
    is_external: bool

    def options(self, options: WriteOptions) -> WriteOptions:
        """Return the options of a write that creates the table from a query."""
        definition = self.definition
        return replace(
            options,
            partition_by=definition.partition_columns or None,
            cluster_by=self.clustering,
            properties={**options.properties, **definition.properties},
            description=definition.description,
        )


def declared(jvm: Jvm, info: tuple[Any, ...]) -> Declared:
    """Return what a call of `createTable` or of `stage...` declares, from its arguments after the identifier.

    They are one `TableInfo`, or columns, partitioning and properties. Raises InvalidOperationError for a partitioning
    that Delta does not have, and as `from_spark`.
    """
    constraints: Mapping[str, str] = {}
    if len(info) == 1:
        columns, partitions, properties = info[0].columns(), info[0].partitions(), info[0].properties()
        constraints = _constraints(info[0].constraints())
    else:
        columns, partitions, properties = info
    given = text_entries(properties)
    partitioning, clustering = _partitioning(partitions)
    table = TableDefinition(
        schema=from_spark(lambda: _schema(jvm, columns)),
        partition_columns=partitioning,
        clustering=tuple(parse_column_path(name) for name in clustering),
        properties={**_table_properties(given), **constraints},
        description=given.get(_COMMENT),
    )
    provider = given.get(_PROVIDER)
    managed = given.get("is_managed_location", "false").lower() == "true"
    location = given.get(_LOCATION)
    return Declared(
        table,
        provider_name(provider),
        location,
        clustering,
        "external" in given or (location is not None and not managed),
    )


def provider_of(info: tuple[Any, ...]) -> str | None:
    """Return the format after USING in lower case, as `declared`, without reading the rest."""
    properties = info[0].properties() if len(info) == 1 else info[-1]
    found = properties.get(_PROVIDER)
    return None if found is None else provider_name(str(found))


def _table_properties(given: dict[str, str]) -> dict[str, str]:
    """Return the table properties. Spark adds OPTIONS twice, with and without a prefix; they are none."""
    options = {key[len(_OPTION) :] for key in given if key.startswith(_OPTION)}
    return {
        key: value
        for key, value in given.items()
        if key not in _RESERVED and not key.startswith(_OPTION) and key not in options
    }


def _constraints(constraints: Any) -> dict[str, str]:
    """Return CHECK constraints as table properties. Raises InvalidOperationError for those that Delta does not have."""
    checks: list[tuple[str, str]] = []
    for one in constraints:
        if kind_of(one) != "Check" or not one.enforced():
            raise InvalidOperationError(
                f"Delta tables have enforced CHECK constraints only, found {one.toDDL()}. Nothing was created. Leave "
                "the constraint out, or declare NOT NULL or CHECK (condition).",
                error_class="DELTA_UNSUPPORTED_CONSTRAINT",
                sqlstate="0A000",
            )
        checks.append((str(one.name()), str(one.predicateSql())))
    return constraint_properties(checks)


def _schema(jvm: Jvm, columns: Any) -> SparkStruct:
    struct = jvm.module(f"{CONNECTOR}.CatalogV2Util").v2ColumnsToStructType(columns)
    struct = jvm.type(f"{CATALYST}.util.CharVarcharUtils").replaceCharVarcharWithStringInSchema(struct)
    fields = SparkStruct.fromJson(_json(struct)).fields
    return SparkStruct([_field(jvm, field, column) for field, column in zip(fields, columns, strict=True)])


def _json(struct: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(struct.json())
    return found


def declared_field(field: SparkField) -> SparkField:
    """Return a field of a declaration without the keys of Spark's metadata that Delta does not have."""
    metadata = {key: value for key, value in field.metadata.items() if key not in _DROPPED}
    return SparkField(field.name, field.dataType, field.nullable, metadata)


def _field(jvm: Jvm, field: SparkField, column: Any) -> SparkField:
    """Return a field with Delta's metadata. Which declarations Spark puts into the metadata depends on its version."""
    metadata = dict(declared_field(field).metadata)
    generated = column.generationExpression()
    identity = column.identityColumnSpec() if jvm.has_method(_COLUMN, "identityColumnSpec") else None
    if generated is not None:
        metadata[GENERATION_EXPRESSION] = str(generated)
    if identity is not None:
        metadata |= {
            IDENTITY_START: int(identity.getStart()),
            IDENTITY_STEP: int(identity.getStep()),
            IDENTITY_ALLOW_EXPLICIT_INSERT: bool(identity.isAllowExplicitInsert()),
        }
    return SparkField(field.name, field.dataType, field.nullable, metadata)


def _partitioning(transforms: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the partition columns, and the clustering columns as users write them."""
    partitioning: list[str] = []
    clustering: list[str] = []
    for transform in transforms:
        kind, names = str(transform.name()), [tuple(map(str, one.fieldNames())) for one in transform.references()]
        if kind == "identity":
            partitioning += [".".join(name) for name in names]  # partition columns are not nested
        elif kind == "cluster_by":
            clustering += [quoted_path(name) for name in names]
        else:
            raise InvalidOperationError(
                f"Delta tables cannot be partitioned by {transform.describe()}: only columns can be partition columns. "
                "Declare a generated column for the expression, and partition by it; or use CLUSTER BY.",
                error_class="DELTA_OPERATION_NOT_ALLOWED",
            )
    return tuple(partitioning), tuple(clustering)


def quoted_path(parts: tuple[str, ...]) -> str:
    """Return the path of a column as users write it."""
    return ".".join(quoted(part) for part in parts)
