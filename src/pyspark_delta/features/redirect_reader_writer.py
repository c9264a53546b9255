"""redirectReaderWriter-preview: reads and writes go to another table."""

from __future__ import annotations

from pyspark_delta.protocol.feature import FeatureKind, TableFeature


class RedirectReaderWriter(TableFeature):
    name = "redirectReaderWriter-preview"
    kind = FeatureKind.READER_WRITER
    read_unsupported_reason = (
        "It is only a redirect to another table; the property 'delta.redirectReaderWriter-preview' says where. Open "
        "that table instead."
    )
    listing_unsupported_reason = "Redirection is set up by the engine that moves the table."
    write_unsupported_reason = read_unsupported_reason


FEATURE = RedirectReaderWriter()
