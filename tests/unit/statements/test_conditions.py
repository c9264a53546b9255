"""Conditions that would not say the same about a row when they are computed again."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.connect import functions as connect

from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.statements.conditions import check_deterministic


@pytest.mark.parametrize(
    "call",
    [
        "rand()",
        "random(3)",
        "randn()",
        "uuid()",
        "shuffle(l)",
        "monotonically_increasing_id()",
        "spark_partition_id()",
        "randstr(3)",
        "uniform(1, 2)",
    ],
)
def test_functions_whose_value_changes_are_refused(call: str) -> None:
    for text in (f"id > {call}", f"id > 1 or exists(l, x -> x = {call.upper()})"):
        conditions: list[Any] = [text, connect.expr(text)]
        for condition in conditions:
            with pytest.raises(InvalidPredicateError, match=r"not deterministic: \w+\(\) can differ") as caught:
                check_deterministic(condition, "DELETE")
            assert caught.value.error_class == "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"


@pytest.mark.parametrize("text", ["rand > uuid", "`rand` = 1", "v = 'rand()'", "pmod(id, 2) = 0", "id +"])
def test_other_conditions_are_not(text: str) -> None:
    check_deterministic(text, "DELETE")
