"""What the condition of a MERGE says about each side, and what is not certain enough to say anything."""

from __future__ import annotations

import pytest

from pyspark_delta.expressions.text import to_sql
from pyspark_delta.schema.types import BINARY, DOUBLE, INTEGER, LONG, SHORT, STRING, StructField, StructType
from pyspark_delta.statements.merge.condition import MatchCondition, understand

TABLE = StructType(
    (
        StructField("id", LONG),
        StructField("i", INTEGER),
        StructField("d", DOUBLE),
        StructField("x", BINARY),
        StructField("c", STRING, metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}),
        StructField("n", StructType((StructField("a", LONG),))),
        StructField("src", StructType((StructField("id", LONG),))),
    )
)
SOURCE = StructType(
    (
        StructField("ID", LONG),
        StructField("k", INTEGER),
        StructField("small", SHORT),
        StructField("d", DOUBLE),
        StructField("c", STRING),
        StructField("v", LONG),
        StructField("V", LONG),
        StructField("m", StructType((StructField("id", LONG),))),
    )
)


def take_apart(condition: str) -> MatchCondition:
    return understand(condition, TABLE, "t", SOURCE, time_zone="UTC")


def keys(condition: str) -> list[tuple[str, str]]:
    found = take_apart(condition)
    assert found.own is None
    return [(to_sql(key.column), ".".join(key.source)) for key in found.keys]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("t.id = s.id", [("id", "s.id")]),
        ("(s.small = T.I) and (t.n.a = k)", [("i", "s.small"), ("n.a", "k")]),
        ("i = s.k", [("i", "s.k")]),
        ("id = s.k", []),  # both sides have an id
        ("t.i = id", []),
        ("t.id = src.id", []),  # of the source src, or a part of the table's column
        ("t.id = m.id", []),  # of the source m, or a part of its column
        ("t.id = s.m.id", []),
        ("t.id = s.v", []),  # there are two
        ("t.d = s.d", []),  # 0.0 equals -0.0
        ("t.c = s.c", []),  # padded
        ("t.id = s.c", []),
        ("t.id <=> s.id", [("id", "s.id")]),
        ("t.id = s.id or t.i = s.k", []),
        ("not t.id = s.id", []),
        ("t.id = s.id + 1", []),
        ("true", []),
        ("t.id = (", []),
    ],
)
def test_keys_are_columns_of_both_sides_that_must_be_equal(condition: str, expected: list[tuple[str, str]]) -> None:
    assert keys(condition) == expected


def test_parts_on_the_table_alone_are_told_from_the_others() -> None:
    found = take_apart("t.id > 5 and i < 3 and t.n.a = s.k and s.k > 1 and d = 1 and t.x = s.id")
    assert found.own is not None
    assert to_sql(found.own) == "id > 5L AND i < 3"
    assert [to_sql(key.column) for key in found.keys] == ["n.a"]
    assert found.columns == ("id", "i", "n", "x")
    subquery = "exists (select 1 from u where t.id = 1)"
    assert take_apart(subquery) == MatchCondition(subquery)
