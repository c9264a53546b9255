"""Errors of catalogs."""

from __future__ import annotations

from typing import Any

from pyspark_delta.errors.base import DeltaError


class CatalogError(DeltaError):
    """A catalog refused a request or failed."""

    error_class = "DELTA_CATALOG_ERROR"


class CatalogNameNotFoundError(CatalogError):
    """The catalog has no table or schema of this name."""

    error_class = "TABLE_OR_VIEW_NOT_FOUND"
    sqlstate = "42P01"
    pyspark_class = "AnalysisException"


class NotDeltaTableError(CatalogError):
    """The catalog has something else under this name: a table of another format, or a view."""

    error_class = "DELTA_TABLE_ONLY_OPERATION"
    sqlstate = "0AKDD"
    pyspark_class = "AnalysisException"


class CatalogNameExistsError(CatalogError):
    """The catalog already has a table or schema of this name."""

    error_class = "TABLE_OR_VIEW_ALREADY_EXISTS"
    sqlstate = "42P07"
    pyspark_class = "AnalysisException"


class NotAuthorizedError(CatalogError):
    """The caller is not authenticated, or is not allowed to do this."""

    error_class = "DELTA_CATALOG_NOT_AUTHORIZED"
    sqlstate = "42501"


class CatalogUnavailableError(CatalogError):
    """The catalog did not answer, or reported a failure: the request may have succeeded or not."""

    error_class = "DELTA_CATALOG_UNAVAILABLE"
    sqlstate = "08000"


class RatificationConflictError(CatalogError):
    """The catalog has ratified another commit for the version; `tail` is its log tail, if it sent one (C471)."""

    error_class = "DELTA_CATALOG_COMMIT_CONFLICT"
    sqlstate = "2D521"

    def __init__(self, message: str, *, version: int, tail: Any = None, **facts: Any) -> None:
        super().__init__(message, version=version, **facts)
        self.version = version
        self.tail = tail


class TooManyUnpublishedError(CatalogError):
    """The catalog accepts no further commits to the table until earlier ones are published."""

    error_class = "DELTA_CATALOG_TOO_MANY_UNPUBLISHED_COMMITS"
    sqlstate = "54000"


class StaleMetadataError(CatalogError):
    """The catalog's metadata of the table have changed since they were read (the etag differs)."""

    error_class = "DELTA_CATALOG_STALE_METADATA"
    sqlstate = "40000"


class TableReplacedError(CatalogError):
    """The table was dropped, and another one may have its name now."""

    error_class = "DELTA_CATALOG_TABLE_REPLACED"
    sqlstate = "42P01"


class InvalidProposalError(CatalogError):
    """The catalog rejected the request as invalid; retrying cannot succeed."""

    error_class = "DELTA_CATALOG_INVALID_REQUEST"
    sqlstate = "22023"


class PublishedMismatchError(CatalogError):
    """A published commit is not the one that the catalog ratified: a writer bypassed the catalog."""

    error_class = "DELTA_CATALOG_PUBLISHED_MISMATCH"
    sqlstate = "XX001"


class MaintenanceNotAllowedError(CatalogError):
    """The catalog that manages the table does not allow this maintenance (C478)."""

    error_class = "DELTA_CATALOG_MAINTENANCE_NOT_ALLOWED"
    sqlstate = "42501"
