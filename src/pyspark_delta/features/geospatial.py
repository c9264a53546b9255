"""geospatial: columns of geometry and geography, as other engines define them without a published specification."""

from __future__ import annotations

from pyspark_delta.protocol.feature import FeatureKind, TableFeature


class Geospatial(TableFeature):
    name = "geospatial"
    kind = FeatureKind.READER_WRITER
    preview_names = ("geospatial-dev",)
    read_unsupported_reason = (
        "Geometry and geography columns are not part of the published protocol yet. Read it with the engine that wrote "
        "it, or have that engine drop these columns and then the feature."
    )
    write_unsupported_reason = read_unsupported_reason


FEATURE = Geospatial()
