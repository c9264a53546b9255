"""invariants: SQL conditions in field metadata that added rows must meet (Column Invariants; C379-C382)."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_delta.errors import UnsupportedTableError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.expressions import INVARIANT, invariant_condition
from pyspark_delta.protocol.feature import TableFeature, any_field_has
from pyspark_delta.protocol.rows import CheckKind, RowCheck
from pyspark_delta.schema.traversal import fields_in
from pyspark_delta.schema.types import StructField, StructType


class Invariants(TableFeature):
    name = "invariants"
    declaration_check = "P07"
    KEY = INVARIANT
    legacy_writer_version = 2

    def uses(self, configuration: TableConfiguration) -> bool:
        return any_field_has(configuration, self.KEY)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration) or any(not f.nullable for f in fields_in(configuration.schema))

    def row_checks(self, configuration: TableConfiguration) -> tuple[RowCheck, ...]:
        """Return one condition for each column with an invariant, columns inside structs too.

        Raises UnsupportedTableError for an invariant inside an array or map: no condition names a single element.
        """
        reached = [field for _, field in _fields(configuration.schema)]
        for field in fields_in(configuration.schema):
            if self.KEY in field.metadata and field not in reached:
                raise UnsupportedTableError(
                    f"The column '{field.name}' inside an array or map has an invariant, which cannot be checked. "
                    "Remove it with the engine that declared it.",
                    column=field.name,
                )
        return tuple(
            RowCheck(".".join(path), condition, CheckKind.INVARIANT)
            for path, field in _fields(configuration.schema)
            if (condition := invariant_condition(field.metadata.get(self.KEY)))
        )


def _fields(struct: StructType, parents: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], StructField]]:
    for field in struct:
        path = (*parents, field.name)
        yield path, field
        if isinstance(field.type, StructType):
            yield from _fields(field.type, path)


FEATURE = Invariants()
