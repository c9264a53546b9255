"""variantShredding: parts of variants are stored as typed columns (Variant Shredding)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import FeatureKind, TableFeature
from pyspark_delta.protocol.properties import ENABLE_VARIANT_SHREDDING


class VariantShredding(TableFeature):
    name = "variantShredding"
    kind = FeatureKind.READER_WRITER
    preview_names = ("variantShredding-preview",)
    requires = ("variantType",)

    def uses(self, configuration: TableConfiguration) -> bool:
        return ENABLE_VARIANT_SHREDDING.of(configuration.properties)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)


FEATURE = VariantShredding()
