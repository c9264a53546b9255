"""columnMappingUsageTracking: logical names serve as physical names until the first rename (a proposal)."""

from __future__ import annotations

from pyspark_delta.protocol.feature import TableFeature


class ColumnMappingUsageTracking(TableFeature):
    name = "columnMappingUsageTracking"
    requires = ("columnMapping",)
    listing_unsupported_reason = "It is a proposal to the protocol."
    write_unsupported_reason = (
        "Writers would have to record the first rename or drop of a column. Write it with another engine for now."
    )


FEATURE = ColumnMappingUsageTracking()
