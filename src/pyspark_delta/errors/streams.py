"""Errors of reading and writing tables as streams."""

from __future__ import annotations

from pyspark_delta.errors.base import DeltaError


class StreamError(DeltaError):
    """A stream cannot go on."""

    error_class = "DELTA_STREAMING_ERROR"


class InvalidOffsetError(StreamError):
    """The offset in a checkpoint is malformed, or belongs to another table."""

    error_class = "DELTA_INVALID_SOURCE_OFFSET_FORMAT"


class ChangedRowsError(StreamError):
    """A commit deleted or updated rows, which the stream neither returns nor was asked to ignore."""

    error_class = "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
    sqlstate = "0A000"


class StreamSchemaError(StreamError):
    """The schema of the table changed in a way that the running stream cannot follow."""

    error_class = "DELTA_SCHEMA_CHANGED"
    sqlstate = "KD007"


class StreamDataLossError(StreamError):
    """Commits that the stream has not read are missing from the log."""

    error_class = "DELTA_MISSING_FILES_UNEXPECTED_VERSION"
    sqlstate = "XXKDS"
