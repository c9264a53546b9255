"""Every error that pyspark-delta raises, as one tree under `DeltaError`.

Each class carries delta-spark's error class and SQLSTATE, and the facts as attributes. The text of an error says
what happened, what was found and what to do. It begins with `[ERROR_CLASS]`, because errors that cross Spark's
Python Data Source boundary lose their Python class and keep their text.

    DeltaError
      TableNotFoundError  TableAlreadyExistsError  VersionNotFoundError  TimestampOutOfRangeError
      InvalidTableError            the table breaks the protocol
        CorruptLogError  ChecksumMismatchError  DeletionVectorError  DataFileError
      UnsupportedTableError        the table is fine, this version of pyspark-delta is not able
        UnsupportedFeatureError
          PathAccessError
      InvalidOperationError        the caller may not
        InvalidPredicateError  InvalidOptionError  SchemaMismatchError  ConstraintViolationError
        AppendOnlyTableError
      CommitError
        CommitStateUnknownError  AttemptsExhaustedError
        CommitConflictError
          ConcurrentAppendError  ConcurrentDeleteReadError  ConcurrentDeleteDeleteError
          ConcurrentTransactionError  MetadataChangedError  ProtocolChangedError
      CatalogError
        CatalogNameNotFoundError  CatalogNameExistsError  NotAuthorizedError  CatalogUnavailableError
        RatificationConflictError  TooManyUnpublishedError  StaleMetadataError  TableReplacedError
        InvalidProposalError  PublishedMismatchError  MaintenanceNotAllowedError
      StorageError
        FileNotFoundInStoreError  FileAlreadyExistsError  PermissionDeniedError
      MissingDependencyError
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar


class DeltaError(Exception):
    """The root of the tree.

    `message` is the sentence without the error class; `facts` holds the values it was made from.
    `getErrorClass`, `getCondition`, `getSqlState` and `getMessageParameters` follow PySpark's exceptions.
    """

    error_class: str = "DELTA_ERROR"
    sqlstate: str = "XXKDS"

    def __init__(
        self, message: str, *, error_class: str | None = None, sqlstate: str | None = None, **facts: Any
    ) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts
        if error_class is not None:
            self.error_class = error_class
        if sqlstate is not None:
            self.sqlstate = sqlstate

    def __str__(self) -> str:
        return f"[{self.error_class}] {self.message} SQLSTATE: {self.sqlstate}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__))

    def getErrorClass(self) -> str:  # noqa: N802 - PySpark's name
        return self.error_class

    def getCondition(self) -> str:  # noqa: N802 - PySpark's name
        return self.error_class

    def getSqlState(self) -> str:  # noqa: N802 - PySpark's name
        return self.sqlstate

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - PySpark's name
        return {name: str(value) for name, value in self.facts.items()}


def _rebuild(cls: type[DeltaError], args: tuple[Any, ...], state: dict[str, Any]) -> DeltaError:
    error = cls.__new__(cls)
    Exception.__init__(error, *args)
    error.__dict__.update(state)
    return error


# ------------------------------------------------------------------------------------------- finding a table
class TableNotFoundError(DeltaError):
    """There is no Delta table at the location: no commit and no checkpoint in `_delta_log`."""

    error_class = "DELTA_TABLE_NOT_FOUND"
    sqlstate = "42P01"

    def __init__(self, location: str, detail: str = "") -> None:
        found = detail or "it has no _delta_log with a commit or a checkpoint"
        super().__init__(f"There is no Delta table at '{location}': {found}. Check the path.", location=location)
        self.location = location


class TableAlreadyExistsError(DeltaError):
    """The location holds a Delta table already, and the save mode asked for none."""

    error_class = "DELTA_TABLE_ALREADY_EXISTS"
    sqlstate = "42P07"

    def __init__(self, location: str) -> None:
        super().__init__(
            f"There is a Delta table at '{location}' already; use mode 'append' or 'overwrite' to write to it.",
            location=location,
        )
        self.location = location


class VersionNotFoundError(DeltaError):
    """A version was asked for that the log does not hold (any more, or yet)."""

    error_class = "DELTA_VERSION_NOT_FOUND"
    sqlstate = "22003"

    def __init__(self, requested: int, earliest: int, latest: int, location: str = "") -> None:
        where = f" of '{location}'" if location else ""
        super().__init__(
            f"Version {requested}{where} does not exist; available versions are {earliest} to {latest}.",
            requested=requested,
            earliest=earliest,
            latest=latest,
        )
        self.requested, self.earliest, self.latest = requested, earliest, latest


class TimestampOutOfRangeError(DeltaError):
    """A timestamp was asked for that lies before the first or after the last version of the log."""

    error_class = "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
    sqlstate = "42816"


# ------------------------------------------------------------------------------------ the table is not valid
class InvalidTableError(DeltaError):
    """The table breaks the protocol; `path` names the file where it shows."""

    error_class = "DELTA_INVALID_TABLE"
    sqlstate = "KD000"

    def __init__(self, message: str, *, path: str = "", **facts: Any) -> None:
        super().__init__(message, path=path, **facts)
        self.path = path


class CorruptLogError(InvalidTableError):
    """A file of the log is unreadable, incomplete, or missing. Set `error_class` for the precise kind:

    DELTA_VERSIONS_NOT_CONTIGUOUS (a gap), DELTA_TRUNCATED_TRANSACTION_LOG (the start is gone and no checkpoint
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
    """A data file is missing or does not hold what the log and the schema say."""

    error_class = "DELTA_DATA_FILE_INVALID"


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


# ------------------------------------------------------------------------------------------ the caller may not
class InvalidOperationError(DeltaError):
    """The caller asked for something that is not allowed, or not possible with these arguments."""

    error_class = "DELTA_INVALID_OPERATION"
    sqlstate = "42000"


class InvalidPredicateError(InvalidOperationError):
    """A predicate text cannot be parsed or bound to the schema of the table."""

    error_class = "DELTA_INVALID_PREDICATE"
    sqlstate = "42601"


class InvalidOptionError(InvalidOperationError):
    """An option has an illegal value, or excludes another one."""

    error_class = "DELTA_ILLEGAL_OPTION"
    sqlstate = "42616"


class SchemaMismatchError(InvalidOperationError):
    """The schema of the data does not fit the schema of the table."""

    error_class = "DELTA_FAILED_TO_MERGE_FIELDS"
    sqlstate = "22005"


class ConstraintViolationError(InvalidOperationError):
    """A row breaks a constraint, an invariant, or a NOT NULL column of the table."""

    error_class = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    sqlstate = "23001"


class AppendOnlyTableError(InvalidOperationError):
    """The operation would remove or change rows of a table with `delta.appendOnly`."""

    error_class = "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    sqlstate = "42809"


# ------------------------------------------------------------------------------------------------- committing
class CommitError(DeltaError):
    """A commit did not succeed."""

    error_class = "DELTA_COMMIT_FAILED"
    sqlstate = "2D521"


class CommitStateUnknownError(CommitError):
    """The store did not answer whether the commit landed, and reading the log could not settle it."""

    error_class = "DELTA_COMMIT_STATE_UNKNOWN"


class AttemptsExhaustedError(CommitError):
    """Other writers took the next version at every one of the allowed attempts."""

    error_class = "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"
    sqlstate = "40000"


class CommitConflictError(CommitError):
    """A concurrent commit, `version`, cannot be reconciled with this one."""

    error_class = "DELTA_CONCURRENT_WRITE"

    def __init__(self, message: str, *, version: int, **facts: Any) -> None:
        super().__init__(message, version=version, **facts)
        self.version = version


class ConcurrentAppendError(CommitConflictError):
    """The winner added files that this transaction should have read."""

    error_class = "DELTA_CONCURRENT_APPEND"


class ConcurrentDeleteReadError(CommitConflictError):
    """The winner removed files that this transaction read."""

    error_class = "DELTA_CONCURRENT_DELETE_READ"


class ConcurrentDeleteDeleteError(CommitConflictError):
    """The winner removed files that this transaction removes too."""

    error_class = "DELTA_CONCURRENT_DELETE_DELETE"


class ConcurrentTransactionError(CommitConflictError):
    """The winner wrote the same application transaction or metadata domain."""

    error_class = "DELTA_CONCURRENT_TRANSACTION"


class MetadataChangedError(CommitConflictError):
    """The winner changed the metadata of the table."""

    error_class = "DELTA_METADATA_CHANGED"


class ProtocolChangedError(CommitConflictError):
    """The winner changed the protocol of the table."""

    error_class = "DELTA_PROTOCOL_CHANGED"


# ------------------------------------------------------------------------------------- catalog, storage, setup
class CatalogError(DeltaError):
    """A catalog refused or failed."""

    error_class = "DELTA_CATALOG_ERROR"


class CatalogNameNotFoundError(CatalogError):
    """The catalog has no table or schema of this name."""

    error_class = "TABLE_OR_VIEW_NOT_FOUND"
    sqlstate = "42P01"


class CatalogNameExistsError(CatalogError):
    """The catalog has a table or schema of this name already."""

    error_class = "TABLE_OR_VIEW_ALREADY_EXISTS"
    sqlstate = "42P07"


class NotAuthorizedError(CatalogError):
    """The catalog does not know the caller, or does not let the caller do this."""

    error_class = "DELTA_CATALOG_NOT_AUTHORIZED"
    sqlstate = "42501"


class CatalogUnavailableError(CatalogError):
    """The catalog did not answer, or said that it failed: what was asked for may have been done, or not."""

    error_class = "DELTA_CATALOG_UNAVAILABLE"
    sqlstate = "08000"


class RatificationConflictError(CatalogError):
    """The catalog has ratified another commit for the version; `tail` is its log tail, where it said so (C471)."""

    error_class = "DELTA_CATALOG_COMMIT_CONFLICT"
    sqlstate = "2D521"

    def __init__(self, message: str, *, version: int, tail: Any = None, **facts: Any) -> None:
        super().__init__(message, version=version, **facts)
        self.version = version
        self.tail = tail


class TooManyUnpublishedError(CatalogError):
    """The catalog takes no further commit of the table before earlier ones are published."""

    error_class = "DELTA_CATALOG_TOO_MANY_UNPUBLISHED_COMMITS"
    sqlstate = "54000"


class StaleMetadataError(CatalogError):
    """The metadata that the catalog keeps of the table have changed since they were read (its etag is another)."""

    error_class = "DELTA_CATALOG_STALE_METADATA"
    sqlstate = "40000"


class TableReplacedError(CatalogError):
    """The table was dropped, and another one may have its name now."""

    error_class = "DELTA_CATALOG_TABLE_REPLACED"
    sqlstate = "42P01"


class InvalidProposalError(CatalogError):
    """The catalog refuses a request as such; asking again is of no use."""

    error_class = "DELTA_CATALOG_INVALID_REQUEST"
    sqlstate = "22023"


class PublishedMismatchError(CatalogError):
    """A published commit is not the one that the catalog ratified: somebody wrote past the catalog."""

    error_class = "DELTA_CATALOG_PUBLISHED_MISMATCH"
    sqlstate = "XX001"


class MaintenanceNotAllowedError(CatalogError):
    """The catalog that manages the table does not allow this maintenance (C478)."""

    error_class = "DELTA_CATALOG_MAINTENANCE_NOT_ALLOWED"
    sqlstate = "42501"


class StorageError(DeltaError):
    """A storage call failed; `path` is the location it was made for."""

    error_class = "DELTA_STORAGE_ERROR"
    sqlstate = "58030"

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message, path=path)
        self.path = path


class FileNotFoundInStoreError(StorageError):
    """The store has no such file."""

    error_class = "DELTA_FILE_NOT_FOUND"
    sqlstate = "42K03"


class FileAlreadyExistsError(StorageError):
    """Put-if-absent found a file of that name."""

    error_class = "DELTA_FILE_ALREADY_EXISTS"
    sqlstate = "42K04"


class PermissionDeniedError(StorageError):
    """The store refused access."""

    error_class = "DELTA_PERMISSION_DENIED"
    sqlstate = "42501"


class MissingDependencyError(DeltaError):
    """An optional package (or Java) that the called function needs is not installed."""

    error_class = "DELTA_MISSING_DEPENDENCY"
    sqlstate = "58000"


class DeltaWarning(UserWarning):
    """Something was worked around; the result is right, and the message says what to mend."""

    error_class: ClassVar[str] = "DELTA_WARNING"


# --------------------------------------------------------------------- across the boundary of Spark's data sources
_FACTS = "pyspark-delta facts: "
_IN_TRACEBACK = re.compile(
    r"pyspark_delta\.errors\.(?P<name>\w+): \[(?P<error_class>[A-Z][A-Z0-9_.]*)\] (?P<message>.*?)"
    r" SQLSTATE: (?P<sqlstate>\w{5})(?:\s*\n" + re.escape(_FACTS) + r"(?P<facts>\{[^\n]*\}))?",
    re.DOTALL,
)


@contextmanager
def annotate() -> Iterator[None]:
    """Let the facts of a DeltaError raised in the block travel in its traceback, where only text arrives."""
    try:
        yield
    except DeltaError as error:
        if not any(note.startswith(_FACTS) for note in getattr(error, "__notes__", ())):
            error.add_note(_FACTS + json.dumps(error.facts, default=str))
        raise


@contextmanager
def translate() -> Iterator[None]:
    """Raise the DeltaError itself where Spark reports it as an exception of its own.

    Spark turns an error of a Python Data Source into an AnalysisException or PythonException that holds the original
    as text. Any other exception passes unchanged. Also usable as a decorator.

    >>> with translate():                                              # doctest: +SKIP
    ...     spark.read.format("delta").load("/no/table").show()
    pyspark_delta.errors.TableNotFoundError: [DELTA_TABLE_NOT_FOUND] There is no Delta table at ...
    """
    try:
        yield
    except DeltaError:
        raise
    except Exception as error:
        found = from_text(str(error))
        if found is None:
            raise
        raise found from None


def from_text(text: str) -> DeltaError | None:
    """The last DeltaError whose traceback is in `text`, with its class, message and facts; None if there is none."""
    matches = list(_IN_TRACEBACK.finditer(text))
    if not matches:
        return None
    match = matches[-1]
    known = globals().get(match["name"])
    cls = known if isinstance(known, type) and issubclass(known, DeltaError) else DeltaError
    facts = json.loads(match["facts"] or "{}")
    state = {**facts, "message": match["message"], "facts": facts}
    state |= {"error_class": match["error_class"], "sqlstate": match["sqlstate"]}
    return _rebuild(cls, (match["message"],), state)
