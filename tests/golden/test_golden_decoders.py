"""Every golden table, decoded by Polars and by PyArrow: the same rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.decoders import assert_decoded
from tests.golden.catalogue import GoldenTable, parametrize, unreadable

from pyspark_delta.data import polars_decoder
from pyspark_delta.data.polars_columns import decodes
from pyspark_delta.scan.plan import ScanPlan
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.table import Table


def decoded_part(plan: ScanPlan, *, views: bool) -> list[str]:
    """The columns of a plan that Polars may decode."""
    context = plan.context
    alone = {c.field.name: replace(context, columns=(c,), output=(c.field.name,)) for c in context.columns}
    return [name for name in context.output if decodes(alone[name], views=views)]


@parametrize("table")
@pytest.mark.parametrize("refusals", [2, 0], ids=["unopened", "opened"])
def test_the_same_rows(table: GoldenTable, refusals: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polars_decoder, "_FEWEST_BYTES", 0)
    monkeypatch.setattr(polars_decoder, "_REFUSALS", refusals)  # after none, files are opened first
    if unreadable(table.expected):
        return
    opened = Table.open(table.path)
    for views in (True, False):
        names = decoded_part(plan_scan(opened.snapshot), views=views)
        if names:
            partitions = opened.partition_columns
            assert_decoded(plan_scan(opened.snapshot, [*dict.fromkeys([*names, *partitions])]), views=views)
