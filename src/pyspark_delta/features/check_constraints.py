"""checkConstraints: named SQL conditions that every row must meet (CHECK Constraints; C383-C388)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.expressions import check_expression
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import CONSTRAINT_PREFIX
from pyspark_delta.protocol.rows import CheckKind, RowCheck


class CheckConstraints(TableFeature):
    name = "checkConstraints"
    declaration_check = "P07"
    legacy_writer_version = 3

    def uses(self, configuration: TableConfiguration) -> bool:
        return any(key.casefold().startswith(CONSTRAINT_PREFIX) for key in configuration.properties)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def validate(self, configuration: TableConfiguration) -> None:
        """Check that every condition is SQL over columns of the table (C384)."""
        for key, condition in configuration.properties.items():
            if key.casefold().startswith(CONSTRAINT_PREFIX):
                name = key[len(CONSTRAINT_PREFIX) :]
                check_expression(condition, configuration.schema, f"The CHECK constraint '{name}'")

    def row_checks(self, configuration: TableConfiguration) -> tuple[RowCheck, ...]:
        """Return the constraints, by name."""
        return tuple(
            RowCheck(key[len(CONSTRAINT_PREFIX) :], condition, CheckKind.CONSTRAINT)
            for key, condition in sorted(configuration.properties.items())
            if key.casefold().startswith(CONSTRAINT_PREFIX)
        )


FEATURE = CheckConstraints()
