"""Any table, changed and rearranged in any order, beside other writers: the same rows and ids, and true statistics."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lengths import length

from pyspark_delta.data.reader import read_plan
from pyspark_delta.maintenance.optimize import OptimizeRequest, plan_optimize
from pyspark_delta.maintenance.reorganize import PurgeRequest, plan_purge
from pyspark_delta.maintenance.rewriting.bins import Bin
from pyspark_delta.maintenance.rewriting.plan import RewritePlan
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting, rewrite_in_order
from pyspark_delta.maintenance.rewriting.rewritten import RewrittenBin
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.table import Table

Row = dict[str, Any]

_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "n": st.none() | st.integers(0, 9),
            "s": st.none() | st.text("ab%/ é", max_size=3),
            "d": st.none() | st.dates(date(2024, 1, 1), date(2024, 1, 3)),
            "l": st.none() | st.lists(st.none() | st.integers(0, 3), max_size=2),
        }
    ),
    min_size=1,
    max_size=6,
)
_CHANGES = st.one_of(
    st.tuples(st.just("append"), _ROWS),
    st.tuples(st.just("delete"), st.integers(0, 9)),
    st.tuples(st.just("update"), st.integers(0, 9)),
)
_REARRANGEMENTS = st.tuples(
    st.sampled_from(["optimize", "purge"]),
    st.sampled_from([1, 1500, 1 << 20]),  # bytes of new files
    st.booleans(),  # a commit for each bin
    st.none() | _CHANGES,  # what another writer does meanwhile
)
_TABLES = st.fixed_dictionaries(
    {
        "delta.enableDeletionVectors": st.booleans(),
        "delta.enableRowTracking": st.booleans(),
        "delta.enableChangeDataFeed": st.booleans(),
        "delta.columnMapping.mode": st.sampled_from(["none", "name"]),
    }
)


class Model:
    """The table and the rows that it must have; rows with number `id` are never repeated."""

    def __init__(self, path: str, properties: dict[str, object], partitioned: bool) -> None:
        schema = "id BIGINT, n INT, s STRING, d DATE, l ARRAY<INT>"
        self.table = Table.create(path, schema, partition_by=["s", "d"] if partitioned else [], properties=properties)
        self.has_ids = bool(properties["delta.enableRowTracking"])
        self.partitioned = partitioned
        self.rows: dict[int, Row] = {}
        self.next = 0

    def change(self, kind: str, value: Any) -> None:
        table = Table.open(self.table.location)
        if kind == "append":
            added = [{"id": self.next + i, **row} for i, row in enumerate(value)]
            self.next += len(added)
            table.append(added)
            for row in added:  # an empty text in a partition column is null
                self.rows[row["id"]] = {**row, "s": row["s"] or (None if self.partitioned else row["s"])}
        elif kind == "delete":
            table.delete(f"n = {value}")
            self.rows = {i: row for i, row in self.rows.items() if row["n"] != value}
        else:
            table.update({"n": "n + 1"}, f"n = {value}")
            for row in self.rows.values():
                row["n"] = row["n"] + 1 if row["n"] == value else row["n"]

    def ids(self) -> dict[int, int]:
        if not self.has_ids:
            return {}
        snapshot = Table.open(self.table.location).snapshot
        rows = read_plan(plan_scan(snapshot, ["id"], row_ids=True)).read_all()
        found = dict(zip(rows["id"].to_pylist(), rows["_row_id"].to_pylist(), strict=True))
        assert len(set(found.values())) == len(found)
        return found

    def rearrange(self, command: str, target: int, batches: bool, other: tuple[str, Any] | None) -> None:
        table, done = Table.open(self.table.location), []
        batch_size = 1 if batches else None
        plan: RewritePlan
        if command == "optimize":
            request = OptimizeRequest(target_size=target, max_deleted_share=0.0, batch_size=batch_size, threads=1)
            plan = plan_optimize(table.snapshot, request)
        else:
            plan = plan_purge(table.snapshot, PurgeRequest(target_size=target, batch_size=batch_size, threads=1))

        def rewrite(rewriting: Rewriting, source: Bin, check: Callable[[], None]) -> RewrittenBin:
            written = rewrite_in_order(rewriting, source, check)
            if other is not None and not done:
                done.append(True)
                self.change(*other)
            return written

        before = self.ids()
        result = replace(plan, options=replace(plan.options, writer=rewrite)).execute()
        after = self.ids()
        assert {i: after[i] for i in before if i in after} == {i: before[i] for i in after if i in before}
        self.check()
        if table.metadata.configuration.get("delta.enableChangeDataFeed") == "true":
            for version in result.versions:
                feed = Table.open(table.location).changes(starting_version=version, ending_version=version)
                assert not feed.to_arrow().num_rows

    def check(self) -> None:
        table = Table.open(self.table.location)
        found = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
        assert found == self.rows
        assert table.count() == len(found)
        assert table.snapshot.checksum_differences() == ()
        plan = plan_scan(table.snapshot, ["id"], statistics=True)
        for at in range(plan.files.num_rows):
            ids = read_plan(replace(plan, files=plan.files.slice(at, 1))).read_all()["id"].to_pylist()
            stats = json.loads(plan.files["stats"][at].as_py())
            vector = plan.files["deletion_vector"][at].as_py()
            assert stats["numRecords"] == len(ids) + (0 if vector is None else vector["cardinality"])
            least, most = (next(iter(stats[bound].values())) for bound in ("minValues", "maxValues"))
            assert all(least <= i <= most for i in ids)
            if vector is None:
                assert (least, most) == (min(ids), max(ids))


@settings(max_examples=length(15, 400), deadline=None)
@given(
    properties=_TABLES,
    partitioned=st.booleans(),
    first=st.lists(_CHANGES, min_size=2, max_size=5),
    steps=st.lists(_REARRANGEMENTS | _CHANGES, min_size=1, max_size=5),
)
def test_rows_ids_feed_and_statistics_survive(
    properties: dict[str, object], partitioned: bool, first: list[Any], steps: list[Any]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        model = Model(f"{directory}/t", properties, partitioned)
        for change in first:
            model.change(*change)
        for step in steps:
            (model.change if len(step) == 2 else model.rearrange)(*step)
        model.check()
