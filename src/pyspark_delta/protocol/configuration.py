"""What a version of a table declares: protocol, metadata, schema and properties, read together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.schema.json import parse_schema
from pyspark_delta.schema.types import StructType


@dataclass(frozen=True)
class TableConfiguration:
    """Protocol and metadata of one version; the schema is parsed on first use."""

    protocol: Protocol
    metadata: Metadata

    @cached_property
    def schema(self) -> StructType:
        """The logical schema. Raises CorruptLogError when `schemaString` is not a schema."""
        return parse_schema(self.metadata.schema_string)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Logical names of the partition columns, in order (C134)."""
        return self.metadata.partition_columns

    @property
    def properties(self) -> Mapping[str, str]:
        """`metaData.configuration` as it is in the log."""
        return self.metadata.configuration

    def supports(self, feature: str, *, legacy_reader: int | None = None, legacy_writer: int | None = None) -> bool:
        """Whether the protocol lists the feature, or has a version that implies it (C231, C235)."""
        protocol = self.protocol
        listed = (protocol.writer_features or frozenset()) | (protocol.reader_features or frozenset())
        if feature in listed:
            return True
        if legacy_reader is not None and legacy_reader <= protocol.min_reader_version < 3:
            return True
        return legacy_writer is not None and legacy_writer <= protocol.min_writer_version < 7
