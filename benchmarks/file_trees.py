"""Makes tables whose data files are empty files, for what looks at names and times alone: vacuum and restore.

A dataset has three parts: the table, a copy of its log, from which `prepare` resets it, and the list of its removed
files, which exist too.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.json_logs import JsonLog, write_json_log
from benchmarks.synthetic_log import SyntheticLog, write_log

_TABLE, _LOG, _REMOVED = "table", "log", "removed.txt"
_OLD = 86_400 * 400  # seconds since the epoch


@dataclass(frozen=True)
class FileTree:
    """`files` live files in a checkpoint (none without), and `commits` with so many adds and removes each."""

    files: int
    commits: int
    adds: int
    removes: int


def write_file_tree(location: Path, made_of: FileTree) -> None:
    """Write the dataset; the folder must be empty."""
    table = location / _TABLE
    if made_of.files:
        write_log(
            table, SyntheticLog(made_of.files, commits=made_of.commits, adds=made_of.adds, removes=made_of.removes)
        )
    else:
        write_json_log(table, JsonLog(made_of.commits, made_of.adds, made_of.removes))
    log = table / "_delta_log"
    removed = [
        json.loads(line)["remove"]["path"]
        for commit in sorted(log.glob("*.json"))
        for line in commit.read_text().splitlines()
        if line.startswith('{"remove"')
    ]
    _touch(table, _live_paths(table))
    shutil.copytree(log, location / _LOG)
    (location / _REMOVED).write_text("\n".join(removed))


def prepare(location: str, garbage: int = 0) -> Path:
    """Reset the table of a dataset, with `garbage` files that no commit names in its directories; return it."""
    table = Path(location, _TABLE)
    shutil.rmtree(table / "_delta_log")
    shutil.copytree(Path(location, _LOG), table / "_delta_log")
    _touch(table, Path(location, _REMOVED).read_text().splitlines())
    if garbage:
        folders = sorted(path for path in table.iterdir() if path.name != "_delta_log")
        names = (f"{folders[i % len(folders)].name}/part-orphan-{i:08d}.snappy.parquet" for i in range(garbage))
        _touch(table, names)
    return table


def warm_up() -> None:
    """Maintain a small table, so that what is timed does not import modules."""
    from pyspark_delta.table import Table

    with tempfile.TemporaryDirectory() as folder:
        table = Table.write(f"{folder}/t", {"id": [1]})
        table.overwrite({"id": [2]})
        table.restore(0)
        table.vacuum(0, enforce_retention_duration=False)


def data_files(table: Path) -> int:
    """How many files there are, without those of the log."""
    return sum(len(files) for folder, _, files in os.walk(table) if "_delta_log" not in folder)


def _live_paths(table: Path) -> Iterable[str]:
    from pyspark_delta.log.request import FileRequest
    from pyspark_delta.snapshot import Snapshot

    for batch in Snapshot.load(str(table)).read_files(FileRequest(("path",))):
        yield from batch.column("path").to_pylist()


def _touch(table: Path, paths: Iterable[str]) -> None:
    """Make empty files that are old, unless they exist."""
    known: set[str] = set()
    for path in paths:
        name = f"{table}/{path}"
        folder = name.rpartition("/")[0]
        if folder not in known:
            os.makedirs(folder, exist_ok=True)
            known.add(folder)
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o644))
        os.utime(name, (_OLD, _OLD))
