"""The types of Delta that this PySpark does not have."""

from __future__ import annotations

import pyspark
from pyspark.sql import types as spark_types

from pyspark_delta.errors import UnsupportedTableError
from pyspark_delta.schema.types import ArrayType, MapType, StructType

_HAS_VARIANT = hasattr(spark_types, "VariantType")


def check_types(schema: StructType) -> None:
    """Raise UnsupportedTableError for columns of type VARIANT on PySpark 3.5."""
    if _HAS_VARIANT:
        return
    name = next((field.name for field in schema if holds_variant(field.type)), None)
    if name is not None:
        raise UnsupportedTableError(
            f"The column '{name}' has the type VARIANT, which Spark has from 4.0 on, found {pyspark.__version__}. Use "
            "pyspark_delta.Table, or install PySpark 4.0 or newer.",
            error_class="DELTA_UNSUPPORTED_DATA_TYPES",
        )


def holds_variant(data_type: object) -> bool:
    """Return True if a type is VARIANT, or has a part of this type."""
    match data_type:
        case StructType(fields):
            return any(holds_variant(field.type) for field in fields)
        case ArrayType(element):
            return holds_variant(element)
        case MapType(key, value):
            return holds_variant(key) or holds_variant(value)
        case _:
            return str(data_type) == "variant"
