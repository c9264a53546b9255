"""Errors of finding a table, of tables that break the protocol, and of tables that are not supported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark_delta.errors.base import DeltaError


# ------------------------------------------------------------------------------------------- finding a table
class TableNotFoundError(DeltaError):
    """There is no Delta table at the location: no commit and no checkpoint in `_delta_log`."""

    error_class = "DELTA_TABLE_NOT_FOUND"
    sqlstate = "42P01"
    pyspark_class = "AnalysisException"

    def __init__(self, location: str, detail: str = "") -> None:
        found = detail or "its _delta_log is missing, or has no commit and no checkpoint"
        super().__init__(f"There is no Delta table at '{location}': {found}. Check the path.", location=location)
        self.location = location


class TableAlreadyExistsError(DeltaError):
    """The caller asked for a new table, but the location already contains one; `remedy` says what to do."""

    error_class = "DELTA_TABLE_ALREADY_EXISTS"
    sqlstate = "42P07"
    pyspark_class = "AnalysisException"

    def __init__(self, location: str, remedy: str = "Use mode 'append' or 'overwrite' to write to it.") -> None:
        super().__init__(f"A Delta table already exists at '{location}'. {remedy}", location=location)
        self.location = location


class VersionNotFoundError(DeltaError):
    """The requested version is not in the log: it was cleaned up, or does not exist yet."""

    error_class = "DELTA_VERSION_NOT_FOUND"
    sqlstate = "22003"
    pyspark_class = "AnalysisException"

    def __init__(
        self, requested: int, earliest: int, latest: int, location: str = "", *, error_class: str | None = None
    ) -> None:
        where = f" of '{location}'" if location else ""
        super().__init__(
            f"Version {requested}{where} does not exist; available versions are {earliest} to {latest}.",
            error_class=error_class,
            requested=requested,
            earliest=earliest,
            latest=latest,
        )
        self.requested, self.earliest, self.latest = requested, earliest, latest


class TimestampOutOfRangeError(DeltaError):
    """The requested timestamp is before the first or after the last version of the log."""

    error_class = "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
    sqlstate = "42816"
    pyspark_class = "AnalysisException"


# ------------------------------------------------------------------------------------ the table is not valid
class InvalidTableError(DeltaError):
    """The table violates the protocol; `path` names the file with the violation."""

    error_class = "DELTA_INVALID_TABLE"
    sqlstate = "KD000"

    def __init__(self, message: str, *, path: str = "", **facts: Any) -> None:
        super().__init__(message, path=path, **facts)
        self.path = path


class CorruptLogError(InvalidTableError):
    """A file of the log is unreadable, incomplete, or missing. Set `error_class` for the precise kind:

    DELTA_VERSIONS_NOT_CONTIGUOUS (a gap), DELTA_TRUNCATED_TRANSACTION_LOG (the start is missing and no checkpoint
    covers it), DELTA_STATE_RECOVER_ERROR (no protocol or metaData), DELTA_LOG_FILE_MALFORMED (bad content),
    DELTA_MISSING_PART_FILES (a checkpoint part or sidecar is missing).
    """

    error_class = "DELTA_LOG_FILE_MALFORMED"
    sqlstate = "KD00C"


class ChecksumMismatchError(InvalidTableError):
    """Content does not match its checksum (version checksum file, `_last_checkpoint`)."""

    error_class = "DELTA_CHECKSUM_MISMATCH"


class DeletionVectorError(InvalidTableError):
    """A deletion vector is missing, malformed, or does not match its descriptor."""

    error_class = "DELTA_DELETION_VECTOR_INVALID"


class DataFileError(InvalidTableError):
    """A data file is missing or does not match the log and the schema."""

    error_class = "DELTA_DATA_FILE_INVALID"


class UnsupportedDataFileError(DataFileError):
    """A data file uses a feature of Parquet that Arrow cannot read; Spark may be able to read it."""

    error_class = "DELTA_DATA_FILE_UNSUPPORTED"


# ------------------------------------------------------------------------------- the table is not supported
class UnsupportedTableError(DeltaError):
    """The table is valid, but uses something that this version of pyspark-delta does not support."""

    error_class = "DELTA_UNSUPPORTED_TABLE"
    sqlstate = "56038"


class UnsupportedFeatureError(UnsupportedTableError):
    """The protocol lists table features that are not supported for the operation ("read" or "write")."""

    error_class = "DELTA_UNSUPPORTED_FEATURES_FOR_READ"

    def __init__(self, features: Iterable[str], operation: str, advice: str, location: str = "") -> None:
        names = tuple(features)
        where = f" '{location}'" if location else ""
        super().__init__(
            f"Cannot {operation} the table{where}: it needs {', '.join(repr(n) for n in names)}, which this "
            f"version of pyspark-delta does not support for {'reading' if operation == 'read' else 'writing'}. "
            f"{advice}",
            features=names,
            operation=operation,
        )
        self.features, self.operation = names, operation
        if operation != "read":
            self.error_class = "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"


class PathAccessError(UnsupportedFeatureError):
    """A catalog manages the table, and it was opened by its path: the files alone may miss the newest versions."""

    error_class = "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"
    sqlstate = "0AKDE"

    def __init__(self, features: Iterable[str], operation: str, location: str) -> None:
        names = tuple(features)
        DeltaError.__init__(
            self,
            f"Cannot {operation} the table '{location}' by its path: a catalog manages it (feature "
            f"{', '.join(repr(n) for n in names)}), and only the catalog knows its newest versions. Connect to it with "
            "pyspark_delta.connect_catalog(url) and open the table by its name; or read what is published so far with "
            "published_only=True (option 'publishedOnly').",
            features=names,
            operation=operation,
            location=location,
        )
        self.features, self.operation = names, operation
