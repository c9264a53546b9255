"""Errors of stores, and of missing packages."""

from __future__ import annotations

from pyspark_delta.errors.base import DeltaError


class StorageError(DeltaError):
    """A storage operation failed; `path` is the location that it accessed."""

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


class StoreThrottledError(StorageError):
    """The store gets more requests than it accepts, also after the client has repeated them."""

    error_class = "DELTA_STORE_THROTTLED"
    sqlstate = "53000"


class MissingDependencyError(DeltaError):
    """An optional package (or Java) that the called function needs is not installed."""

    error_class = "DELTA_MISSING_DEPENDENCY"
    sqlstate = "58000"
