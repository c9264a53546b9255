"""Checks of names and ids from clients. Invalid ones raise Failure."""

from __future__ import annotations

import re

from pyspark_delta.catalog.contract import TableName
from pyspark_delta.log.names import CommitName, parse_name
from pyspark_delta.server.failures import Failure, FailureKind, invalid
from pyspark_delta.server.models import NAME_PATTERN

_NAME = re.compile(NAME_PATTERN)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_ID = re.compile(r"[0-9A-Za-z-]{1,64}")


def name_part(value: str, what: str) -> str:
    """Return one part of a name; `what` describes it in the message. Raises Failure."""
    if not _NAME.match(value) or not value.isprintable():
        raise invalid(f"{what} must have 1 to 255 characters, without dots, slashes and control characters.")
    return value


def full_name(value: str, parts: int) -> list[str]:
    """Return the parts of a name such as `catalog.schema.table`. Raises Failure."""
    found = value.split(".")
    if len(found) != parts:
        raise invalid(f"The name must have {parts} parts, separated by dots.")
    return [name_part(part, "A part of the name") for part in found]


def table_name(catalog: str, schema: str, name: str) -> TableName:
    """Return the name of a table. Raises Failure."""
    return TableName(
        name_part(catalog, "The name of the catalog"),
        name_part(schema, "The name of the schema"),
        name_part(name, "The name of the table"),
    )


def table_id(value: str) -> str:
    """Return the id of a table. Raises Failure for invalid text, as for an unknown id."""
    if not _ID.fullmatch(value):
        raise Failure(FailureKind.NO_TABLE, "The catalog has no table with this id.")
    return value


def is_uuid(value: str) -> bool:
    """Return True if a text is a UUID in the usual form of 36 characters."""
    return _UUID.fullmatch(value) is not None


def check_staged_name(name: str, version: int) -> None:
    """Raise Failure unless a name is that of a staged commit: `<20 digits of the version>.<uuid>.json`."""
    found = parse_name(name)
    if not isinstance(found, CommitName) or found.uuid is None or found.version != version:
        raise invalid(
            f"The file of a commit must be a staged commit of version {version}, without a directory: "
            f"{version:020d}.<uuid>.json."
        )
