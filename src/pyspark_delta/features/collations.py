"""collations: strings are compared by the rules of a language (Collated String Type).

Values are stored unchanged, so reading is not affected; skipping must not use statistics of collated columns.
"""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature, any_field_has


class Collations(TableFeature):
    name = "collations"
    KEY = "__COLLATIONS"
    preview_names = ("collations-preview", "collations-dev")
    requires = ("domainMetadata",)

    def uses(self, configuration: TableConfiguration) -> bool:
        return any_field_has(configuration, self.KEY)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)


FEATURE = Collations()
