"""The errors of a server. The Delta API and the legacy endpoints share the reasons and the exceptions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any

from pyspark_delta.errors import (
    CatalogError,
    CatalogNameExistsError,
    CatalogNameNotFoundError,
    CatalogUnavailableError,
    InvalidProposalError,
    NotAuthorizedError,
    TooManyUnpublishedError,
)


class Reason(Enum):
    """Why the server refused a request."""

    NOT_FOUND = auto()
    EXISTS = auto()
    VERSION_TAKEN = auto()
    REQUIREMENT_FAILED = auto()
    TOO_MANY_UNPUBLISHED = auto()
    BUSY = auto()  # nothing was done; the same request may be sent later
    NOT_AUTHENTICATED = auto()
    NOT_ALLOWED = auto()
    OTHER_FORMAT = auto()
    INVALID = auto()
    UNKNOWN = auto()  # the outcome is unknown


_BY_NAME = {
    # the Delta API
    "NotAuthorizedException": Reason.NOT_AUTHENTICATED,
    "PermissionDeniedException": Reason.NOT_ALLOWED,
    "NotFoundException": Reason.NOT_FOUND,
    "NoSuchCatalogException": Reason.NOT_FOUND,
    "NoSuchSchemaException": Reason.NOT_FOUND,
    "NoSuchTableException": Reason.NOT_FOUND,
    "AlreadyExistsException": Reason.EXISTS,
    "CommitVersionConflictException": Reason.VERSION_TAKEN,
    "UpdateRequirementConflictException": Reason.REQUIREMENT_FAILED,
    "ResourceExhaustedException": Reason.TOO_MANY_UNPUBLISHED,
    "TooManyRequestsException": Reason.BUSY,
    "UnsupportedTableFormatException": Reason.OTHER_FORMAT,
    "BadRequestException": Reason.INVALID,
    "InvalidParameterValueException": Reason.INVALID,
    "NotImplementedException": Reason.INVALID,
    "CommitStateUnknownException": Reason.UNKNOWN,
    "InternalServerErrorException": Reason.UNKNOWN,
    # the legacy endpoints
    "UNAUTHENTICATED": Reason.NOT_AUTHENTICATED,
    "PERMISSION_DENIED": Reason.NOT_ALLOWED,
    "COMMIT_VERSION_CONFLICT": Reason.VERSION_TAKEN,
    "UPDATE_REQUIREMENT_CONFLICT": Reason.REQUIREMENT_FAILED,
    "RESOURCE_EXHAUSTED": Reason.TOO_MANY_UNPUBLISHED,
    "TOO_MANY_REQUESTS": Reason.BUSY,
    "ABORTED": Reason.VERSION_TAKEN,
    "UNSUPPORTED_TABLE_FORMAT": Reason.OTHER_FORMAT,
}
_BY_STATUS = {
    401: Reason.NOT_AUTHENTICATED,
    403: Reason.NOT_ALLOWED,
    404: Reason.NOT_FOUND,
    408: Reason.UNKNOWN,
    429: Reason.BUSY,
    501: Reason.INVALID,
}


class Refusal(Exception):
    """The server refused a request. `name` is the error type or code in the response.

    With `is_read` the request was a read, so nothing was changed.
    """

    def __init__(self, status: int, name: str, message: str, *, is_read: bool = False) -> None:
        super().__init__(f"{name or status}: {message}")
        self.status = status
        self.name = name
        self.message = message
        self.is_read = is_read

    @property
    def reason(self) -> Reason:
        """The reason, by the name of the error, otherwise by the HTTP status."""
        if self.name in _BY_NAME:
            return _BY_NAME[self.name]
        if self.name.endswith("NOT_FOUND"):
            return Reason.NOT_FOUND
        if self.name.endswith("ALREADY_EXISTS"):
            return Reason.EXISTS
        return _BY_STATUS.get(self.status, Reason.UNKNOWN if self.status >= 500 else Reason.INVALID)


def refusal_of(status: int, value: Any, *, is_read: bool = False) -> Refusal:
    """Return the refusal in a response. `value` is its JSON, None if it has none.

    `is_read` is True if the request was a read.
    """
    error = value.get("error") if isinstance(value, dict) else None
    name, message = "", f"HTTP status {status}"
    if isinstance(error, dict):
        name, message = str(error.get("type") or ""), str(error.get("message") or "")
    elif isinstance(value, dict):
        name, message = str(value.get("error_code") or ""), str(value.get("message") or "")
    return Refusal(status, name, message, is_read=is_read)


def error_of(refusal: Refusal, subject: str) -> CatalogError:
    """Return the error for a refusal of a request about `subject`.

    The subject has no article, as in `table main.sales.orders`.
    """
    facts: dict[str, Any] = {"subject": subject, "status": refusal.status, "refusal": refusal.name}
    said = refusal.message.rstrip(".") or refusal.name
    match refusal.reason:
        case Reason.NOT_FOUND:
            return CatalogNameNotFoundError(f"The catalog has no {subject} ({said}).", **facts)
        case Reason.EXISTS:
            return CatalogNameExistsError(f"The catalog already has the {subject} ({said}).", **facts)
        case Reason.NOT_AUTHENTICATED:
            return NotAuthorizedError(
                f"The catalog does not accept the token that was sent for the {subject} ({said}). "
                "Connect again with a valid one.",
                **facts,
            )
        case Reason.NOT_ALLOWED:
            return NotAuthorizedError(f"The catalog does not allow this for the {subject} ({said}).", **facts)
        case Reason.TOO_MANY_UNPUBLISHED:
            return TooManyUnpublishedError(
                f"The catalog accepts no further commit to the {subject} until earlier ones are published ({said}).",
                **facts,
            )
        case Reason.UNKNOWN | Reason.BUSY:
            outcome = "" if refusal.is_read else " It is not known whether the request was done."
            return CatalogUnavailableError(
                f"The catalog failed at a request about the {subject} ({said}).{outcome}", **facts
            )
        case _:
            return InvalidProposalError(f"The catalog refuses a request about the {subject}: {said}.", **facts)


@contextmanager
def translated(subject: str) -> Iterator[None]:
    """Convert refusals in the block to errors about `subject`."""
    try:
        yield
    except Refusal as refusal:
        raise error_of(refusal, subject) from None
