"""Listing the log of a table to which others commit at the same time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyspark_delta.errors import CorruptLogError
from pyspark_delta.log.listing import list_log
from pyspark_delta.log.segment import load_segment
from pyspark_delta.storage import FileStatus
from pyspark_delta.storage.memory import MemoryStore

LOG = "memory://listed/t/_delta_log"


class MovingStore(MemoryStore):
    """Lists like a local directory: the first listing lacks a file that was made while it ran."""

    def __init__(self, missed: int) -> None:
        super().__init__("listed")
        self.listings = 0
        self._missed = f"{LOG}/{missed:020d}.json"

    def list_from(self, start: str) -> Iterator[FileStatus]:
        self.listings += 1
        is_first = self.listings == 1
        return (file for file in super().list_from(start) if not is_first or file.path != self._missed)


def with_files(store: MovingStore, *names: str) -> MovingStore:
    for name in names:
        store.write(f"{LOG}/{name}", b"{}")
    return store


def commits(*versions: int) -> list[str]:
    return [f"{version:020d}.json" for version in versions]


def test_a_commit_that_a_listing_misses_is_found_by_the_next() -> None:
    store = with_files(MovingStore(2), *commits(0, 1, 2, 3))
    segment = load_segment(store, "memory://listed/t")
    assert [commit.version for commit in segment.commits] == [0, 1, 2, 3]
    assert store.listings == 2


def test_a_commit_between_a_checkpoint_and_the_first_listed_one_is_found() -> None:
    store = with_files(MovingStore(2), *commits(2, 3), f"{1:020d}.checkpoint.parquet")
    assert sorted(list_log(store, "memory://listed/t").commits) == [2, 3]


def test_what_is_newer_than_the_first_listing_does_not_make_a_gap() -> None:
    class Growing(MovingStore):
        def list_from(self, start: str) -> Iterator[FileStatus]:
            found = list(super().list_from(start))
            if self.listings == 1:
                with_files(self, *commits(5))  # 4 is made too, but this listing misses it
            return iter(found)

    store = with_files(Growing(1), *commits(0, 1, 2))
    assert sorted(list_log(store, "memory://listed/t").commits) == [0, 1, 2]


def test_a_log_without_gaps_is_listed_once() -> None:
    store = with_files(MovingStore(9), *commits(4, 5), f"{5:020d}.checkpoint.parquet")
    assert sorted(list_log(store, "memory://listed/t").commits) == [4, 5]
    assert store.listings == 1


def test_a_missing_commit_is_named() -> None:
    store = with_files(MovingStore(9), *commits(0, 2))
    with pytest.raises(CorruptLogError, match="version 1 is missing before version 2"):
        load_segment(store, "memory://listed/t")
