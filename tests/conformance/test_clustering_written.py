"""Clustered tables as they are written (CLU)."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import hand_made
from tests.commits import actions, draft, memory_location
from tests.declarations import declare, field, protocol
from tests.hand_made import HandMade

from pyspark_delta.actions.model import DomainMetadata
from pyspark_delta.ddl.clustering import cluster_by, recluster
from pyspark_delta.errors import InvalidOperationError
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


@pytest.mark.parametrize("lacking", ['{"numRecords":2}', '{"nullCount":{"a":0}}', "{", None])
def test_c351_a_new_clustering_column_needs_statistics_of_every_file(lacking: str | None, tmp_path: Path) -> None:
    snapshot = clustered(str(tmp_path), [], COUNTED, lacking, BOTH)
    with pytest.raises(InvalidOperationError, match=r"by 'a': 1 of its files .* '1\.parquet'.*Rewrite") as raised:
        recluster(snapshot, [["a"]])
    assert raised.value.error_class == "DELTA_CLUSTERING_COLUMN_MISSING_STATS"
    with pytest.raises(InvalidOperationError, match=r"by 's\.`b\.c`': 2 of its files"):
        recluster(snapshot, [["S", "B.C"]])
    assert recluster(snapshot, []).domains[0].configuration == '{"clusteringColumns":[]}'


def test_c351_files_with_statistics_can_be_clustered_by_them(tmp_path: Path) -> None:
    assert recluster(clustered(str(tmp_path / "a"), [], COUNTED, BOTH), [["a"]]).domains
    change = recluster(clustered(str(tmp_path / "b"), ["a"], None, BOTH), [["a"]])  # which it was before
    assert change.domains[0].configuration == '{"clusteringColumns":[["a"]]}'


@pytest.mark.parametrize("data_type", ["boolean", "binary", "interval day to second", "void"])
def test_c351_columns_without_bounds_cluster_nothing(data_type: str) -> None:
    table = declare(protocol(1, 7, writers=("clustering", "domainMetadata")), fields=[field("a", data_type)])
    with pytest.raises(InvalidOperationError, match="no minimum and maximum"):
        cluster_by(table, [["a"]])
