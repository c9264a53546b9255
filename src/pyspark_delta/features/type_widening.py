"""typeWidening: columns change to a wider type, and files with the narrower type stay (Type Widening).

New files have the types of the schema, so appending is not affected.
"""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import FeatureKind, TableFeature, any_field_has
from pyspark_delta.protocol.properties import ENABLE_TYPE_WIDENING
from pyspark_delta.protocol.removal import FileTraces, Removal
from pyspark_delta.schema.widening import TYPE_CHANGES, check_type_changes


class TypeWidening(TableFeature):
    name = "typeWidening"
    declaration_check = "P11"
    kind = FeatureKind.READER_WRITER
    preview_names = ("typeWidening-preview",)
    removal = Removal(
        disabling={ENABLE_TYPE_WIDENING.name: None},
        files=FileTraces.OLD_TYPES,
        field_keys=(TYPE_CHANGES,),
        protects_history=True,
    )

    def uses(self, configuration: TableConfiguration) -> bool:
        return ENABLE_TYPE_WIDENING.of(configuration.properties)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def has_traces(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration) or any_field_has(configuration, TYPE_CHANGES)

    def validate(self, configuration: TableConfiguration) -> None:
        """Check that the history of every column holds only changes after which files can be read."""
        check_type_changes(configuration.schema)


FEATURE = TypeWidening()
