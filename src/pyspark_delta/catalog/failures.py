"""Converts failures of storage to failures of a catalog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark_delta.errors import CatalogUnavailableError, NotAuthorizedError, PermissionDeniedError, StorageError


@contextmanager
def storage_failures() -> Iterator[None]:
    """Convert PermissionDeniedError to NotAuthorizedError, and any other StorageError to CatalogUnavailableError.

    CatalogUnavailableError means that the outcome is unknown.
    """
    try:
        yield
    except PermissionDeniedError as error:
        raise NotAuthorizedError(error.message, **error.facts) from error
    except StorageError as error:
        raise CatalogUnavailableError(error.message, **error.facts) from error
