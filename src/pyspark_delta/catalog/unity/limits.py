"""Limits of Unity Catalog, checked before a request is sent, because its server answers some violations with a 500."""

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
"""The maximum number of characters in the key or the value of a property.

CHECK constraints and clustering columns are stored as properties.
"""
REQUIRED_PROPERTIES = {
    "delta.enableInCommitTimestamps": "true",
    "delta.enableDeletionVectors": "true",
    "delta.checkpointPolicy": "v2",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.checkpoint.writeStatsAsJson": "true",
}
"""The properties that the server (0.5.0 to 0.6.0) requires of managed tables, but states only when one is created."""

_NAME = re.compile(NAME_PATTERN.replace("$", r"\Z"))


def is_valid_name(part: str) -> bool:
    """Return True if Unity Catalog accepts the name for a catalog, a schema or a table."""
    return _NAME.match(part) is not None


def check_new_name(name: TableName) -> None:
    """Raise InvalidProposalError if Unity Catalog does not accept the schema or the table of a new name."""
    check_name_part(name.schema)
    check_name_part(name.name)


def check_name_part(part: str) -> None:
    """Raise InvalidProposalError if Unity Catalog does not accept one part of a new name."""
    if not is_valid_name(part):
        raise InvalidProposalError(
            f"Unity Catalog does not accept the name {shown(part)}. Use 1 to 255 letters, digits, '_', '-' and '@'.",
            name=shown(part),
        )


def check_properties(table: TableName, properties: Mapping[str, str], known: Mapping[str, str]) -> None:
    """Raise InvalidProposalError for a property that is too long, unless the catalog has it (`known`)."""
    for key, value in own_properties(properties).items():
        if known.get(key) != value:
            _check_property(table, key, value)


def check_domains(table: TableName, domains: Iterable[DomainMetadata]) -> None:
    """Raise InvalidProposalError if clustering columns, which the catalog stores as a property, are too long."""
    columns = domains_to_json(domains).get(CLUSTERING, {}).get("clusteringColumns")
    if columns is not None:
        _check_property(table, CLUSTERING_COLUMNS, orjson.dumps(columns).decode())


def required_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that commits to a managed table must keep: those with the value that the server requires.

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
