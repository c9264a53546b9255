"""checkConstraints: named SQL conditions that every row must meet (CHECK Constraints; C383-C388)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import CONSTRAINT_PREFIX


class CheckConstraints(TableFeature):
    name = "checkConstraints"
    legacy_writer_version = 3
    write_obstacle = (
        "The table has CHECK constraints that new rows would have to be checked against. "
        "Write it with another engine for now."
    )

    def is_active(self, configuration: TableConfiguration) -> bool:
        return any(key.casefold().startswith(CONSTRAINT_PREFIX) for key in configuration.properties)


FEATURE = CheckConstraints()
