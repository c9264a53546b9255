"""columnMapping: columns of the schema map to those of data files by physical name or id (Column Mapping;
C236-C250).
"""

from __future__ import annotations

from dataclasses import replace

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import FeatureKind, TableFeature
from pyspark_delta.protocol.properties import (
    COLUMN_MAPPING_MAX_ID,
    COLUMN_MAPPING_MODE,
    ENABLE_ICEBERG_WRITER_COMPAT_V1,
    ENABLE_ICEBERG_WRITER_COMPAT_V3,
    lookup,
)
from pyspark_delta.protocol.removal import FileTraces, Removal
from pyspark_delta.schema.column_ids import (
    Naming,
    all_ids,
    assign_ids,
    inherit_ids,
    name_by_id,
    random_name,
    same_name,
    without_ids,
)
from pyspark_delta.schema.column_mapping import mapping_mode, physical_schema
from pyspark_delta.schema.json import schema_to_json
from pyspark_delta.schema.traversal import types_in
from pyspark_delta.schema.types import StructType


class ColumnMapping(TableFeature):
    name = "columnMapping"
    declaration_check = "P06"
    kind = FeatureKind.READER_WRITER
    legacy_reader_version = 2
    legacy_writer_version = 5
    removal = Removal(
        files=FileTraces.PHYSICAL_NAMES,
        properties=(COLUMN_MAPPING_MODE.name, COLUMN_MAPPING_MAX_ID.name),
        protects_history=True,
    )

    def uses(self, configuration: TableConfiguration) -> bool:
        return COLUMN_MAPPING_MODE.of(configuration.properties) != "none"

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def has_traces(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def prepare(self, configuration: TableConfiguration, before: TableConfiguration | None) -> TableConfiguration:
        """Give new columns ids and physical names (C243, C244); the physical name of an old one never changes (C245).

        Columns of a table without mapping keep their names as physical names, because its files use them (C250).
        """
        was_active = before is not None and mapping_mode(before) != "none"
        if not self.is_active(configuration):
            return _without_mapping(configuration) if was_active else configuration
        schema, largest = configuration.schema, COLUMN_MAPPING_MAX_ID.of(configuration.properties)
        if before is not None and was_active:
            schema = inherit_ids(schema, before.schema)
            largest = max(largest, COLUMN_MAPPING_MAX_ID.of(before.properties))
        schema, largest = assign_ids(schema, largest, _naming(configuration, before, was_active))
        properties = {**configuration.properties, COLUMN_MAPPING_MAX_ID.name: str(largest)}
        metadata = replace(configuration.metadata, schema_string=schema_to_json(schema), configuration=properties)
        return replace(configuration, metadata=metadata)

    def check_change(self, configuration: TableConfiguration, before: TableConfiguration, *, keeps_files: bool) -> None:
        """Refuse a change of the mode, except from none to name: files resolve their columns by it."""
        old, new = mapping_mode(before), mapping_mode(configuration)
        if keeps_files and old != new and (old, new) != ("none", "name"):
            remedy = (
                "ALTER TABLE ... DROP FEATURE columnMapping, or drop_feature, rewrites the files without it."
                if new == "none"
                else "A table without mapping can be set to 'name'; for any other change, write a new table."
            )
            raise InvalidOperationError(
                f"The column mapping mode of a table cannot change from '{old}' to '{new}', because existing files "
                f"were written in the old mode. {remedy}",
                error_class="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
                before=old,
                after=new,
            )

    def validate(self, configuration: TableConfiguration) -> None:
        """Check that every field has a unique physical name and id (C236), at most the largest id ever assigned
        (C244).
        """
        mode = _mode(configuration)
        if mode == "none":
            return
        schema = configuration.schema
        for struct in types_in(physical_schema(schema, mode)):
            if isinstance(struct, StructType):
                _check_unique([f.name.casefold() for f in struct], "physical name")
        ids = all_ids(schema)
        _check_unique(ids, "id")
        largest = COLUMN_MAPPING_MAX_ID.of(configuration.properties)
        if lookup(configuration.properties, COLUMN_MAPPING_MAX_ID.name) is not None and largest < max(ids, default=0):
            raise InvalidOperationError(
                f"The table property {COLUMN_MAPPING_MAX_ID.name} is {largest}, less than the column id {max(ids)} "
                "in use. Writers maintain it: do not set it.",
                error_class="DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
            )


def _mode(configuration: TableConfiguration) -> str:
    return COLUMN_MAPPING_MODE.of(configuration.properties)


def _naming(configuration: TableConfiguration, before: TableConfiguration | None, was_active: bool) -> Naming:
    """Return the function that names new columns: by id if Iceberg writers share the table (C304)."""
    if before is not None and not was_active:
        return same_name
    properties = configuration.properties
    shared = ENABLE_ICEBERG_WRITER_COMPAT_V1.of(properties) or ENABLE_ICEBERG_WRITER_COMPAT_V3.of(properties)
    return name_by_id if shared else random_name


def _without_mapping(configuration: TableConfiguration) -> TableConfiguration:
    properties = {
        key: value
        for key, value in configuration.properties.items()
        if key.casefold() != COLUMN_MAPPING_MAX_ID.name.casefold()
    }
    schema = schema_to_json(without_ids(configuration.schema))
    metadata = replace(configuration.metadata, schema_string=schema, configuration=properties)
    return replace(configuration, metadata=metadata)


def _check_unique(values: list[str] | list[int], what: str) -> None:
    seen: set[str | int] = set()
    for value in values:
        if value in seen:
            raise InvalidOperationError(
                f"Two columns have the same {what} {value!r} for column mapping. A schema that was copied from another "
                "table must not keep the column mapping metadata of its columns.",
                error_class="DELTA_DUPLICATED_COLUMN_MAPPING",
            )
        seen.add(value)


FEATURE = ColumnMapping()
