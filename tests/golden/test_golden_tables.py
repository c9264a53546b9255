"""Every golden table through Table.scan: version, schema, row count and content, and the tables that must fail."""

from __future__ import annotations

import json

import pytest
from tests.golden.catalogue import REFUSED, GoldenTable, assert_content, golden_tables, parametrize, unreadable

from pyspark_delta.errors import DeltaError, UnsupportedFeatureError
from pyspark_delta.schema.json import schema_to_json
from pyspark_delta.table import Table


@parametrize("table")
def test_latest_content(table: GoldenTable) -> None:
    opened = Table.open(table.path)
    assert opened.version == table.expected["latest_version"]
    assert list(opened.partition_columns) == table.expected["partition_columns"]
    assert [f.name for f in opened.schema] == [c["name"] for c in table.expected["columns"]]
    if "schema_json" in table.expected:
        assert json.loads(schema_to_json(opened.schema)) == table.expected["schema_json"]
    assert_content(opened.scan().to_arrow(), table.expected)


@parametrize("table")
def test_time_travel(table: GoldenTable) -> None:
    for version, expected in table.expected.get("versions", {}).items():
        travelled = Table.open(table.path, version=int(version))
        assert travelled.version == int(version)
        if not unreadable(expected):
            assert_content(travelled.scan().to_arrow(), expected)


@pytest.mark.filterwarnings("ignore::pyspark_delta.errors.DeltaWarning")  # an older checkpoint is tried first
@parametrize("error")
def test_tables_that_must_fail(table: GoldenTable) -> None:
    with pytest.raises(DeltaError) as raised:
        Table.open(table.path).scan().to_arrow()
    assert len(raised.value.message) > 20
    if "unknown reader feature" in table.expected["error"]["reason"]:
        assert table.expected["error"]["reason"].split("unknown reader feature ")[1].split()[0] in raised.value.message


@parametrize("catalog")
def test_catalog_managed_tables_are_refused_by_path(table: GoldenTable) -> None:
    with pytest.raises(DeltaError, match="catalog"):
        Table.open(table.path)


@pytest.mark.parametrize("table_id", sorted(REFUSED))
def test_tables_outside_the_specification_are_refused_by_name(table_id: str) -> None:
    table = next((t for t in golden_tables() if t.id == table_id), None)
    if table is None:
        pytest.skip("golden tables not found; set PYSPARK_DELTA_GOLDEN")
    assert table.expected["acceptable_error"]
    with pytest.raises(UnsupportedFeatureError, match=REFUSED[table_id]):
        Table.open(table.path)
