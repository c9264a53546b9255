"""Extracts members of JSON from clients one by one, with a clear error for invalid ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, overload

from pyspark_delta.catalog.contract import TableName
from pyspark_delta.catalog.unity.limits import is_valid_name
from pyspark_delta.log.names import CommitName, parse_name
from pyspark_delta.server.failures import Failure, FailureKind

LARGEST = 2**63 - 1
# Names stand in paths, and with dots between them.
NAME = r"^[^\x00-\x1f./\x7f]{1,255}$"
_NAME = re.compile(NAME.replace("$", r"\Z"))
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_ID = re.compile(r"[0-9A-Za-z-]{1,64}")


def members(value: Any, what: str) -> Mapping[str, Any]:
    """Return an object. Raises Failure for anything else."""
    if not isinstance(value, dict):
        raise invalid(f"{what} must be an object.")
    return value


@overload
def text(value: Mapping[str, Any], key: str, *, optional: Literal[False] = False) -> str: ...
@overload
def text(value: Mapping[str, Any], key: str, *, optional: Literal[True]) -> str | None: ...
def text(value: Mapping[str, Any], key: str, *, optional: bool = False) -> str | None:
    """Return a text; None, or a missing member, if it is optional."""
    found = value.get(key)
    if found is None and optional:
        return None
    if not isinstance(found, str):
        raise invalid(f"'{key}' must be a text.")
    return found


@overload
def whole(value: Mapping[str, Any], key: str, least: int = ..., *, optional: Literal[False] = False) -> int: ...
@overload
def whole(value: Mapping[str, Any], key: str, least: int = ..., *, optional: Literal[True]) -> int | None: ...
def whole(value: Mapping[str, Any], key: str, least: int = 0, *, optional: bool = False) -> int | None:
    """Return an integer of 64 bits, at least `least`."""
    found = value.get(key)
    if found is None and optional:
        return None
    if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= LARGEST:
        raise invalid(f"'{key}' must be a whole number from {least} on.")
    return found


def listed(value: Mapping[str, Any], key: str, *, optional: bool = False) -> list[Any]:
    """Return a list; empty if it is optional and missing."""
    found = value.get(key)
    if found is None and optional:
        return []
    if not isinstance(found, list):
        raise invalid(f"'{key}' must be a list.")
    return found


def texts_in(value: Mapping[str, Any], key: str, *, optional: bool = False) -> list[str]:
    """Return a list of texts."""
    found = listed(value, key, optional=optional)
    if not all(isinstance(member, str) for member in found):
        raise invalid(f"'{key}' must be a list of texts.")
    return found


def properties_in(value: Mapping[str, Any], key: str, *, optional: bool = False) -> dict[str, str]:
    """Return an object of texts."""
    found = value.get(key)
    if found is None and optional:
        return {}
    if not isinstance(found, dict) or not all(isinstance(member, str) for member in found.values()):
        raise invalid(f"'{key}' must be an object of texts.")
    return dict(found)


def name_part(value: Any, what: str) -> str:
    """Return one part of a name."""
    if not isinstance(value, str) or not _NAME.match(value) or not value.isprintable():
        raise invalid(f"{what} must be a text of 1 to 255 characters without dots, slashes and control characters.")
    return value


def new_name(value: Any, what: str) -> str:
    """Return one part of a new name that Unity Catalog accepts."""
    if not isinstance(value, str) or not is_valid_name(value):
        raise invalid(f"{what} must be a text of 1 to 255 letters, digits, '_', '-' and '@'.")
    return value


def full_name(value: str, parts: int) -> list[str]:
    """Return the parts of a name like `catalog.schema.table`."""
    found = value.split(".")
    if len(found) != parts:
        raise invalid(f"The name must have {parts} parts, separated by dots.")
    return [name_part(part, "A part of the name") for part in found]


def table_name(catalog: Any, schema: Any, name: Any) -> TableName:
    """Return the name of a table."""
    return TableName(
        name_part(catalog, "The name of the catalog"),
        name_part(schema, "The name of the schema"),
        name_part(name, "The name of the table"),
    )


def table_id(value: Any) -> str:
    """Return the id of a table. Invalid text is treated as the id of no table."""
    if not isinstance(value, str):
        raise invalid("The id of a table must be a text.")
    if not _ID.fullmatch(value):
        raise Failure(FailureKind.NO_TABLE, "The catalog has no table with this id.")
    return value


def is_uuid(value: str) -> bool:
    """True if a text is a UUID in the usual form of 36 characters."""
    return _UUID.fullmatch(value) is not None


def staged_name(value: Mapping[str, Any], key: str, version: int) -> str:
    """Return the name of a staged commit of a version: one path segment, `<20 digits of the version>.<uuid>.json`."""
    found = text(value, key)
    name = parse_name(found)
    if not isinstance(name, CommitName) or name.uuid is None or name.version != version:
        raise invalid(
            f"'{key}' must be the name of a staged commit of version {version}, without a directory: "
            f"{version:020d}.<uuid>.json."
        )
    return found


def invalid(message: str) -> Failure:
    """Return the failure for an invalid request."""
    return Failure(FailureKind.INVALID, message)
