"""The columns of a relation over data files (physical), and the projection to the columns of the table (logical)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql import types as spark_types

from pyspark_delta.features import Feature, is_supported
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID
from pyspark_delta.scan.planner import ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN, ROW_TRACKING_FIELDS
from pyspark_delta.schema.column_mapping import field_id, mapping_mode, physical_field
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.schema.declaration_keys import CURRENT_DEFAULT, EXISTS_DEFAULT
from pyspark_delta.schema.json import type_to_json
from pyspark_delta.schema.text_lengths import DECLARED_TYPE, padded_length
from pyspark_delta.schema.types import (
    LONG,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from pyspark_delta.schema.widening import has_changes, has_unlisted_changes
from pyspark_delta.spark.conf.classes import has_shredding_reader, has_widening_reader
from pyspark_delta.spark.frames.catalyst.predicates import RelationColumn
from pyspark_delta.spark.frames.char_columns import padded_column, pads_texts
from pyspark_delta.spark.frames.supported_types import check_types, holds_variant
from pyspark_delta.spark.frames.user_defined_types import is_loadable, without_code
from pyspark_delta.storage.hadoop import hadoop_options

PARQUET_FIELD_ID = "parquet.field.id"
ROW_INDEX = StructField("_tmp_metadata_row_index", LONG)  # the name that Spark's Parquet reader gives it

# These options override settings of the session: rows must not depend on them, and no missing file may be ignored.
RELATION_OPTIONS = {
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
}
# By default Hadoop looks for a checksum file next to each local file, which fails for names such as `a:b.parquet`.
LOCAL_FILE_SYSTEM = "fs.file.impl"
PLAIN_LOCAL_FILES = {
    LOCAL_FILE_SYSTEM: "org.apache.hadoop.fs.RawLocalFileSystem",
    f"{LOCAL_FILE_SYSTEM}.disable.cache": "true",
}
# Match columns by field id. In a file without ids, all columns are missing; Spark must not raise an error (C248).
FIELD_ID_SETTINGS = ("spark.sql.parquet.fieldId.read.enabled", "spark.sql.parquet.fieldId.read.ignoreMissing")
# If a file lacks a column with EXISTS_DEFAULT, Spark would evaluate that SQL text; in Delta the value is null.
_INTERNAL_METADATA = ("delta.", "parquet.field.", CURRENT_DEFAULT, EXISTS_DEFAULT)


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The layout of a table's columns in its files.

    `mode` is the column mapping mode. `data` and `partition` are the columns in the files and in the log; a void column
    is in neither. `stored_row_id` and `stored_row_commit_version` are the physical names of columns that override the
    row ids implied by a file, if the table has them.
    """

    schema: StructType
    mode: str
    data: tuple[RelationColumn, ...]
    partition: tuple[RelationColumn, ...]
    stored_row_id: str | None = None
    stored_row_commit_version: str | None = None

    @property
    def relation_columns(self) -> tuple[RelationColumn, ...]:
        """The columns of a relation, which a predicate may name."""
        return self.data + self.partition

    @property
    def names(self) -> Iterator[str]:
        """The names of all columns, in the table and in its files."""
        for column in self.relation_columns:
            yield column.physical.name
        for field in self.schema:
            yield field.name

    def data_schema(self, *, row_index: bool = False, row_tracking: bool = False) -> StructType:
        """Return the schema to read files with: physical names, everything nullable, field ids in the mode `id`.

        `row_tracking` adds the stored row ids. For `row_index`, the Parquet reader computes the position of each row in
        its file.
        """
        fields = [_readable(column.physical, by_id=self.mode == "id") for column in self.data]
        if row_tracking:
            names = (self.stored_row_id, self.stored_row_commit_version)
            fields += [StructField(name, LONG) for name in names if name is not None]
        if row_index:
            fields.append(ROW_INDEX)
        return StructType(tuple(fields))

    def partition_schema(self) -> StructType:
        """Return the partition columns under their physical names."""
        return StructType(tuple(_readable(column.physical, by_id=False) for column in self.partition))


def table_columns(
    configuration: TableConfiguration, stored_too: Sequence[StructField] = (), constants: Sequence[StructField] = ()
) -> TableColumns:
    """Return the columns of one version of a table. Raises as `check_types` and `physical_field`.

    Columns outside of its schema follow: `stored_too` are in the files under the same names, `constants` are among the
    partition values of each file.
    """
    check_types(configuration.schema)
    mode = mapping_mode(configuration)
    partitioned = {name.casefold() for name in configuration.partition_columns}
    columns = [RelationColumn(field, physical_field(field, mode)) for field in configuration.schema]
    stored = [c for c in columns if c.logical.type != VOID]
    by_name = {c.logical.name.casefold(): c for c in stored}
    in_files = [c for c in stored if c.logical.name.casefold() not in partitioned]
    in_log = [by_name[name.casefold()] for name in configuration.partition_columns if name.casefold() in by_name]
    return TableColumns(
        StructType((*configuration.schema, *stored_too, *constants)),
        mode,
        (*in_files, *(RelationColumn(field, field) for field in stored_too)),
        (*in_log, *(RelationColumn(field, field) for field in constants)),
        MATERIALIZED_ROW_ID.of(configuration.properties),
        MATERIALIZED_ROW_COMMIT_VERSION.of(configuration.properties),
    )


def names_without_projection(columns: TableColumns) -> tuple[str, ...] | None:
    """Return the table's column names if a relation over its files has the same columns, apart from their names.

    Return None if the columns need more than to be renamed, as for another order or other names of nested fields.
    """
    if columns.mode == "id" or tuple(c.logical for c in columns.relation_columns) != columns.schema.fields:
        return None
    if any(DECLARED_TYPE in field.metadata for field in columns.schema):
        return None  # the projection gives the columns their declared types
    same = all(_same_names(c.logical.type, c.physical.type) for c in columns.relation_columns)
    return columns.schema.names if same else None


def project(frame: DataFrame, columns: TableColumns, extra: Mapping[str, Column] | None = None) -> DataFrame:
    """Return the table's columns, in its order and under its names, and then the `extra` ones."""
    return frame.select(*output_columns(columns, extra or {}, pads=pads_texts(frame.sparkSession, columns.schema)))


def output_columns(columns: TableColumns, extra: Mapping[str, Column], *, pads: bool) -> list[Column]:
    """Return the table's columns, and then the `extra` ones, as expressions on a relation over its files.

    With `pads`, the texts of char(n) columns are padded.
    """
    stored = {column.logical.name: column for column in columns.relation_columns}
    output = [_output(field, stored.get(field.name), pads=pads) for field in columns.schema]
    return [*output, *(column.alias(name) for name, column in extra.items())]


def relation_options(location: str, storage_options: Mapping[str, str], columns: TableColumns) -> dict[str, str]:
    """Return the options of a Parquet relation over the table's files."""
    options = {**storage_options, **(hadoop_options(location, storage_options) or {}), **RELATION_OPTIONS}
    if columns.mode == "id":
        options.update(dict.fromkeys(FIELD_ID_SETTINGS, "true"))
    return options


def row_tracking_columns(
    columns: TableColumns, base_row_id: Column, default_version: Column, row_index: Column
) -> dict[str, Column]:
    """Return the columns of row id and row commit version, stored in the file or implied by it (C327, C328)."""
    identity, version = base_row_id + row_index, default_version
    if columns.stored_row_id is not None:
        identity = F.coalesce(F.col(quoted(columns.stored_row_id)), identity)
    if columns.stored_row_commit_version is not None:
        version = F.coalesce(F.col(quoted(columns.stored_row_commit_version)), version)
    return {ROW_ID_COLUMN: identity, ROW_COMMIT_VERSION_COLUMN: version}


def with_shown_ids(frame: DataFrame) -> DataFrame:
    """Return the frame with row ids and row commit versions under the names that users ask for."""
    row_id, version = ROW_TRACKING_FIELDS
    return frame.withColumnsRenamed({ROW_ID_COLUMN: row_id.name, ROW_COMMIT_VERSION_COLUMN: version.name})


def spark_converts(configuration: TableConfiguration) -> bool:
    """Return True if Spark's Parquet reader gives the columns of all files in the types of the table.

    It converts columns of older files whose types were changed, and reads shredded variants, from some release on.
    """
    schema = configuration.schema
    is_changed = has_unlisted_changes if has_widening_reader() else has_changes
    if is_supported(configuration, Feature.TYPE_WIDENING) and is_changed(schema):
        return False
    is_shredded = is_supported(configuration, Feature.VARIANT_SHREDDING) and holds_variant(schema)
    return not is_shredded or has_shredding_reader()


def _user_metadata(field: StructField) -> dict[str, Any]:
    """Return the part of a column's metadata that belongs to the user, such as its comment, and its declared type."""
    return {key: value for key, value in field.metadata.items() if not key.startswith(_INTERNAL_METADATA)}


def _output(field: StructField, column: RelationColumn | None, *, pads: bool) -> Column:
    metadata = _user_metadata(field)
    if column is None:
        return F.lit(None).cast(spark_types.NullType()).alias(field.name, metadata=metadata)
    value = _renamed(F.col(quoted(column.physical.name)), column.logical.type, column.physical.type)
    length = padded_length(field) if pads else None
    if length is not None:
        value = padded_column(column.physical.name, length)
    return value.alias(field.name, metadata=metadata)


def _renamed(value: Column, logical: DataType, physical: DataType) -> Column:
    """Return the value with its nested fields under their logical names; null structs stay null."""
    if _same_names(logical, physical):
        return value
    if isinstance(logical, StructType) and isinstance(physical, StructType) and _replaceable(logical, physical):
        # Unlike a cast, this lets Catalyst push nested fields and predicates on them down to the file.
        renamed = value
        for inner, stored in zip(logical, physical, strict=True):
            field = value.getField(stored.name)
            renamed = renamed.withField(quoted(inner.name), _renamed(field, inner.type, stored.type))
        return renamed.dropFields(*(quoted(stored.name) for stored in physical))
    return value.cast(spark_types._parse_datatype_json_value(type_to_json(_nullable(logical))))


def _same_names(logical: DataType, physical: DataType) -> bool:
    match logical, physical:
        case StructType(), StructType():
            return all(a.name == b.name and _same_names(a.type, b.type) for a, b in zip(logical, physical, strict=True))
        case ArrayType(), ArrayType():
            return _same_names(logical.element_type, physical.element_type)
        case MapType(), MapType():
            keys = _same_names(logical.key_type, physical.key_type)
            return keys and _same_names(logical.value_type, physical.value_type)
        case _:
            return True


def _replaceable(logical: StructType, physical: StructType) -> bool:
    """Return True if no name is both logical and physical: fields can be added and dropped without a conflict."""
    return {f.name.casefold() for f in logical}.isdisjoint(f.name.casefold() for f in physical)


def _readable(field: StructField, *, by_id: bool) -> StructField:
    # Spark would pad texts in the relation, also those inside of structs, whose fields have other names in files.
    metadata = {key: value for key, value in _user_metadata(field).items() if key != DECLARED_TYPE}
    number = field_id(field) if by_id else None
    if number is not None:
        metadata[PARQUET_FIELD_ID] = number
    return StructField(field.name, _readable_type(field.type, by_id=by_id), nullable=True, metadata=metadata)


def _readable_type(data_type: DataType, *, by_id: bool) -> DataType:
    if data_type.annotation is not None and is_loadable(data_type.annotation):
        return replace(data_type, annotation=without_code(data_type.annotation))
    match data_type:
        case StructType(fields):
            return StructType(tuple(_readable(f, by_id=by_id) for f in fields))
        case ArrayType(element):
            return ArrayType(_readable_type(element, by_id=by_id), contains_null=True)
        case MapType(key, value):
            return MapType(_readable_type(key, by_id=by_id), _readable_type(value, by_id=by_id))
        case _:
            return replace(data_type, annotation=None)


def _nullable(data_type: DataType) -> DataType:
    if data_type.annotation is not None and is_loadable(data_type.annotation):
        return replace(data_type, annotation=without_code(data_type.annotation))
    match data_type:
        case StructType(fields):
            return StructType(tuple(replace(f, type=_nullable(f.type), nullable=True, metadata={}) for f in fields))
        case ArrayType(element):
            return ArrayType(_nullable(element))
        case MapType(key, value):
            return MapType(_nullable(key), _nullable(value))
        case _:
            return replace(data_type, annotation=None)
