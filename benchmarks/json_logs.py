"""Makes logs of JSON commits alone: each adds files, and removes some that earlier ones added."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import synthetic_log
from benchmarks.synthetic_log import EPOCH_MS, SyntheticLog, file_rows


@dataclass(frozen=True)
class JsonLog:
    """`commits` commits after version 0, each with `adds` adds and, but for the first, `removes` removes.

    With `compacted`, each so many versions after version 0 have a log compaction too.
    """

    commits: int
    adds: int
    removes: int = 0
    compacted: int = 0


def write_json_log(table: Path, log: JsonLog) -> None:
    """Write the log. Version v was committed v seconds after 2024-01-01, by its text and by the time of its file."""
    directory = table / "_delta_log"
    directory.mkdir(parents=True)
    head = SyntheticLog(files=0, kind="none")
    lines = [_commit_info(0), synthetic_log._protocol(head), synthetic_log.metadata_line()]
    _write(directory, 0, lines)
    for version in range(1, log.commits + 1):
        first = (version - 1) * log.adds
        dead = np.arange(max(version - 2, 0) * log.removes, (version - 1) * log.removes, dtype=np.int64)  # the oldest
        lines = [_commit_info(version), *synthetic_log._add_lines(file_rows(first, log.adds, head.files_per_day))]
        lines += synthetic_log._remove_lines(dead, head.files_per_day)
        _write(directory, version, lines)
    for first in range(1, log.commits - log.compacted + 2, log.compacted) if log.compacted else ():
        _compact(directory, first, first + log.compacted - 1)


def _compact(directory: Path, first: int, last: int) -> None:
    """The newest action of every path in some commits, as one file."""
    newest: dict[str, str] = {}
    for version in range(first, last + 1):
        for line in (directory / f"{version:020d}.json").read_text().splitlines():
            if not line.startswith('{"commitInfo"'):
                newest[line.split('"', 6)[5]] = line  # no file is removed and added by one commit
    path = directory / f"{first:020d}.{last:020d}.compacted.json"
    path.write_text("".join(f"{line}\n" for line in newest.values()))


def time_of(version: int) -> int:
    """When a version was committed, in milliseconds since the epoch."""
    return EPOCH_MS + version * 1000


def _commit_info(version: int) -> str:
    return f'{{"commitInfo":{{"timestamp":{time_of(version)},"operation":"WRITE","operationParameters":{{}}}}}}'


def _write(directory: Path, version: int, lines: list[str]) -> None:
    path = directory / f"{version:020d}.json"
    path.write_text("".join(f"{line}\n" for line in lines))
    os.utime(path, (time_of(version) / 1000, time_of(version) / 1000))
