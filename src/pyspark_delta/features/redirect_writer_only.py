"""redirectWriterOnly-preview: writes go to another table."""

from __future__ import annotations

from pyspark_delta.protocol.feature import TableFeature


class RedirectWriterOnly(TableFeature):
    name = "redirectWriterOnly-preview"
    listing_unsupported_reason = "Redirection is set up by the engine that moves the table."
    write_unsupported_reason = (
        "Writes are redirected to another table, which the property 'delta.redirectWriterOnly-preview' names. "
        "Write to that table."
    )


FEATURE = RedirectWriterOnly()
