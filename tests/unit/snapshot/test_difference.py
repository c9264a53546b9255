"""The files that two versions of a table do not share, with the commits between them and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.difference import exclusive_files
from pyspark_delta.testing.table_builder import TableBuilder, add, deletion_vector, metadata, protocol, remove

COLUMNS = ("path", "deletion_vector")


@pytest.mark.parametrize("has_commits", [True, False], ids=["all commits", "a commit is gone"])
def test_c144_versions_differ_in_the_files_that_commits_between_them_change(tmp_path: Path, has_commits: bool) -> None:
    builder = TableBuilder(tmp_path / "table")
    builder.commit(0, [protocol(), metadata(), add("a"), add("b"), add("c"), add("v")])
    builder.commit(1, [remove("a"), add("d"), add("e")])
    builder.commit(2, [remove("d"), add("f")])
    vector = deletion_vector("vBn[lx{q8@P<9BNH/isA")
    builder.commit(3, [remove("b"), add("a"), remove("v"), add("v", deletionVector=vector)])
    versions = [Snapshot.load(str(builder.location), version=version) for version in (0, 3)]
    if not has_commits:
        for one in versions:
            one.checkpoint()
        (tmp_path / "table" / "_delta_log" / f"{2:020d}.json").unlink()
        versions = [Snapshot.load(str(builder.location), version=version) for version in (0, 3)]
    first, last = exclusive_files(*versions, COLUMNS, ("path", "size", "deletion_vector"))
    assert sorted(first["path"].to_pylist()) == ["b", "v"]
    assert sorted(last["path"].to_pylist()) == ["e", "f", "v"]
    assert (first["deletion_vector"].null_count, last["deletion_vector"].null_count) == (2, 2)
    assert (first.column_names, last.column_names) == (list(COLUMNS), ["path", "size", "deletion_vector"])
