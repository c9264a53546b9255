"""Listing all files below a prefix of an object store: in parts at the same time, without those of skipped directories.

Stores return a thousand keys a request, so one listing of a large table takes minutes. Stores that list in order of the
keys, from a key on, can be asked for several ranges of keys at the same time. Other stores are asked for directories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from pyspark_delta.parallel import flat_map_ordered
from pyspark_delta.storage.contract import TREE

_AT_ONCE = 32
_LAST = "\U0010ffff"

Entry = Mapping[str, Any]
"""One object as obstore describes it: `path`, `size`, `last_modified`."""


def list_in_ranges(
    list_after: Callable[[str | None], Iterable[Sequence[Entry]]],
    prefix: str,
    skips: Callable[[str], bool],
    boundaries: Sequence[str],
) -> Iterator[pa.RecordBatch]:
    """Yield all objects below a prefix, in ranges of keys that are listed at the same time.

    `list_after` yields pages of the objects below the prefix whose keys follow a key, in the order of the keys.
    """
    cuts = [None, *(prefix + boundary for boundary in boundaries), None]

    def pages(part: tuple[str | None, str | None]) -> Iterator[pa.RecordBatch]:
        offset: str | None
        offset, end = part
        more = True
        while more:
            more = False
            for page in list_after(offset):
                inside = [entry for entry in page if end is None or entry["path"] <= end]
                if inside:
                    yield from _batches(inside, prefix, skips)
                if len(inside) < len(page):
                    break
                hidden = _skipped_directory(page[-1]["path"], prefix, skips) if page else None
                if hidden is not None:
                    offset, more = hidden + _LAST, end is None or hidden + _LAST < end
                    break

    yield from flat_map_ordered(pages, list(pairwise(cuts)), min(_AT_ONCE, len(cuts) - 1))


def list_directories(
    list_directory: Callable[[str], tuple[Sequence[Entry], Sequence[str]]], prefix: str, skips: Callable[[str], bool]
) -> Iterator[pa.RecordBatch]:
    """Yield all objects below a prefix, level by level; the directories of a level are listed at the same time.

    `list_directory` returns the objects and the sub-directories of a directory, which is given and returned as a key
    without a slash at its end.
    """
    level = [prefix.rstrip("/")]
    while level:
        below: list[str] = []
        found = flat_map_ordered(lambda one: (list_directory(one),), level, min(_AT_ONCE, len(level)))
        for entries, directories in found:
            yield from _batches(entries, prefix, skips)
            below += [one for one in directories if not skips(one.rpartition("/")[2])]
        level = below


def _batches(entries: Sequence[Entry], prefix: str, skips: Callable[[str], bool]) -> Iterator[pa.RecordBatch]:
    known: dict[str, bool] = {}

    def is_kept(path: str) -> bool:
        directory = path.rpartition("/")[0]
        if directory not in known:
            known[directory] = _skipped_directory(path, prefix, skips) is None
        return known[directory]

    kept = [entry for entry in entries if entry["path"] > prefix and is_kept(entry["path"])]
    if kept:
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([entry["path"][len(prefix) :] for entry in kept], pa.string()),
                pa.array([entry["size"] for entry in kept], pa.int64()),
                pa.array([int(entry["last_modified"].timestamp() * 1000) for entry in kept], pa.int64()),
            ],
            schema=TREE,
        )


def _skipped_directory(path: str, prefix: str, skips: Callable[[str], bool]) -> str | None:
    """Return the key of the first skipped directory that holds a path, with a slash at its end; None if none does."""
    end = len(prefix)
    for name in path[len(prefix) :].split("/")[:-1]:
        end += len(name) + 1
        if skips(name):
            return path[:end]
    return None
