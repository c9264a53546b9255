"""Responses to requests that fail: the error types of the Delta API, and the codes of the legacy endpoints."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import msgspec
from starlette.responses import Response
from starlette.types import Scope

from pyspark_delta.errors import (
    CatalogError,
    CatalogNameExistsError,
    CatalogNameNotFoundError,
    CatalogUnavailableError,
    DeltaError,
    InvalidProposalError,
    NotAuthorizedError,
    PublishedMismatchError,
    RatificationConflictError,
    StaleMetadataError,
    StorageError,
    TableReplacedError,
    TooManyUnpublishedError,
)
from pyspark_delta.server import delta_models, legacy_models

DELTA_API = "/api/2.1/unity-catalog/delta/v1/"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of failure: its HTTP status and its names in both APIs, and the legacy API's status if it differs."""

    status: int
    type: str
    code: str
    legacy_status: int | None = None


class Failure(Exception):
    """A request fails; `message` is sent to the client, so it contains nothing secret."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class FailureKind(Enum):
    """Why a request fails."""

    BAD_REQUEST = Kind(400, "BadRequestException", "INVALID_ARGUMENT")
    INVALID = Kind(400, "InvalidParameterValueException", "INVALID_ARGUMENT")
    NOT_AUTHENTICATED = Kind(401, "NotAuthorizedException", "UNAUTHENTICATED")
    TIMEOUT = Kind(408, "BadRequestException", "INVALID_ARGUMENT")
    BUSY = Kind(429, "TooManyRequestsException", "TOO_MANY_REQUESTS")
    NOT_ALLOWED = Kind(403, "PermissionDeniedException", "PERMISSION_DENIED")
    NOT_FOUND = Kind(404, "NotFoundException", "NOT_FOUND")
    NO_CATALOG = Kind(404, "NoSuchCatalogException", "CATALOG_NOT_FOUND")
    NO_SCHEMA = Kind(404, "NoSuchSchemaException", "SCHEMA_NOT_FOUND")
    NO_TABLE = Kind(404, "NoSuchTableException", "TABLE_NOT_FOUND")
    NO_METHOD = Kind(405, "BadRequestException", "INVALID_ARGUMENT")
    CATALOG_EXISTS = Kind(400, "AlreadyExistsException", "CATALOG_ALREADY_EXISTS")
    SCHEMA_EXISTS = Kind(400, "AlreadyExistsException", "SCHEMA_ALREADY_EXISTS")
    TABLE_EXISTS = Kind(409, "AlreadyExistsException", "TABLE_ALREADY_EXISTS", legacy_status=400)
    NOT_EMPTY = Kind(400, "InvalidParameterValueException", "FAILED_PRECONDITION")
    VERSION_TAKEN = Kind(409, "CommitVersionConflictException", "COMMIT_VERSION_CONFLICT")
    REQUIREMENT_FAILED = Kind(409, "UpdateRequirementConflictException", "UPDATE_REQUIREMENT_CONFLICT")
    TOO_LARGE = Kind(413, "BadRequestException", "INVALID_ARGUMENT")
    TOO_MANY_UNPUBLISHED = Kind(429, "ResourceExhaustedException", "RESOURCE_EXHAUSTED")
    STATE_UNKNOWN = Kind(500, "CommitStateUnknownException", "INTERNAL")
    INTERNAL = Kind(500, "InternalServerErrorException", "INTERNAL")


def invalid(message: str) -> Failure:
    """Return the failure for an invalid request."""
    return Failure(FailureKind.INVALID, message)


def delta_body(failure: Failure) -> delta_models.Error:
    """Return the response of the Delta API."""
    kind = failure.kind.value
    return delta_models.Error(
        error=delta_models.ErrorDetails(message=failure.message, type=kind.type, code=kind.status)
    )


def legacy_body(failure: Failure) -> legacy_models.LegacyError:
    """Return the response of the legacy endpoints."""
    return legacy_models.LegacyError(error_code=failure.kind.value.code, message=failure.message, details=[])


def failed_response(failure: Failure, scope: Scope) -> Response:
    """Return the response to a failed request, in the form of its API. The access log gets the reason."""
    is_delta_api, kind = scope["path"].startswith(DELTA_API), failure.kind.value
    status = kind.status if is_delta_api else kind.legacy_status or kind.status
    scope.setdefault("state", {})["failure"] = failure.message
    headers = {"Connection": "close"} if status in (408, 413) else {}  # the rest of the body is not read
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if failure.kind is FailureKind.BUSY:
        headers["Retry-After"] = "1"
    body = delta_body(failure) if is_delta_api else legacy_body(failure)
    content = b"" if scope["method"] == "HEAD" else msgspec.json.encode(body)
    return Response(content, status, headers, "application/json")


def failure_of(error: DeltaError) -> Failure:
    """Return the failure for an error of the catalog."""
    return Failure(_kind_of(error), error.message)


def _kind_of(error: DeltaError) -> FailureKind:
    match error:
        case CatalogNameNotFoundError():
            return FailureKind.NO_SCHEMA if error.error_class == "SCHEMA_NOT_FOUND" else FailureKind.NO_TABLE
        case TableReplacedError():
            return FailureKind.NO_TABLE
        case CatalogNameExistsError():
            return FailureKind.TABLE_EXISTS
        case NotAuthorizedError():
            return FailureKind.NOT_ALLOWED
        case RatificationConflictError():
            return FailureKind.VERSION_TAKEN
        case StaleMetadataError():
            return FailureKind.REQUIREMENT_FAILED
        case TooManyUnpublishedError():
            return FailureKind.TOO_MANY_UNPUBLISHED
        case CatalogUnavailableError():
            return FailureKind.STATE_UNKNOWN
        case InvalidProposalError():
            return FailureKind.INVALID
        case PublishedMismatchError() | StorageError() | CatalogError():
            return FailureKind.INTERNAL
    # All other errors come from the client's input: schemas, locations, names.
    return FailureKind.INVALID
