"""The configuration of a table version: protocol, metadata, schema and properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.display import listed
from pyspark_delta.errors import CorruptLogError, UnsupportedTableError
from pyspark_delta.protocol.properties import (
    CHECKPOINT_PROTECTION_VERSION,
    ENABLE_IN_COMMIT_TIMESTAMPS,
    IN_COMMIT_TIMESTAMP_TIME,
    IN_COMMIT_TIMESTAMP_VERSION,
    MATERIALIZED_ROW_COMMIT_VERSION,
)
from pyspark_delta.schema.json import parse_schema
from pyspark_delta.schema.traversal import types_in
from pyspark_delta.schema.types import StructType

CATALOG_MANAGED = ("catalogManaged", "catalogOwned-preview", "catalogOwned")
"""The names of the feature that makes a table catalog-managed."""

TABLE_ID = "io.unitycatalog.tableId"
"""The property in which Unity Catalog stores the id of the table."""

CLONE_OF = "pyspark_delta.cloneOf"
"""The table property in which a clone names its source, as JSON: its path, its id and the version."""

OF_ONE_HISTORY = (
    IN_COMMIT_TIMESTAMP_VERSION.name,
    IN_COMMIT_TIMESTAMP_TIME.name,
    CHECKPOINT_PROTECTION_VERSION.name,
    MATERIALIZED_ROW_COMMIT_VERSION.name,
    TABLE_ID,
)
"""Properties about the versions or the history of a table, which no table gets from another one."""

_LASTING = frozenset((TABLE_ID, ENABLE_IN_COMMIT_TIMESTAMPS.name))


@dataclass(frozen=True)
class TableConfiguration:
    """Protocol and metadata of one version; the schema is parsed on first use. `location` is for messages."""

    protocol: Protocol
    metadata: Metadata
    location: str = field(default="", compare=False)

    @cached_property
    def schema(self) -> StructType:
        """The logical schema.

        Raises CorruptLogError if `schemaString` is not a schema, or lacks a partition column; UnsupportedTableError if
        it names an unknown type.
        """
        try:
            schema = parse_schema(self.metadata.schema_string)
            _check_names(schema, self.partition_columns)
        except (CorruptLogError, UnsupportedTableError) as error:
            if not self.location:
                raise
            facts = {**error.facts, "path": self.location}
            message = f"The metadata of table '{self.location}' cannot be used: {error.message}"
            raise type(error)(message, error_class=error.error_class, **facts) from None
        return schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Logical names of the partition columns, in order (C134)."""
        return self.metadata.partition_columns

    @property
    def properties(self) -> Mapping[str, str]:
        """`metaData.configuration` as stored in the log."""
        return self.metadata.configuration

    @property
    def is_catalog_managed(self) -> bool:
        """True if a catalog decides which commits of the table are valid (C449)."""
        return bool(managed_names(self.protocol))

    @property
    def reads_mapped_columns(self) -> bool:
        """True if readers must honour the column mapping mode: at reader version 2, or with the feature (C237)."""
        return self.protocol.min_reader_version == 2 or "columnMapping" in self.protocol.listed_features

    def shown(self, version: int) -> dict[str, object]:
        """Return what notebooks show of a version: names and values."""
        return {
            "location": self.location,
            "version": version,
            "columns": listed(self.schema.names),
            "partition columns": listed(self.partition_columns),
            "features": listed(sorted(self.protocol.listed_features)),
        }


def managed_names(protocol: Protocol) -> list[str]:
    """The names under which a protocol lists the feature of catalog-managed tables; empty if it does not."""
    return [name for name in CATALOG_MANAGED if name in protocol.listed_features]


def lasting_properties(configuration: TableConfiguration | None) -> dict[str, str]:
    """The properties that a table keeps when it is replaced: its catalog depends on them."""
    if configuration is None or not configuration.is_catalog_managed:
        return {}
    return {name: value for name, value in configuration.properties.items() if name in _LASTING}


def _check_names(schema: StructType, partition_columns: tuple[str, ...]) -> None:
    """Check that names are unique, ignoring case, and that the partition columns exist (C134)."""
    for found in types_in(schema):
        if isinstance(found, StructType):
            seen: dict[str, str] = {}
            for name in found.names:
                other = seen.setdefault(name.lower(), name)
                if other is not name:
                    raise CorruptLogError(
                        f"The schema has two columns with the same name, ignoring case: '{other}' and '{name}'.",
                        error_class="DELTA_DUPLICATE_COLUMNS_FOUND",
                    )
    for name in partition_columns:
        if schema.find(name) is None:
            raise CorruptLogError(
                f"The partition column '{name}' is not among the columns of the schema: {', '.join(schema.names)}.",
                error_class="DELTA_MISSING_PARTITION_COLUMN",
            )
