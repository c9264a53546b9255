"""Common rules of tables whose files can be read as Iceberg tables (Iceberg Compatibility; C283-C317)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

import pyarrow.compute as pc

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.references import is_literal
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import COLUMN_MAPPING_MAX_ID, COLUMN_MAPPING_MODE, TableProperty
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.protocol.state import TableState
from pyspark_delta.schema.column_ids import assign_nested_ids, missing_nested_ids
from pyspark_delta.schema.column_mapping import mapping_mode
from pyspark_delta.schema.declaration_keys import CURRENT_DEFAULT
from pyspark_delta.schema.json import parse_type, schema_to_json
from pyspark_delta.schema.traversal import fields_in, types_in
from pyspark_delta.schema.types import ArrayType, DataType, DecimalType, MapType, PrimitiveType, StructType
from pyspark_delta.schema.widening import TYPE_CHANGES

PRIMITIVES_V1 = frozenset(
    [
        *("byte", "short", "integer", "long", "float", "double", "decimal"),
        *("string", "binary", "boolean", "timestamp", "timestamp_ntz", "date"),
    ]
)
NESTED = frozenset(["array", "map"])
_WHOLE_NUMBERS = frozenset(["byte", "short", "integer", "long"])


def violation(feature: str, kind: str, message: str) -> InvalidOperationError:
    """Return the error for a broken rule; `kind` is the last part of delta-spark's error class."""
    return InvalidOperationError(
        f"The table does not comply with {feature}: {message}",
        error_class=f"DELTA_ICEBERG_COMPAT_VIOLATION.{kind}",
        feature=feature,
    )


def check_mapping(configuration: TableConfiguration, feature: str, modes: tuple[str, ...]) -> None:
    """Check that columns are mapped by one of the modes (C284, C292, C303)."""
    mode = mapping_mode(configuration)
    if mode not in modes:
        raise violation(
            feature,
            "WRONG_REQUIRED_TABLE_PROPERTY",
            f"it needs the table property {COLUMN_MAPPING_MODE.name} to be {' or '.join(modes)}, found {mode}. "
            "Set it on a new table, or enable column mapping on this one first.",
        )


def check_types(schema: StructType, feature: str, allowed: frozenset[str]) -> None:
    """Check that columns, including nested ones, have only allowed types (C289, C300, C305)."""
    for field in schema:
        for found in types_in(field.type):
            name = _kind(found)
            if name != "struct" and name not in allowed:
                raise violation(
                    feature,
                    "UNSUPPORTED_DATA_TYPE",
                    f"the column '{field.name}' holds {found}, which Iceberg cannot represent. Allowed are "
                    f"{', '.join(sorted(allowed))} and struct. Cast or drop the column.",
                )


def check_type_changes(schema: StructType, feature: str) -> None:
    """Check that columns were widened only as Iceberg allows: integers, float to double, precision of decimals."""
    for field in fields_in(schema):
        for change in field.metadata.get(TYPE_CHANGES) or ():
            before, after = parse_type(change["fromType"]), parse_type(change["toType"])
            if not _is_iceberg_widening(before, after):
                raise violation(
                    feature,
                    "UNSUPPORTED_TYPE_WIDENING",
                    f"the column '{field.name}' was changed from {before} to {after}, and Iceberg cannot read the "
                    "older files. Rewrite the table with its present types.",
                )


def check_partitioning(configuration: TableConfiguration, before: TableConfiguration, feature: str) -> None:
    """Check that partition columns keep their names (C290, C301); types may change."""
    ours, theirs = configuration.partition_columns, before.partition_columns
    if theirs and ours != theirs:
        raise violation(
            feature,
            "REPLACE_TABLE_CHANGE_PARTITION_NAMES",
            f"the partitioning cannot change from {', '.join(theirs)} to {', '.join(ours) or 'no columns'}. Write a "
            "new table for another partitioning.",
        )


def check_num_records(commit: ReadyCommit, feature: str) -> None:
    """Check that every added file has the statistic numRecords (C287, C298)."""
    if not commit.adds.num_rows:
        return
    stats = commit.adds.column("stats") if "stats" in commit.adds.schema.names else None
    counted = 0 if stats is None else pc.sum(pc.match_substring(stats, '"numRecords":')).as_py() or 0
    if counted < commit.adds.num_rows:
        raise violation(
            feature,
            "FILES_MISSING_STATS",
            f"{commit.adds.num_rows - counted} of the added files lack the statistic numRecords. Rewrite them with "
            "statistics.",
        )


def check_no_deletion_vectors(commit: ReadyCommit, feature: str) -> None:
    """Check that no added file has a deletion vector (C296)."""
    adds = commit.adds
    if "deletion_vector" in adds.schema.names and adds.column("deletion_vector").null_count < adds.num_rows:
        raise violation(
            feature,
            "DELETION_VECTORS_NOT_PURGED",
            "an added file has a deletion vector. Write the remaining rows to a new file instead.",
        )


def needs_rewrite(feature: str) -> InvalidOperationError:
    """Return the error for a table with files that do not follow the rules."""
    return violation(
        feature,
        "CHANGE_VERSION_NEED_REWRITE",
        "existing files were not written for it. Create a new table with the property, and copy "
        "the rows, or overwrite all rows of this one in the same commit.",
    )


def with_nested_ids(configuration: TableConfiguration) -> TableConfiguration:
    """Return the configuration with ids for list elements, map keys and map values (C293)."""
    schema, last = assign_nested_ids(configuration.schema, COLUMN_MAPPING_MAX_ID.of(configuration.properties))
    if not missing_nested_ids(configuration.schema):
        return configuration
    properties = {**configuration.properties, COLUMN_MAPPING_MAX_ID.name: str(last)}
    metadata = replace(configuration.metadata, schema_string=schema_to_json(schema), configuration=properties)
    return replace(configuration, metadata=metadata)


def check_literal_defaults(schema: StructType, feature: str) -> None:
    """Check that defaults of columns are constants that Iceberg can store, not expressions."""
    for field in fields_in(schema):
        text = field.metadata.get(CURRENT_DEFAULT)
        if isinstance(text, str) and not is_literal(text):
            raise violation(
                feature,
                "UNSUPPORTED_DEFAULT_VALUE",
                f"the default of the column '{field.name}' is {text}, not a constant. Drop or change it.",
            )


def map_key_types(data_type: DataType, path: str = "") -> Iterable[tuple[str, DataType]]:
    """Return the struct types of all map keys inside a type, with the physical path of the map."""
    match data_type:
        case StructType(fields):
            for field in fields:
                here = f"{path}.{field.metadata.get('delta.columnMapping.id', field.name)}"
                yield from map_key_types(field.type, here)
        case ArrayType(element):
            yield from map_key_types(element, f"{path}.element")
        case MapType(key, value):
            if isinstance(key, StructType):
                yield f"{path}.key", key
            yield from map_key_types(value, f"{path}.value")
        case _:
            return


def _kind(data_type: DataType) -> str:
    match data_type:
        case PrimitiveType(name):
            return name
        case DecimalType():
            return "decimal"
        case ArrayType():
            return "array"
        case MapType():
            return "map"
        case StructType():
            return "struct"


def _is_iceberg_widening(before: DataType, after: DataType) -> bool:
    if isinstance(before, DecimalType) and isinstance(after, DecimalType):
        return before.scale == after.scale and before.precision <= after.precision
    names = (str(before), str(after))
    return names == ("float", "double") or (_WHOLE_NUMBERS.issuperset(names) and before != after) or before == after


class IcebergCompat(TableFeature):
    """What the three versions of Iceberg compatibility have in common: a property, and files that Iceberg can read."""

    declaration_check = "P10"
    enabling: ClassVar[TableProperty[bool]]

    def uses(self, configuration: TableConfiguration) -> bool:
        return self.enabling.of(configuration.properties)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def check_change(self, configuration: TableConfiguration, before: TableConfiguration, *, keeps_files: bool) -> None:
        """Refuse existing files that are not as the feature requires."""
        if not self.is_active(configuration):
            return
        if self.is_active(before):
            check_partitioning(configuration, before, self.name)
        elif keeps_files and self.needs_other_files(before):
            raise needs_rewrite(self.name)

    def needs_other_files(self, before: TableConfiguration) -> bool:
        """Return True for every table: its files have no ids for list elements and map entries, and perhaps no
        partition columns.
        """
        return True

    def stores_partition_columns(self, configuration: TableConfiguration) -> bool:
        return self.is_active(configuration)

    def finish(self, commit: ReadyCommit, base: TableState) -> ReadyCommit:
        if self.is_active(commit.configuration):
            check_num_records(commit, self.name)
        return commit
