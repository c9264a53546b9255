"""The metadata tables `protocol` and `domains`: what a version requires of clients, and its metadata domains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pyspark_delta.features import find_feature, supported_features
from pyspark_delta.protocol.feature import FeatureKind
from pyspark_delta.snapshot import Snapshot

_PROTOCOL = pa.schema(
    [
        pa.field("min_reader_version", pa.int32()),
        pa.field("min_writer_version", pa.int32()),
        pa.field("feature", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("listed", pa.bool_()),
        pa.field("active", pa.bool_()),
        pa.field("known", pa.bool_()),
    ]
)
_DOMAINS = pa.schema([pa.field("domain", pa.string(), nullable=False), pa.field("configuration", pa.string())])


def protocol_schema(snapshot: Snapshot) -> pa.Schema:
    """Return the columns of `protocol`.

    `kind` is `writer` or `reader-writer`; `listed` is false for a feature that the versions imply; `active` features
    are used by schema or properties, and null if the feature is not `known` to this package.
    """
    return _PROTOCOL


def protocol_rows(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    """Yield the features that the version supports, by name; one row without a feature if there is none."""
    protocol = snapshot.protocol
    versions = {"min_reader_version": protocol.min_reader_version, "min_writer_version": protocol.min_writer_version}
    rows: list[dict[str, Any]] = [
        {**versions, **_feature(snapshot, name)} for name in sorted(supported_features(snapshot.configuration))
    ]
    yield pa.RecordBatch.from_pylist(rows or [versions], _PROTOCOL)


def _feature(snapshot: Snapshot, name: str) -> dict[str, Any]:
    feature, protocol = find_feature(name), snapshot.protocol
    if feature is None:
        is_read = name in (protocol.reader_features or ())
        kind = (FeatureKind.READER_WRITER if is_read else FeatureKind.WRITER).value
    else:
        kind = feature.kind.value
    return {
        "feature": name,
        "kind": kind,
        "listed": name in protocol.listed_features,
        "active": None if feature is None else feature.is_active(snapshot.configuration),
        "known": feature is not None,
    }


def domains_schema(snapshot: Snapshot) -> pa.Schema:
    """Return the columns of `domains`; names that begin with `delta.` belong to features."""
    return _DOMAINS


def domain_rows(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    """Yield the live metadata domains, by name."""
    rows = [{"domain": name, "configuration": one.configuration} for name, one in sorted(snapshot.domains().items())]
    yield pa.RecordBatch.from_pylist(rows, _DOMAINS)
