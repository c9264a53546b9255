"""What DESCRIBE EXTENDED and SHOW TBLPROPERTIES say about a table, with the rows of delta-spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import orjson

from pyspark_delta.protocol.properties import FEATURE_PREFIX, MIN_READER_VERSION, MIN_WRITER_VERSION
from pyspark_delta.schema.declaration_keys import CURRENT_DEFAULT
from pyspark_delta.schema.text_lengths import declared_lengths, declared_type
from pyspark_delta.snapshot import Snapshot

Row: TypeAlias = tuple[str, str | None, str | None]
"""A row of DESCRIBE: `col_name`, `data_type` and `comment`."""

EMPTY: Row = ("", "", "")
DETAILS: Row = ("# Detailed Table Information", "", "")
_DEFAULTS: Row = ("# Column Default Values", "", "")
_CLUSTERING = "clusteringColumns"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a table is, and what its catalog knows about it. `name` are the parts of its name, its own the last.

    `properties` are those that are shown, without values that the session hides.
    """

    name: Sequence[str]
    location: str
    properties: Mapping[str, str]
    owner: str | None = None
    is_managed: bool = False
    is_managed_location: bool = False


def declared_properties(snapshot: Snapshot) -> dict[str, str]:
    """Return the table properties as delta-spark shows them: with protocol versions, table features and clustering."""
    protocol, clustering = snapshot.protocol, snapshot.clustering_paths()
    found = {
        **snapshot.properties,
        MIN_READER_VERSION.name: str(protocol.min_reader_version),
        MIN_WRITER_VERSION.name: str(protocol.min_writer_version),
        **{f"{FEATURE_PREFIX}{feature}": "supported" for feature in protocol.listed_features},
    }
    if clustering:
        found[_CLUSTERING] = orjson.dumps(clustering).decode()
    return dict(sorted(found.items()))


def details(snapshot: Snapshot, place: Place) -> Iterator[Row]:
    """Yield the rows that EXTENDED adds to those of the columns."""
    yield EMPTY
    yield DETAILS
    *schemas, name = place.name
    if len(schemas) > 1:
        yield "Catalog", schemas[0], ""
    if schemas:
        yield "Namespace", schemas[-1], ""
        yield "Database", schemas[-1], ""
    yield "Table", name, ""
    yield "Type", "MANAGED" if place.is_managed else "EXTERNAL", ""
    if snapshot.metadata.description is not None:
        yield "Comment", snapshot.metadata.description, ""
    yield "Location", place.location, ""
    yield "Provider", "delta", ""
    if place.owner:
        yield "Owner", place.owner, ""
    if place.is_managed_location:
        yield "Is_managed_location", "true", ""
    yield "Table Properties", f"[{','.join(f'{key}={value}' for key, value in place.properties.items())}]", ""
    yield from _defaults(snapshot)


def _defaults(snapshot: Snapshot) -> Iterator[Row]:
    fields = [field for field in snapshot.schema if CURRENT_DEFAULT in field.metadata]
    if fields:
        yield EMPTY
        yield _DEFAULTS
    for field in fields:
        yield field.name, declared_type(field.type, declared_lengths(field)), str(field.metadata[CURRENT_DEFAULT])
