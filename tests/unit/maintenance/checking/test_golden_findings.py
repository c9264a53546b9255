"""What the checker finds in tables that other engines wrote: nothing, or what is listed here with its reason."""

from __future__ import annotations

import pytest
from tests.golden.catalogue import GoldenTable, golden_tables

from pyspark_delta.maintenance.checking import CheckRequest, check_table

KNOWN: dict[str, dict[str, str]] = {}

TABLES = golden_tables()


@pytest.mark.parametrize("table", TABLES, ids=[table.id for table in TABLES])
def test_golden_tables_have_only_known_findings(table: GoldenTable) -> None:
    result = check_table(str(table.path), CheckRequest("footer"))
    found = {finding.id: str(finding) for finding in (*result.errors, *result.warnings)}
    assert set(found) == set(KNOWN.get(table.id, {})), found
