"""rowTracking: rows have stable ids and commit versions (Row Tracking; C321-C342)."""

from __future__ import annotations

import uuid
from dataclasses import replace

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import (
    ENABLE_ROW_TRACKING,
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
    ROW_TRACKING_SUSPENDED,
)
from pyspark_delta.schema.column_mapping import PHYSICAL_NAME


class RowTracking(TableFeature):
    name = "rowTracking"
    requires = ("domainMetadata",)
    write_obstacle = (
        "New files would have to be given row ids, on each table that supports row tracking. "
        "Write it with another engine for now."
    )

    def is_active(self, configuration: TableConfiguration) -> bool:
        return ENABLE_ROW_TRACKING.of(configuration.properties)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.is_active(configuration)

    def prepare(self, configuration: TableConfiguration, before: TableConfiguration | None) -> TableConfiguration:
        """Name the columns that stored ids and commit versions go to, once and for all (C336, C337)."""
        properties = dict(configuration.properties)
        known = before.properties if before is not None else {}
        for stored, stem in ((MATERIALIZED_ROW_ID, "row-id"), (MATERIALIZED_ROW_COMMIT_VERSION, "row-commit-version")):
            name = stored.of(properties) or stored.of(known) or f"_{stem}-col-{uuid.uuid4()}"
            properties[stored.name] = name
        if properties == dict(configuration.properties):
            return configuration
        return replace(configuration, metadata=replace(configuration.metadata, configuration=properties))

    def validate(self, configuration: TableConfiguration) -> None:
        """Ids are not suspended while they are promised, and no column has the name of a stored one (C337)."""
        properties = configuration.properties
        if self.is_active(configuration) and ROW_TRACKING_SUSPENDED.of(properties):
            raise InvalidOperationError(
                f"Row tracking cannot be enabled and suspended at once. Set {ENABLE_ROW_TRACKING.name} or "
                f"{ROW_TRACKING_SUSPENDED.name} to false.",
                error_class="DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
            )
        stored = {MATERIALIZED_ROW_ID.of(properties), MATERIALIZED_ROW_COMMIT_VERSION.of(properties)}
        for field in configuration.schema:
            for name in (field.name, field.metadata.get(PHYSICAL_NAME)):
                if name in stored:
                    raise InvalidOperationError(
                        f"The column name '{name}' is taken by row tracking. Choose another one.",
                        error_class="DELTA_ADDING_COLUMN_WITH_INTERNAL_NAME_FAILED",
                        column=name,
                    )

    def check_change(self, configuration: TableConfiguration, before: TableConfiguration, *, keeps_files: bool) -> None:
        """Ids are promised only when every file has them, which the files from before may not (C325, C336)."""
        was_active = self.listed_name(before) is not None and self.is_active(before)
        if keeps_files and self.is_active(configuration) and not was_active:
            raise InvalidOperationError(
                "Row tracking cannot be enabled while files of the table may have no row ids. Add the feature "
                "rowTracking first, give every file its ids, and then enable it; or enable it on a new table.",
                error_class="DELTA_ENABLING_ROW_TRACKING_ON_EXISTING_TABLE",
            )

    def hinders_writing(self, configuration: TableConfiguration) -> bool:
        return True  # ids are assigned as soon as the feature is supported, active or not


FEATURE = RowTracking()
