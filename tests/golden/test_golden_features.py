"""The features of every golden table: which its protocol supports, which are active, and what may be read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.golden.catalogue import REFUSED, GoldenTable, golden_tables

from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.errors import UnsupportedFeatureError, UnsupportedTableError
from pyspark_delta.features import active_features, supported_features
from pyspark_delta.features.support import check_readable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.snapshot.access import check_access


def configuration_of(expected: dict[str, Any]) -> TableConfiguration:
    """What the expectation says of the latest version, put together without a log reader."""
    protocol = expected["protocol"]

    def features(key: str) -> frozenset[str] | None:
        return None if protocol.get(key) is None else frozenset(protocol[key])

    return TableConfiguration(
        Protocol(
            min_reader_version=protocol["minReaderVersion"],
            min_writer_version=protocol["minWriterVersion"],
            reader_features=features("readerFeatures"),
            writer_features=features("writerFeatures"),
        ),
        Metadata(
            id="",
            schema_string=json.dumps(expected.get("schema_json") or {"type": "struct", "fields": []}),
            partition_columns=tuple(expected.get("partition_columns") or ()),
            configuration=expected.get("configuration") or {},
        ),
    )


# Its partition columns are not in its schema; it is refused when the schema is looked at.
UNSOUND = "delta-hist/flink-connector__test-partitioned-delta-table-initial-state"
WITH_PROTOCOL = [t for t in golden_tables() if t.expected.get("protocol")]
tables = pytest.mark.parametrize("table", [pytest.param(t, id=t.id) for t in WITH_PROTOCOL])


@tables
def test_supported_features(table: GoldenTable) -> None:
    assert sorted(supported_features(configuration_of(table.expected))) == sorted(table.expected["supported_features"])


@pytest.mark.parametrize("table", [pytest.param(t, id=t.id) for t in WITH_PROTOCOL if t.id not in (*REFUSED, UNSOUND)])
def test_active_features(table: GoldenTable) -> None:
    assert sorted(active_features(configuration_of(table.expected))) == sorted(table.expected["active_features"])


@tables
def test_readable_unless_a_feature_forbids_it(table: GoldenTable) -> None:
    configuration = configuration_of(table.expected)
    forbidden = {"geospatial", "timestampNanos", "catalogManaged", "catalogOwned", "blahabl"}
    obstacles = forbidden & set(table.expected["supported_features"])

    def check_by_path() -> None:
        check_access(configuration, table.id, None, None)
        check_readable(configuration, table.id)

    if not obstacles:
        check_by_path()
        return
    with pytest.raises(UnsupportedTableError) as raised:
        check_by_path()
    assert any(name in raised.value.message for name in obstacles)
    if isinstance(raised.value, UnsupportedFeatureError):
        assert set(raised.value.features) <= obstacles
