"""Column definitions in SQL, such as `id BIGINT NOT NULL, day DATE GENERATED ALWAYS AS (CAST(at AS DATE))`, as schemas.

The grammar is that of CREATE TABLE in Spark and Delta Lake: types, NOT NULL, COMMENT, DEFAULT, GENERATED ALWAYS AS,
and identity columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.lazy_sqlglot import exp, sqlglot, sqlglot_errors
from pyspark_delta.schema.declaration_keys import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_START,
    IDENTITY_STEP,
)
from pyspark_delta.schema.text_lengths import length_metadata
from pyspark_delta.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

_DIALECT = "databricks"
_TYPES: Mapping[str, DataType] = {
    "TINYINT": BYTE,
    "SMALLINT": SHORT,
    "INT": INTEGER,
    "BIGINT": LONG,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "BOOLEAN": BOOLEAN,
    "TEXT": STRING,
    "CHAR": STRING,
    "VARCHAR": STRING,
    "BINARY": BINARY,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMPLTZ": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP_NTZ,
    "VARIANT": VARIANT,
    "NULL": VOID,
}


def parse_columns(text: str) -> StructType:
    """Return the schema that column definitions declare. Raises InvalidOperationError for text that declares none."""
    try:
        parsed = sqlglot.parse_one(f"CREATE TABLE t ({text})", read=_DIALECT)
    except sqlglot_errors.SqlglotError as error:
        raise _invalid(text, "column definitions such as 'id BIGINT NOT NULL, name STRING'", error) from None
    definitions = parsed.this.expressions if isinstance(parsed.this, exp.Schema) else []
    if not definitions or not all(isinstance(one, exp.ColumnDef) and one.args.get("kind") for one in definitions):
        raise _invalid(text, "column definitions such as 'id BIGINT NOT NULL, name STRING'")
    return StructType(tuple(_field(one) for one in definitions))


def parse_data_type(text: str) -> DataType:
    """Return the type that a text names, such as `decimal(10, 2)` or `array<string>`. Raises InvalidOperationError."""
    return parse_column("value", text).type


def parse_column(name: str, text: str) -> StructField:
    """Return a column of the type that a text names; the declared length of char and varchar is in its metadata."""
    try:
        # <> would be an operator; `DataType.build` ignores what follows a type, such as NOT NULL
        parsed = sqlglot.parse_one(text.replace("<>", "< >"), read=_DIALECT, into=exp.DataType)
    except (sqlglot_errors.SqlglotError, ValueError):
        raise _invalid(text, f"a type for the column '{name}', such as 'bigint', and nothing else") from None
    data_type = _data_type(parsed)
    return StructField(name, data_type, True, length_metadata(parsed, data_type))


def _field(definition: exp.ColumnDef) -> StructField:
    kind = definition.args["kind"]
    if not isinstance(definition.this, exp.Identifier):
        raise InvalidOperationError(
            f"The name in the column definition '{definition.sql(_DIALECT)}' is a keyword. Put it in backticks."
        )
    data_type = _data_type(kind)
    nullable, metadata = True, length_metadata(kind, data_type)
    for constraint in definition.args.get("constraints") or ():
        match constraint.kind:
            case exp.NotNullColumnConstraint() as found:
                nullable = bool(found.args.get("allow_null"))
            case exp.CommentColumnConstraint() as found:
                metadata["comment"] = found.this.name
            case exp.DefaultColumnConstraint() as found:
                metadata[CURRENT_DEFAULT] = found.this.sql(_DIALECT)
            case exp.ComputedColumnConstraint() as found:
                metadata[GENERATION_EXPRESSION] = found.this.sql(_DIALECT)
            case exp.GeneratedAsIdentityColumnConstraint() as found:
                metadata |= _identity(found)
            case found:
                raise _invalid(definition.sql(_DIALECT), f"supported: {found.sql(_DIALECT)} has no meaning in Delta")
    return StructField(definition.this.name, data_type, nullable, metadata)


def _identity(found: exp.GeneratedAsIdentityColumnConstraint) -> dict[str, object]:
    numbers = {
        name: int(value.sql()) if (value := found.args.get(key)) is not None else 1
        for name, key in (("start", "start"), ("step", "increment"))
    }
    if not numbers["step"]:
        raise InvalidOperationError("The step of an identity column must not be 0.")
    return {
        IDENTITY_START: numbers["start"],
        IDENTITY_STEP: numbers["step"],
        IDENTITY_ALLOW_EXPLICIT_INSERT: not found.this,
    }


def _data_type(parsed: Any) -> DataType:
    if parsed.args.get("collate") is not None:
        raise _invalid(parsed.sql(_DIALECT), "supported without Spark, which knows the collations")
    inner = parsed.expressions
    kind = getattr(parsed.this, "value", "")  # an interval has none
    match kind:
        case "DECIMAL":
            numbers = [int(one.name) for one in inner]
            precision, scale = (numbers + [10, 0][len(numbers) :])[:2]
            if not 1 <= precision <= 38 or not 0 <= scale <= precision:
                raise _invalid(parsed.sql(_DIALECT), "a decimal of 1 to 38 digits")
            return DecimalType(precision, scale)
        case "ARRAY" if len(inner) == 1:
            return ArrayType(_data_type(inner[0]), True)
        case "MAP" if len(inner) == 2:
            return MapType(_data_type(inner[0]), _data_type(inner[1]), True)
        case "STRUCT":
            return StructType(tuple(_field(one) for one in inner))
        case _ if kind in _TYPES:
            return _TYPES[kind]
    raise _invalid(parsed.sql(_DIALECT), "a type that Delta tables have")


def _invalid(text: str, wanted: str, error: Exception | None = None) -> InvalidOperationError:
    why = "" if error is None else f" {str(error).splitlines()[0]}"
    return InvalidOperationError(f"'{text}' is not {wanted}.{why}")
