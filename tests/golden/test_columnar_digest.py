"""The digest by columns is the one that the golden tables come with."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from tests.golden.catalogue import digest_module
from tests.golden.columnar_digest import columnar_digest


def test_it_is_the_digest_of_the_rows_in_any_order(golden: Path) -> None:
    amounts = pa.array(
        [Decimal("1.50"), None, Decimal("-0.07"), Decimal("0.00"), Decimal("1.50")], pa.decimal128(20, 2)
    )
    rows = pa.table({"id": pa.array([3, None, -1, 10, 3], pa.int16()), 'an "amount" ü': amounts})
    expected = digest_module().digest(rows)
    assert columnar_digest(rows) == expected
    assert columnar_digest(pa.concat_tables([rows.slice(2), rows.slice(0, 2)])) == expected
    assert columnar_digest(rows.slice(1)) != expected


@pytest.mark.parametrize(
    "column", [pa.array(["text"]), pa.array([1.5]), pa.array([Decimal("1e-9")], pa.decimal128(20, 9))]
)
def test_what_has_other_rules_is_left_to_the_other_one(column: pa.Array) -> None:
    assert columnar_digest(pa.table({"id": [1], "other": column})) is None
