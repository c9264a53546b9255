"""Clustered tables as they are written (CLU)."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
from tests.commits import actions, draft, memory_location
from tests.declarations import declare, field, protocol

from pyspark_delta.actions.model import DomainMetadata
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
