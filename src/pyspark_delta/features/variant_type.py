"""variantType: columns of semi-structured values (Variant Data Type)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import FeatureKind, TableFeature
from pyspark_delta.schema.traversal import types_in
from pyspark_delta.schema.types import VARIANT


class VariantType(TableFeature):
    name = "variantType"
    declaration_check = "P05"
    kind = FeatureKind.READER_WRITER
    preview_names = ("variantType-preview",)

    def uses(self, configuration: TableConfiguration) -> bool:
        return any(found == VARIANT for found in types_in(configuration.schema))

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)


FEATURE = VariantType()
