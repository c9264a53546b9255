"""typeWidening: columns change to a wider type, and files with the narrower type stay (Type Widening).

New files have the types of the schema, so appending is not affected.
"""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import FeatureKind, TableFeature
from pyspark_delta.protocol.properties import ENABLE_TYPE_WIDENING
from pyspark_delta.schema.widening import check_type_changes


class TypeWidening(TableFeature):
    name = "typeWidening"
    declaration_check = "P11"
    kind = FeatureKind.READER_WRITER
    preview_names = ("typeWidening-preview",)

    def uses(self, configuration: TableConfiguration) -> bool:
        return ENABLE_TYPE_WIDENING.of(configuration.properties)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def validate(self, configuration: TableConfiguration) -> None:
        """Check that the history of every column holds only changes after which files can be read."""
        check_type_changes(configuration.schema)


FEATURE = TypeWidening()
