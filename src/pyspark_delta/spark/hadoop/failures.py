"""Exceptions of Hadoop's client, as errors of a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

from pyspark_delta.errors import (
    FileAlreadyExistsError,
    FileNotFoundInStoreError,
    PermissionDeniedError,
    StorageError,
)

_MISSING = ("FileNotFoundException", "ParentNotDirectoryException", "PathIsNotDirectoryException")
_EXISTS = ("FileAlreadyExistsException",)
_DENIED = ("AccessControlException", "AccessDeniedException", "AuthorizationException")
_LONGEST = 500  # characters of a message of Hadoop


@contextmanager
def translated(action: str, path: str) -> Iterator[None]:
    """Raise the failures of Hadoop's client in this block as the StorageError for `path`."""
    try:
        yield
    except (Py4JError, CapturedException, OSError) as error:
        raise _translate(action, path, error) from error


def _translate(action: str, path: str, error: Exception) -> StorageError:
    java = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    if java is None:
        return StorageError(f"Cannot {action} '{path}': Hadoop's client cannot be reached: {error}", path=path)
    kind, message = _facts(java)
    if kind.endswith(_MISSING):
        return FileNotFoundInStoreError(f"The file '{path}' does not exist.", path=path)
    if kind.endswith(_EXISTS):
        return FileAlreadyExistsError(f"The file '{path}' already exists.", path=path)
    if kind.endswith(_DENIED):
        return PermissionDeniedError(
            f"No permission to {action} '{path}'. Check the user, the owner and the mode of the file and its "
            f"directory. ({message})",
            path=path,
        )
    return StorageError(f"Cannot {action} '{path}': {message}", path=path)


def _facts(java: Any) -> tuple[str, str]:
    """Return the class of an exception of Java, and its class and first line."""
    kind = str(java.getClass().getName())
    first = next(iter(str(java.getMessage() or "").splitlines()), "")
    return kind, f"{kind.rpartition('.')[2]}: {first}"[:_LONGEST]
