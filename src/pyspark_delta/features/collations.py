"""collations: texts compare by the rules of a language (Collated String Type).

Values are stored as they are, so reading is not affected; skipping must not use statistics of collated columns.
"""

from __future__ import annotations

from pyspark_delta.protocol.feature import TableFeature


class Collations(TableFeature):
    name = "collations"
    KEY = "__COLLATIONS"
    preview_names = ("collations-preview", "collations-dev")
    requires = ("domainMetadata",)
    write_obstacle = (
        "New files would have to keep the collations of its columns and their statistics. "
        "Write it with another engine for now."
    )


FEATURE = Collations()
