"""Temporary files of writers that were killed go by their age; nothing else does."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path

import pytest

from pyspark_delta.storage.local import LocalStore
from pyspark_delta.storage.temporary import LEFTOVER_AGE
from pyspark_delta.table import Table
from pyspark_delta.testing.table_builder import TableBuilder, metadata, protocol


def _left(directory: Path, name: str | None = None, *, old: bool = True) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / (name or f".pyspark-delta-{uuid.uuid4().hex}.tmp")
    path.write_bytes(b"half")
    if old:
        os.utime(path, (1, 1))
    return path


def test_only_old_files_of_our_own_pattern_go(tmp_path: Path) -> None:
    gone = [_left(tmp_path), _left(tmp_path / "p=1" / "q=2")]
    stay = [
        _left(tmp_path, old=False),
        _left(tmp_path, "part-0.parquet"),
        _left(tmp_path, ".pyspark-delta-notes.tmp"),
        _left(tmp_path, f".pyspark-delta-{uuid.uuid4().hex}.tmp.parquet"),
        _left(tmp_path, f"x.pyspark-delta-{uuid.uuid4().hex}.tmp"),
    ]
    outside = _left(tmp_path.parent / f"{tmp_path.name} outside")
    link = tmp_path / f".pyspark-delta-{uuid.uuid4().hex}.tmp"
    link.symlink_to(stay[1])
    os.utime(link, (1, 1), follow_symlinks=False)
    (tmp_path / "elsewhere").symlink_to(outside.parent)
    before = int(time.time() * 1000) - LEFTOVER_AGE
    assert LocalStore().remove_leftovers(str(tmp_path), before) == 1
    assert LocalStore().remove_leftovers(str(tmp_path), before, recursive=True) == 1
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in (*stay, outside))
    assert link.is_symlink()
    assert LocalStore().remove_leftovers(str(tmp_path / "none"), before) == 0


def test_what_a_killed_writer_leaves_has_the_pattern(tmp_path: Path) -> None:
    output = LocalStore().open_output(str(tmp_path / "f.parquet"))
    output.write(b"half")
    (left,) = tmp_path.iterdir()
    assert LocalStore().remove_leftovers(str(tmp_path), int(time.time() * 1000) + 60_000) == 1
    assert not left.exists()
    output.discard()


@pytest.mark.parametrize("directory", ["", "p=1", "_delta_log", "_delta_log/_sidecars", "_delta_log/_staged_commits"])
def test_cleaning_the_log_removes_them(tmp_path: Path, directory: str) -> None:
    TableBuilder(tmp_path).commit(0, [protocol(), metadata()])
    old, young = _left(tmp_path / directory), _left(tmp_path / directory, old=False)
    assert Table.open(tmp_path).clean_log() == 0
    assert (old.exists(), young.exists()) == (False, True)
