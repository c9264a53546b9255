"""Converts schemas between Delta's types and Spark's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import ArrayType, DataType, MapType
from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.errors import CorruptLogError, SchemaMismatchError
from pyspark_delta.schema.declaration_keys import CURRENT_DEFAULT, EXISTS_DEFAULT
from pyspark_delta.schema.inner_names import COLLATIONS_KEY
from pyspark_delta.schema.json import MAX_DEPTH, parse_schema, type_to_json
from pyspark_delta.schema.types import StructType
from pyspark_delta.spark.conf.classes import classic_frame
from pyspark_delta.spark.frames.supported_types import check_types
from pyspark_delta.spark.frames.user_defined_types import with_loadable_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Prefixes of field metadata that Spark must not get: column mapping, generation expressions, type changes (C431),
# defaults, because Spark evaluates their SQL text in the schema of a read, and collations, because it cannot read their
# versions.
_INTERNAL = ("delta.", "parquet.field.", CURRENT_DEFAULT, EXISTS_DEFAULT, COLLATIONS_KEY)
_NULLABILITY = ("nullable", "containsNull", "valueContainsNull")


def to_spark(schema: StructType, *, collated: bool = False) -> SparkStruct:
    """Return the logical schema for Spark: all fields nullable, without the metadata that only the protocol uses.

    With `collated`, texts keep their collations, which must be those of this Spark.

    A file may lack a column that is declared NOT NULL (C374), and Spark would answer `IS NULL` from the declaration.
    Raises UnsupportedTableError for a type that this Spark does not have.
    """
    check_types(schema)
    hidden = tuple(key for key in _INTERNAL if not collated or key != COLLATIONS_KEY)
    return SparkStruct.fromJson(_readable(type_to_json(with_loadable_types(schema)), hidden))


def from_spark(schema_of: Callable[[], SparkStruct]) -> StructType:
    """Return a schema of Spark as Delta types.

    `schema_of` returns Spark's schema; it is called here, because making a schema from text can exceed the recursion
    limit too. Raises UnsupportedTableError with the name of a type that Delta does not have, and SchemaMismatchError
    for nesting that is too deep.
    """
    try:
        return parse_schema(schema_of().json())
    except (CorruptLogError, RecursionError):
        raise SchemaMismatchError(
            f"The columns are nested more than {MAX_DEPTH} levels deep. Store the inner ones as strings, or flatten "
            "them."
        ) from None


def empty_frame(spark: SparkSession, schema: SparkStruct) -> DataFrame:
    """Return an empty frame of a schema.

    In a classic session it is a local relation; `createDataFrame` would make an RDD even for no rows.
    """
    session: Any = spark
    if not hasattr(session, "_jsparkSession"):
        return spark.createDataFrame([], schema)
    java = session._jsparkSession
    rows = session._jvm.java.util.ArrayList()
    frame: DataFrame = classic_frame()(java.createDataFrame(rows, java.parseDataType(schema.json())), session)
    return frame


def differences(*, expected: SparkStruct, given: SparkStruct) -> list[str]:
    """Return the differences of two schemas in names, order and types, as text.

    Nullability and metadata do not count.
    """
    fields = {field.name: field for field in reversed(expected.fields)}
    found = [f"column '{name}' is not in the table" for name in given.names if name not in fields]
    present = frozenset(given.names)
    found += [f"column '{name}' is missing" for name in expected.names if name not in present]
    if not found and given.names != expected.names:
        found.append(f"the order of the columns is {', '.join(expected.names)}")
    for field in given.fields:
        if field.name in fields:
            actual = fields[field.name].dataType
            if _nullable(actual) != _nullable(field.dataType):
                found.append(f"column '{field.name}' is {actual.simpleString()}, not {field.dataType.simpleString()}")
    return found


def _readable(value: Any, hidden: tuple[str, ...]) -> Any:
    if isinstance(value, list):
        return [_readable(item, hidden) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "udt":
        return value
    readable = {key: _readable(item, hidden) for key, item in value.items() if key != "metadata"}
    readable |= {key: True for key in _NULLABILITY if key in value}
    if "metadata" in value:
        readable["metadata"] = {key: kept for key, kept in value["metadata"].items() if not key.startswith(hidden)}
    return readable


def _nullable(data_type: DataType) -> DataType:
    """Return the type with every part nullable and no metadata."""
    if isinstance(data_type, SparkStruct):
        bare = SparkStruct()
        for field in data_type.fields:
            bare.add(field.name, _nullable(field.dataType), True)
        return bare
    if isinstance(data_type, ArrayType):
        return ArrayType(_nullable(data_type.elementType), True)
    if isinstance(data_type, MapType):
        return MapType(_nullable(data_type.keyType), _nullable(data_type.valueType), True)
    return data_type
