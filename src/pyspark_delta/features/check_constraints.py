"""checkConstraints: named SQL conditions that every row must meet (CHECK Constraints; C383-C388)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import CONSTRAINT_PREFIX
from pyspark_delta.protocol.rows import CheckKind, RowCheck


class CheckConstraints(TableFeature):
    name = "checkConstraints"
    legacy_writer_version = 3

    def is_active(self, configuration: TableConfiguration) -> bool:
        return any(key.casefold().startswith(CONSTRAINT_PREFIX) for key in configuration.properties)

    def row_checks(self, configuration: TableConfiguration) -> tuple[RowCheck, ...]:
        """The constraints, by name."""
        return tuple(
            RowCheck(key[len(CONSTRAINT_PREFIX) :], condition, CheckKind.CONSTRAINT)
            for key, condition in sorted(configuration.properties.items())
            if key.casefold().startswith(CONSTRAINT_PREFIX)
        )


FEATURE = CheckConstraints()
