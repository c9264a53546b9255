"""The files of an attempt that lost are deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.hand_made import PLAIN, HandMade, field, metadata

from pyspark_delta.errors import StorageError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.write import written
from pyspark_delta.write.written import discard


def test_new_files_are_deleted_by_their_paths_in_the_log_as_far_as_the_store_lets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = HandMade(tmp_path / "t")
    made.commit(0, PLAIN, metadata(field("id")))
    files = [made.path / "a b.parquet", made.path / "c.parquet"]
    for file in files:
        file.touch()
    snapshot = Snapshot.load(str(made.path))
    discard(snapshot, ["a%20b.parquet"])
    assert [file.exists() for file in files] == [False, True]

    def fails(*_: object) -> None:
        raise StorageError("the store is away", path=snapshot.location)

    monkeypatch.setattr(written, "store_for", fails)
    discard(snapshot, ["c.parquet"])  # vacuum finds it
    assert files[1].exists()
