"""Conditions that a transaction has read, when it changes the schema."""

from __future__ import annotations

from typing import Any

import pytest
from tests.declarations import field, with_features

from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import ReadSet
from pyspark_delta.transaction.schema_reads import reads_across


def mapped(*columns: tuple[str, str, Any]) -> TableConfiguration:
    """A table that maps columns by name; columns as their name, their physical name and their type."""
    fields = [
        field(name, kind, delta__columnMapping__id=number, delta__columnMapping__physicalName=physical)
        for number, (name, physical, kind) in enumerate(columns, 1)
    ]
    return with_features("columnMapping", properties={"delta.columnMapping.mode": "name"}, fields=fields)


BEFORE = mapped(("id", "c1", "long"), ("p", "c2", "integer"))


@pytest.mark.parametrize(
    ("after", "condition", "is_same"),
    [
        (mapped(("id", "c1", "long"), ("p", "c2", "integer"), ("new", "c3", "long")), "id = 1 AND p = 2", True),
        (mapped(("id", "c1", "long"), ("p", "c2", "integer"), ("new", "c3", "long")), "new IS NULL", False),
        (mapped(("id", "c1", "long"), ("q", "c2", "integer")), "id = 1", True),
        (mapped(("id", "c1", "long"), ("q", "c2", "integer")), "q = 1", False),
        (mapped(("id", "c1", "long"), ("q", "c2", "integer"), ("p", "c3", "integer")), "p IS NULL", False),
        (mapped(("id", "c1", "long"), ("p", "c2", "long")), "p = 1", False),
    ],
)
def test_conditions_on_columns_that_stay_are_kept(after: TableConfiguration, condition: str, is_same: bool) -> None:
    reads = ReadSet(predicates=(parse_predicate(condition, after.schema),), paths=frozenset({"a"}))
    found = reads_across(reads, BEFORE, after)
    assert found == (reads if is_same else ReadSet(whole_table=True, paths=frozenset({"a"})))
    assert reads_across(reads, after, after) is reads
