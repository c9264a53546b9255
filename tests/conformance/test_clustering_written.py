"""Clustered tables as they are written (CLU)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import hand_made
from tests.commits import actions, draft, memory_location
from tests.declarations import declare, field, protocol
from tests.hand_made import HandMade
from tests.inline_vectors import vector

from pyspark_delta.actions.model import DomainMetadata
from pyspark_delta.data.reader import read_plan
from pyspark_delta.ddl.change import commit_change
from pyspark_delta.ddl.clustering import cluster_by, recluster
from pyspark_delta.errors import ConcurrentDeleteReadError, DataFileError, InvalidOperationError
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import store_for
from pyspark_delta.transaction.transaction import Transaction


def test_c351_clustering_columns_have_statistics_whatever_the_properties_say() -> None:
    location = memory_location()
    declares = {"delta.dataSkippingNumIndexedCols": "0", "delta.checkpoint.writeStatsAsStruct": "true"}
    schema = [field("a", "long"), field("s", {"type": "struct", "fields": [field("b.c", "long"), field("d", "long")]})]
    listed = protocol(1, 7, writers=("clustering", "domainMetadata"))
    batch = pa.RecordBatch.from_pylist([{"a": 1, "s": {"b.c": 2, "d": 3}}])
    domain = DomainMetadata(domain="delta.clustering", configuration='{"clusteringColumns":[["s","b.c"]]}')
    with Transaction.creating(location, declare(listed, declares, schema)) as transaction:
        transaction.stage(draft(domains=(domain,)))
        transaction.write([batch])
    with Transaction.on(Snapshot.load(location)) as transaction:
        transaction.write([batch])
    expected = {"minValues": {"s": {"b.c": 2}}, "maxValues": {"s": {"b.c": 2}}, "nullCount": {"s": {"b.c": 0}}}
    for version in (0, 1):
        [added] = actions(location, version, "add")
        stats = json.loads(added["stats"])
        assert {name: stats[name] for name in expected} == expected
    Snapshot.load(location).checkpoint()
    content = store_for(location).read(f"{location}/_delta_log/{1:020d}.checkpoint.parquet")
    parsed = pq.read_table(pa.BufferReader(content)).column("add").combine_chunks().field("stats_parsed").drop_null()
    assert [{name: row[name] for name in expected} for row in parsed.to_pylist() if row["numRecords"]] == [expected] * 2


def clustered(location: str, columns: list[str], *stats: str | None) -> Snapshot:
    """A table of longs `a` and `s.b.c`, with statistics of `a` alone for what is written here."""
    made = HandMade(Path(location))
    inner = hand_made.struct_of(hand_made.field("b.c"))
    domain = {"domain": "delta.clustering", "configuration": json.dumps({"clusteringColumns": columns})}
    made.commit(
        0,
        hand_made.features("clustering", "domainMetadata", reader=[]),
        hand_made.metadata(hand_made.field("a"), hand_made.field("s", inner)),
        {"domainMetadata": {**domain, "removed": False}},
        *(hand_made.add(f"{n}.parquet", **({} if text is None else {"stats": text})) for n, text in enumerate(stats)),
    )
    return Snapshot.load(location)


COUNTED = '{"numRecords":2,"nullCount":{"a":2}}'  # all values are null, so there are no bounds
BOTH = '{"numRecords":2,"minValues":{"a":1},"maxValues":{"a":2},"nullCount":{"a":0,"s":{"b.c":1}}}'


def made_of_rows(path: Path, *fields: dict[str, Any], **configuration: str) -> HandMade:
    """A table at version 0 whose three files have the long columns of two levels: `a`, and `b` in `s`."""
    made = HandMade(path)
    extra = {**vector(1), "tags": {"t": "1"}, "baseRowId": 40, "defaultRowCommitVersion": 0}
    stats = {"stats": '{"numRecords":3,"nullCount":{"a":0},"minValues":{"a":1e0}}'}
    inner, outer = (f["metadata"].get("delta.columnMapping.physicalName", f["name"]) for f in fields)
    deep = fields[1]["type"]["fields"][0]
    deep = deep["metadata"].get("delta.columnMapping.physicalName", deep["name"])
    rows = pa.table({outer: [{deep: 9}, None, {deep: 7}], inner: [1, 2, 3]})
    adds = [made.data(f"{n}.parquet", rows) for n in range(3)]
    adds[1]["add"].update(extra)
    adds[2]["add"].update(stats)
    names = ("clustering", "domainMetadata", "deletionVectors", "columnMapping", "rowTracking")
    listed = hand_made.features(*names, reader=["deletionVectors", "columnMapping"])
    watermark = {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark":100}', "removed": False}
    metadata = hand_made.metadata(*fields, configuration=configuration)
    made.commit(0, listed, metadata, {"domainMetadata": watermark}, *adds)
    return made


PLAIN = (hand_made.field("a"), hand_made.field("s", hand_made.struct_of(hand_made.field("b"))))


def mapped(name: str, data_type: Any, number: int) -> dict[str, Any]:
    named = {"delta.columnMapping.physicalName": f"col-{name}", "delta.columnMapping.id": number}
    return hand_made.field(name, data_type, **named)


@pytest.mark.parametrize("mode", ["none", "name"])
def test_c351_files_get_the_statistics_of_a_new_clustering_column(mode: str, tmp_path: Path) -> None:
    fields, configuration, a, b = PLAIN, {}, ["a"], ["s", "b"]
    if mode == "name":
        fields = (mapped("a", "long", 1), mapped("s", hand_made.struct_of(mapped("b", "long", 2)), 3))
        configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"}
        a, b = ["col-a"], ["col-s", "col-b"]
    made_of_rows(tmp_path, *fields, **configuration)
    before = Snapshot.load(str(tmp_path))
    rows = read_plan(plan_scan(before)).read_all()
    commit_change(recluster(before, [["S", "b"], ["a"]]), before)
    after = Snapshot.load(str(tmp_path))
    assert after.clustering_columns() == ["s.b", "a"]
    old, new = ({add["path"]: add for add in actions(str(tmp_path), version, "add")} for version in (0, 1))
    assert not actions(str(tmp_path), 1, "remove")
    for path, add in new.items():
        stats = json.loads(add.pop("stats"))
        assert (stats["numRecords"], value_at(stats, "nullCount", *b), value_at(stats, "nullCount", *a)) == (3, 1, 0)
        assert (value_at(stats, "minValues", *b), value_at(stats, "maxValues", *b)) == (7, 9)
        assert stats.get("tightBounds") == (False if path == "1.parquet" else None)
        assert add.pop("dataChange") is False
        kept = {name: value for name, value in old[path].items() if name not in ("stats", "dataChange")}
        assert {name: add[name] for name in kept} == kept
        assert add.keys() - kept.keys() <= {"baseRowId", "defaultRowCommitVersion"}
    assert len(new) == 3
    assert read_plan(plan_scan(after)).read_all().equals(rows)
    assert read_plan(plan_scan(after, where="s.b = 8")).read_all().num_rows == 0
    again = recluster(after, [["a"]])
    assert not again.recommitted.num_rows


def value_at(tree: Any, *path: str) -> Any:
    for name in path:
        tree = tree[name]
    return tree


def test_c351_only_files_without_statistics_are_committed_again(tmp_path: Path) -> None:
    made = made_of_rows(tmp_path, *PLAIN)
    made.commit(1, {"add": {**hand_made.add("9.parquet")["add"], "stats": BOTH.replace("b.c", "b")}})
    change = recluster(Snapshot.load(str(tmp_path)), [["s", "b"]])
    assert sorted(change.recommitted["path"].to_pylist()) == ["0.parquet", "1.parquet", "2.parquet"]
    change = recluster(Snapshot.load(str(tmp_path)), [["a"]])
    assert sorted(change.recommitted["path"].to_pylist()) == ["0.parquet", "1.parquet"]


def test_c351_a_file_that_cannot_be_read_stops_the_change(tmp_path: Path) -> None:
    made_of_rows(tmp_path, *PLAIN)
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(DataFileError, match=r"1\.parquet"):
        recluster(Snapshot.load(str(tmp_path)), [["a"]])


def test_c351_appends_do_not_conflict_and_removed_files_do(tmp_path: Path) -> None:
    made = made_of_rows(tmp_path, *PLAIN)
    before = Snapshot.load(str(tmp_path))
    change = recluster(before, [["a"]])
    made.commit(1, {"add": {**hand_made.add("9.parquet")["add"], "stats": BOTH}})
    made.commit(2, hand_made.remove("0.parquet"))
    with pytest.raises(ConcurrentDeleteReadError, match=r"0\.parquet"):
        commit_change(change, before)
    made.commit_file(2).unlink()
    assert commit_change(change, before).version == 2


def test_c351_files_with_statistics_can_be_clustered_by_them(tmp_path: Path) -> None:
    assert recluster(clustered(str(tmp_path / "a"), [], COUNTED, BOTH), [["a"]]).domains
    change = recluster(clustered(str(tmp_path / "b"), ["a"], None, BOTH), [["a"]])  # which it was before
    assert change.domains[0].configuration == '{"clusteringColumns":[["a"]]}'


@pytest.mark.parametrize("data_type", ["boolean", "binary", "interval day to second", "void"])
def test_c351_columns_without_bounds_cluster_nothing(data_type: str) -> None:
    table = declare(protocol(1, 7, writers=("clustering", "domainMetadata")), fields=[field("a", data_type)])
    with pytest.raises(InvalidOperationError, match="no minimum and maximum"):
        cluster_by(table, [["a"]])
