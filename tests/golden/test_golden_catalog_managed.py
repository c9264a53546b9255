"""A managed table of another engine: by its path, and with the answer of a catalog that ratified its staged commits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pyspark_delta.catalog.log_tail import TailFiles
from pyspark_delta.errors import PathAccessError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.access import PUBLISHED_ONLY
from pyspark_delta.storage import store_for
from pyspark_delta.table import Table


@pytest.fixture
def table(golden_table: Callable[[str], Path]) -> Path:
    """Versions 0 and 1 are published, 2 and 3 are staged."""
    return golden_table("delta-bench/basic_catalog_managed")


def test_c451_c484_by_its_path(table: Path) -> None:
    with pytest.raises(PathAccessError, match="catalogManaged"):
        Table.open(table)
    published = Table.open(table, published_only=True)
    assert published.version == 1
    assert published.scan().to_arrow().num_rows == published.count()


def test_c453_c464_c472_with_the_answer_of_its_catalog(table: Path) -> None:
    staged = tuple(store_for(str(table)).list_from(f"{table}/_delta_log/_staged_commits/0"))
    assert len(staged) == 2
    for known in range(3):
        tail = TailFiles(1 + known, staged[:known])
        snapshot = Snapshot.load(str(table), storage_options={PUBLISHED_ONLY: "true"}, tail=tail)
        assert snapshot.version == 1 + known
        commit = Path(tail.files[-1].path if known else f"{table}/_delta_log/{1:020}.json").read_text()
        info = snapshot.commit_info()
        assert info is not None
        assert info.txn_id is not None
        assert info.txn_id in commit
        added = {json.loads(line)["add"]["path"] for line in commit.splitlines() if line.startswith('{"add"')}
        assert added <= set(snapshot.files().column("path").to_pylist())
