"""Streams of tables in an object store: the rows, and what a trigger asks of the store."""

from __future__ import annotations

from pyspark_delta import Table
from pyspark_delta.storage import intercepted
from pyspark_delta.storage.counting import CountingStore, Counts

FEED = {"delta.enableChangeDataFeed": True}


def test_a_table_on_s3_is_followed(s3_options: dict[str, str]) -> None:
    location = "s3://contract/streamed"
    counts = Counts()
    with intercepted(lambda store: CountingStore(store, counts)):
        table = Table.create(location, "id BIGINT", properties=FEED, storage_options=s3_options)
        table.append({"id": [1, 2]})
        stream = table.stream(max_files=1)
        assert [batch.to_arrow()["id"].to_pylist() for batch in stream] == [[1, 2]]
        counts.reset()
        assert stream.next() is None
        assert [kind for kind, _ in counts.log] == ["list"]

        table.append({"id": [3]})
        table.append({"id": [4]})
        counts.reset()
        batches = list(stream)
        reads = [path for kind, path in counts.log if kind == "read"]
    assert len(reads) == len(set(reads)) == 2  # the new commits
    assert [batch.to_arrow()["id"].to_pylist() for batch in batches] == [[3], [4]]

    table.delete("id = 3")
    changes = Table.open(location, storage_options=s3_options).stream(batches[-1].offset, changes=True)
    assert [row["_change_type"] for batch in changes for row in batch.to_arrow().to_pylist()] == ["delete"]
