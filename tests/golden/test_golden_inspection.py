"""The metadata tables of every golden table: their numbers are those of the expectations."""

from __future__ import annotations

from tests.golden.catalogue import GoldenTable, parametrize

from pyspark_delta.table import Table


@parametrize("table", "log-only")
def test_metadata_tables_have_every_file(table: GoldenTable) -> None:
    opened = Table.open(table.path)
    expected = table.expected["num_files"]
    files, partitions = opened.inspect("files").to_arrow(), opened.inspect("partitions").to_arrow()
    assert files.num_rows == sum(partitions["num_files"].to_pylist()) == expected
    assert sum(files["size"].to_pylist()) == sum(partitions["size"].to_pylist()) == opened.snapshot.size_in_bytes()
    assert opened.inspect("statistics").to_arrow().num_rows == expected
    assert opened.inspect("tombstones").to_arrow().num_rows == opened.snapshot.tombstones().num_rows
    domains = opened.inspect("domains").to_arrow().to_pylist()
    assert {row["domain"]: row["configuration"] for row in domains} == table.expected["domain_metadata"]
    listed = {row["feature"] for row in opened.inspect("protocol").to_arrow().to_pylist() if row["listed"]}
    assert listed == set(table.expected["protocol"].get("writerFeatures") or ()) | set(
        table.expected["protocol"].get("readerFeatures") or ()
    )
    assert opened.inspect("history").to_arrow().num_rows == len(opened.history())
