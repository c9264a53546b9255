"""What Unity Catalog can store: checked before a request is sent, because its server fails at some of it with a 500."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import orjson

from pyspark_delta.actions.model import DomainMetadata
from pyspark_delta.catalog.contract import TableName
from pyspark_delta.catalog.identifiers import shown
from pyspark_delta.catalog.unity.property_sync import CLUSTERING, CLUSTERING_COLUMNS, domains_to_json, own_properties
from pyspark_delta.errors import InvalidProposalError

NAME_PATTERN = r"^[A-Za-z0-9_@-]{1,255}$"
LONGEST_PROPERTY = 255
"""Characters of the key or of the value of a property. CHECK constraints and clustering columns are properties."""
REQUIRED_PROPERTIES = {
    "delta.enableInCommitTimestamps": "true",
    "delta.enableDeletionVectors": "true",
    "delta.checkpointPolicy": "v2",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.checkpoint.writeStatsAsJson": "true",
}
"""What the server requires of managed tables (0.5.0 to 0.6.0). It says so only when a table is created."""

_NAME = re.compile(NAME_PATTERN.replace("$", r"\Z"))


def is_valid_name(part: str) -> bool:
    """True if Unity Catalog takes the text as the name of a catalog, a schema or a table."""
    return _NAME.match(part) is not None


def check_new_name(name: TableName) -> None:
    """Check the schema and the table of a name that is to be given. Raises InvalidProposalError."""
    check_name_part(name.schema)
    check_name_part(name.name)


def check_name_part(part: str) -> None:
    """Check one part of a name that is to be given. Raises InvalidProposalError."""
    if not is_valid_name(part):
        raise InvalidProposalError(
            f"Unity Catalog does not accept the name {shown(part)}. Use 1 to 255 letters, digits, '_', '-' and '@'.",
            name=shown(part),
        )


def check_properties(table: TableName, properties: Mapping[str, str], known: Mapping[str, str]) -> None:
    """Check the properties that differ from the known ones. Raises InvalidProposalError."""
    for key, value in own_properties(properties).items():
        if known.get(key) != value:
            _check_property(table, key, value)


def check_domains(table: TableName, domains: Iterable[DomainMetadata]) -> None:
    """Check the domains that the catalog stores as properties. Raises InvalidProposalError."""
    columns = domains_to_json(domains).get(CLUSTERING, {}).get("clusteringColumns")
    if columns is not None:
        _check_property(table, CLUSTERING_COLUMNS, orjson.dumps(columns).decode())


def required_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a managed table that its commits must keep: those that are as the server requires.

    A table on an older server, which required less, may lack some of them.
    """
    return {key: value for key, value in REQUIRED_PROPERTIES.items() if properties.get(key) == value}


def _check_property(table: TableName, key: str, value: str) -> None:
    for what, text in (("name", key), ("value", value)):
        if len(text) > LONGEST_PROPERTY:
            raise InvalidProposalError(
                f"The {what} of the property {shown(key)} of table {table} has {len(text)} characters. Unity Catalog "
                f"stores at most {LONGEST_PROPERTY}. Use a shorter one.",
                table=str(table),
                property=shown(key),
                length=len(text),
            )
