"""Auto compaction after commits without Spark: when it runs, what it takes, and that it never fails a commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from tests.managed import Warehouse

from pyspark_delta import Transaction
from pyspark_delta.errors import DeltaWarning
from pyspark_delta.maintenance.auto_compaction import AutoCompaction, is_auto_compacted, plan_auto_compaction
from pyspark_delta.table import Table
from pyspark_delta.transaction.write_plan import FileOptions

PROPERTY = "delta.autoOptimize.autoCompact"


def make(path: Path, files: int, **properties: str) -> Table:
    """A table with so many files in the partition a, and one in b."""
    table = Table.create(path, "id BIGINT, p STRING", partition_by=["p"], properties=properties)
    table.append({"id": [-1], "p": ["b"]})
    for number in range(files):
        table.append({"id": [number], "p": ["a"]})
    return table


def test_a_partition_with_many_small_files_is_compacted(tmp_path: Path) -> None:
    table = make(tmp_path, 50, **{PROPERTY: "true"})
    assert table.snapshot.num_files() == 2
    commit = table.history(1)[0]
    assert (commit["operation"], commit["operationParameters"]["auto"]) == ("OPTIMIZE", True)
    assert table.count() == 51
    table.delete("id = 3")
    assert table.history(1)[0]["operation"] == "DELETE"  # there are few files now


def test_it_is_off_unless_property_or_session_say_so(tmp_path: Path) -> None:
    table = make(tmp_path, 3)
    configuration = table.snapshot.configuration
    assert not is_auto_compacted(configuration)
    assert is_auto_compacted(configuration, AutoCompaction(enabled=True))
    for value, expected in (("true", True), ("auto", True), ("false", False)):
        table.alter().set_properties({PROPERTY: value})
        assert is_auto_compacted(table.snapshot.configuration) is expected
    assert not is_auto_compacted(table.snapshot.configuration, AutoCompaction(enabled=False))
    table.alter().unset_properties(PROPERTY).set_properties({"delta.autoOptimize": "true"})
    assert is_auto_compacted(table.snapshot.configuration)


def test_only_partitions_of_the_commit_and_small_files_count(tmp_path: Path) -> None:
    table = make(tmp_path, 3)
    few = AutoCompaction(min_files=3)
    plan = plan_auto_compaction(table.snapshot, table.version, few)
    assert plan is not None
    assert plan.files_removed == 3
    assert plan_auto_compaction(table.snapshot, table.version, AutoCompaction(min_files=4)) is None
    assert plan_auto_compaction(table.snapshot, 1, few) is None  # that commit wrote to b
    assert plan_auto_compaction(table.snapshot, 0, few) is None
    small = AutoCompaction(min_files=3, min_size=1)
    assert plan_auto_compaction(table.snapshot, table.version, small) is None


def by_transaction(table: Table) -> None:
    with Transaction.on(table.snapshot) as transaction:
        transaction.write([pa.record_batch({"id": [50], "p": ["a"]})])


@pytest.mark.parametrize(
    "write",
    [
        by_transaction,
        lambda table: table.append({"id": [50], "p": ["a"]}, plan=True).execute(),
        lambda table: table.update({"id": "50"}, "id = 3", plan=True).execute(),
    ],
    ids=["transaction", "plan of an append", "plan of an update"],
)
@pytest.mark.filterwarnings("error")
def test_every_door_is_followed_by_it(tmp_path: Path, write: Callable[[Table], object]) -> None:
    table = Table.create(tmp_path, "id BIGINT, p STRING", partition_by=["p"])
    table.append({"id": list(range(50)), "p": ["a"] * 50}, max_records_per_file=1)
    table.alter().set_properties({PROPERTY: "true"})
    write(table)
    table = Table.open(tmp_path)
    assert (table.version, table.snapshot.num_files()) == (4, 1)
    assert (table.scan(where="id = 50").to_arrow().num_rows, table.history(1)[0]["operation"]) == (1, "OPTIMIZE")


def test_a_transaction_that_only_rearranges_rows_is_not_followed_by_it(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id BIGINT", properties={PROPERTY: "true"})
    rows = pa.record_batch({"id": list(range(60))})
    table.append(rows)
    with Transaction.on(table.snapshot, data_change=False) as transaction:
        transaction.remove(transaction.read().files)
        transaction.write([rows], FileOptions(max_records_per_file=1))
    assert table.refresh().snapshot.num_files() == 60


@pytest.mark.findings("F02")  # files are damaged
def test_an_error_is_a_warning(tmp_path: Path) -> None:
    table = make(tmp_path, 48, **{PROPERTY: "true"})
    table.append({"id": [48], "p": ["a"]})
    for file in (tmp_path / "p=a").glob("*.parquet"):
        file.write_bytes(b"no Parquet")
    with pytest.warns(DeltaWarning, match="was not compacted"):
        table.append({"id": [49], "p": ["a"]})
    assert table.version == 51


def test_a_catalog_that_does_not_allow_it_is_not_asked(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create(properties={PROPERTY: "true"})
    for number in range(51):
        warehouse.open().append({"id": [number]})
    assert warehouse.snapshot().num_files() == 51
