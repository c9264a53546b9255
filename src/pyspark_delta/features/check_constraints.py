"""checkConstraints: named SQL conditions that every row must meet (CHECK Constraints; C383-C388)."""

from __future__ import annotations

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.expressions import check_expression
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import CONSTRAINT_PREFIX
from pyspark_delta.protocol.removal import Removal
from pyspark_delta.protocol.rows import CheckKind, RowCheck


class CheckConstraints(TableFeature):
    name = "checkConstraints"
    declaration_check = "P07"
    legacy_writer_version = 3
    removal = Removal()

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

    def check_removal(self, configuration: TableConfiguration) -> None:
        """Refuse to drop the feature of a table with constraints."""
        names = [name for name, _ in _constraints(configuration)]
        if names:
            raise InvalidOperationError(
                f"The table has the CHECK constraints {', '.join(names)}. Drop the constraints before the feature "
                f"{self.name}.",
                error_class="DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
                sqlstate="0AKDE",
                constraints=tuple(names),
            )

    def row_checks(self, configuration: TableConfiguration) -> tuple[RowCheck, ...]:
        """Return the constraints, by name."""
        return tuple(RowCheck(name, condition, CheckKind.CONSTRAINT) for name, condition in _constraints(configuration))


def _constraints(configuration: TableConfiguration) -> list[tuple[str, str]]:
    """Return the names and conditions of the constraints, by name."""
    return [
        (key[len(CONSTRAINT_PREFIX) :], condition)
        for key, condition in sorted(configuration.properties.items())
        if key.casefold().startswith(CONSTRAINT_PREFIX)
    ]


FEATURE = CheckConstraints()
