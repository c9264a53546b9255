"""timestampNanos: timestamps with a precision of nanoseconds (a proposal to the protocol)."""

from __future__ import annotations

from pyspark_delta.protocol.feature import FeatureKind, TableFeature


class TimestampNanos(TableFeature):
    name = "timestampNanos"
    kind = FeatureKind.READER_WRITER
    requires = ("timestampNtz",)
    read_unsupported_reason = (
        "Spark has no timestamps of nanosecond precision, and microseconds would lose digits. Read it with the engine "
        "that wrote it."
    )
    write_unsupported_reason = read_unsupported_reason


FEATURE = TimestampNanos()
