"""A definition that changes in a transaction, without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_delta import Snapshot, Table, Transaction
from pyspark_delta.ddl.staged import StagedAlteration
from pyspark_delta.engines.arrow.existing_rows import check_existing_rows
from pyspark_delta.errors import ConstraintViolationError


def test_what_follows_sees_the_definition(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    Table.write(path, pa.table({"id": [1, 2], "n": [3, 4]}))
    began = Snapshot.load(path)
    with Transaction.on(began) as transaction:
        changes = StagedAlteration(lambda: transaction.changed_snapshot, check_existing_rows, stage=transaction.stage)
        assert transaction.changed_snapshot is began
        changes.set_properties({"delta.columnMapping.mode": "name"})
        changes.rename_column("n", "number")
        changes.cluster_by(["number"])
        with pytest.raises(ConstraintViolationError):
            changes.add_constraint("few", "number < 4")
        seen = transaction.changed_snapshot
        assert (seen.version, seen.schema.names, seen.clustering_columns()) == (0, ("id", "number"), ["number"])
        assert (seen.as_committed, seen.as_committed.schema.names) == (began, ("id", "n"))
        changes.set_properties({"delta.columnMapping.mode": "name", "mine": "1"})
        transaction.write([pa.RecordBatch.from_pydict({"id": [5], "number": [6]})])
        assert Table.open(path).version == 0
    opened = Table.open(path)
    assert (opened.version, opened.snapshot.clustering_columns()) == (1, ["number"])
    assert sorted(opened.scan().to_arrow()["number"].to_pylist()) == [3, 4, 6]
    assert opened.snapshot.checksum_differences() == ()
