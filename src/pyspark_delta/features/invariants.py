"""invariants: SQL conditions in field metadata that added rows must meet (Column Invariants; C379-C382)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature, any_field_has
from pyspark_delta.schema.traversal import fields_in


class Invariants(TableFeature):
    name = "invariants"
    KEY = "delta.invariants"
    legacy_writer_version = 2
    write_obstacle = (
        "A column has an invariant that new rows would have to be checked against. "
        "Write it with another engine for now."
    )

    def is_active(self, configuration: TableConfiguration) -> bool:
        return any_field_has(configuration, self.KEY)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.is_active(configuration) or any(not f.nullable for f in fields_in(configuration.schema))


FEATURE = Invariants()
