"""The rules of tables that Iceberg writers may also write to (IcebergWriterCompatV1; C302-C317)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from pyspark_delta.protocol import iceberg
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.iceberg import violation
from pyspark_delta.protocol.properties import TableProperty
from pyspark_delta.schema.column_mapping import ID, PHYSICAL_NAME
from pyspark_delta.schema.traversal import fields_in
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructType

# Features that may be supported only if nothing uses them, and what would use them (C309-C315).
INACTIVE: Mapping[str, str] = {
    "invariants": "column invariants",
    "changeDataFeed": "the change data feed",
    "checkConstraints": "CHECK constraints",
    "identityColumns": "identity columns",
    "generatedColumns": "generated columns",
    "rowTracking": "row tracking",
}


def check_names(schema: StructType, feature: str) -> None:
    """Check that the physical name of every field is `col-<id>` (C304)."""
    for field in fields_in(schema):
        column_id, physical = field.metadata.get(ID), field.metadata.get(PHYSICAL_NAME)
        if column_id is None or physical != f"col-{column_id}":
            raise violation(
                feature,
                "WRONG_PHYSICAL_NAME",
                f"the physical name of the column '{field.name}' is '{physical}', but its id requires "
                f"'col-{column_id}'. Physical names cannot be changed: create a new table with the property and copy "
                "the rows.",
            )


def check_features(
    supported: Iterable[str],
    feature: str,
    *,
    allowed: frozenset[str],
    inactive: Iterable[str],
    active: frozenset[str],
) -> None:
    """Check that supported features are allowed, or are allowed while inactive and not used (C308-C316)."""
    idle = frozenset(inactive)
    unknown = sorted(set(supported) - allowed - idle)
    if unknown:
        raise violation(
            feature,
            "UNSUPPORTED_FEATURES",
            f"it is not compatible with {', '.join(unknown)}, which Iceberg writers do not support: drop the feature, "
            "or do not enable this one.",
        )
    for name in sorted(idle & active):
        raise violation(
            feature,
            "UNSUPPORTED_FEATURES",
            f"it is not compatible with {INACTIVE[name]}, which the table uses. Remove that first.",
        )


def check_map_keys(before: StructType, after: StructType, feature: str) -> None:
    """Check that a struct that is the key of a map does not change (C307)."""
    known = dict(_key_structs(before, ()))
    for where, struct in _key_structs(after, ()):
        if where in known and known[where] != struct:
            raise violation(
                feature,
                "MAP_KEY_CHANGE",
                f"a struct in the key of a map cannot change from {known[where]} to {struct}. Add another column "
                "instead.",
            )


def _key_structs(data_type: DataType, where: tuple[object, ...]) -> Iterator[tuple[tuple[object, ...], StructType]]:
    """Yield the structs inside keys of maps, by the ids of the columns above them."""
    match data_type:
        case StructType(fields):
            for field in fields:
                yield from _key_structs(field.type, (*where, field.metadata.get(ID, field.name)))
        case ArrayType(element):
            yield from _key_structs(element, (*where, "element"))
        case MapType(key, value):
            if isinstance(key, StructType):
                yield (*where, "key"), key
            yield from _key_structs(key, (*where, "key"))
            yield from _key_structs(value, (*where, "value"))
        case _:
            return


class IcebergWriterCompat(TableFeature):
    """What the versions of Iceberg writer compatibility have in common: the rules, and what they are about."""

    declaration_check = "P10"
    enabling: ClassVar[TableProperty[bool]]
    format_enabling: ClassVar[TableProperty[bool]]
    """The property of the Iceberg compatibility that the version needs."""
    types: ClassVar[frozenset[str]]
    allowed: ClassVar[frozenset[str]]
    inactive: ClassVar[frozenset[str]] = frozenset(INACTIVE)

    def uses(self, configuration: TableConfiguration) -> bool:
        return self.enabling.of(configuration.properties)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def check(self, configuration: TableConfiguration, *, has_format: bool, active: frozenset[str]) -> None:
        """Check a table with the feature; `has_format` tells whether the Iceberg compatibility is active."""
        iceberg.check_mapping(configuration, self.name, ("id",))
        if not has_format:
            needed = self.requires[-1]
            raise iceberg.violation(
                self.name,
                "WRONG_REQUIRED_TABLE_PROPERTY",
                f"it needs {needed}. Set {self.format_enabling.name} to true.",
            )
        iceberg.check_types(configuration.schema, self.name, self.types)
        check_names(configuration.schema, self.name)
        check_features(
            configuration.protocol.writer_features or (),  # writer version 7 lists them all
            self.name,
            allowed=self.allowed,
            inactive=self.inactive,
            active=active,
        )

    def check_change(self, configuration: TableConfiguration, before: TableConfiguration, *, keeps_files: bool) -> None:
        if self.is_active(configuration) and self.is_active(before):
            check_map_keys(before.schema, configuration.schema, self.name)
