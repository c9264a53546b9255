"""redirectWriterOnly-preview: writes go to another table."""

from __future__ import annotations

from pyspark_delta.protocol.feature import TableFeature


class RedirectWriterOnly(TableFeature):
    name = "redirectWriterOnly-preview"
    write_obstacle = (
        "Writes belong to another table; the property 'delta.redirectWriterOnly-preview' says which. Write to that one."
    )


FEATURE = RedirectWriterOnly()
