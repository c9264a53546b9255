"""Errors of requests by the caller, and of commits."""

from __future__ import annotations

from typing import Any

from pyspark_delta.errors.base import DeltaError


# ------------------------------------------------------------------------------------------ the caller may not
class InvalidOperationError(DeltaError):
    """The requested operation is not allowed, or not possible with these arguments."""

    error_class = "DELTA_INVALID_OPERATION"
    sqlstate = "42000"
    pyspark_class = "AnalysisException"


class SqlSyntaxError(InvalidOperationError):
    """A statement does not follow the grammar of SQL.

    `line` is counted from 1 and `position` from 0, as Spark counts. `sql` is the statement with a marker under what was
    found.
    """

    error_class = "PARSE_SYNTAX_ERROR"
    sqlstate = "42601"
    pyspark_class = "ParseException"
    line: int = 1
    position: int = 0
    sql: str = ""

    def __init__(self, message: str, *, line: int, position: int, sql: str, **facts: Any) -> None:
        super().__init__(message, line=line, position=position, sql=sql, **facts)
        self.line, self.position, self.sql = line, position, sql

    def __str__(self) -> str:
        return f"{super().__str__()} (line {self.line}, pos {self.position})\n\n== SQL ==\n{self.sql}"


class InvalidPredicateError(InvalidOperationError):
    """A predicate cannot be parsed, or does not match the schema of the table."""

    error_class = "DELTA_INVALID_PREDICATE"
    sqlstate = "42601"


class ComputationError(InvalidPredicateError):
    """A condition or a value cannot be computed for a row, such as a number that overflows."""

    error_class = "DELTA_INVALID_PREDICATE"
    sqlstate = "22000"


class InvalidOptionError(InvalidOperationError):
    """An option has an illegal value, or excludes another one."""

    error_class = "DELTA_ILLEGAL_OPTION"
    sqlstate = "42616"
    pyspark_class = "IllegalArgumentException"


class SchemaMismatchError(InvalidOperationError):
    """The schema of the data does not match the schema of the table."""

    error_class = "DELTA_FAILED_TO_MERGE_FIELDS"
    sqlstate = "22005"


class ConstraintViolationError(InvalidOperationError):
    """A row violates a constraint, an invariant, or a NOT NULL column of the table."""

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
    """The store did not report whether the commit succeeded, and reading the log could not resolve it."""

    error_class = "DELTA_COMMIT_STATE_UNKNOWN"


class AttemptsExhaustedError(CommitError):
    """Another writer committed first in every allowed attempt."""

    error_class = "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"
    sqlstate = "40000"


class CommitConflictError(CommitError):
    """The concurrent commit of `version` conflicts with this one."""

    error_class = "DELTA_CONCURRENT_WRITE"

    def __init__(self, message: str, *, version: int, **facts: Any) -> None:
        super().__init__(message, version=version, **facts)
        self.version = version


class ConcurrentWriteError(CommitConflictError):
    """The table has changed since the version that the operation is based on."""


class ConcurrentAppendError(CommitConflictError):
    """The winning commit added files that this transaction should have read."""

    error_class = "DELTA_CONCURRENT_APPEND"


class ConcurrentDeleteReadError(CommitConflictError):
    """The winning commit removed files that this transaction read."""

    error_class = "DELTA_CONCURRENT_DELETE_READ"


class ConcurrentDeleteDeleteError(CommitConflictError):
    """The winning commit removed files that this transaction also removes."""

    error_class = "DELTA_CONCURRENT_DELETE_DELETE"


class ConcurrentTransactionError(CommitConflictError):
    """The winning commit wrote the same application transaction or metadata domain."""

    error_class = "DELTA_CONCURRENT_TRANSACTION"


class MetadataChangedError(CommitConflictError):
    """The winning commit changed the metadata of the table."""

    error_class = "DELTA_METADATA_CHANGED"


class ProtocolChangedError(CommitConflictError):
    """The winning commit changed the protocol of the table."""

    error_class = "DELTA_PROTOCOL_CHANGED"


# -------------------------------------------------------------------------- the same classes by delta-spark's names
DeltaConcurrentModificationException = CommitConflictError
ConcurrentWriteException = ConcurrentWriteError
ConcurrentAppendException = ConcurrentAppendError
ConcurrentDeleteReadException = ConcurrentDeleteReadError
ConcurrentDeleteDeleteException = ConcurrentDeleteDeleteError
ConcurrentTransactionException = ConcurrentTransactionError
MetadataChangedException = MetadataChangedError
ProtocolChangedException = ProtocolChangedError
