"""Local directory trees: listing all files below a directory, and removing empty directories."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from pyspark_delta.storage.contract import TREE

_ROWS = 65_536


def walk(directory: str, skips: Callable[[str], bool]) -> Iterator[pa.RecordBatch]:
    """Yield the files below a directory, without sizes and times; see `ObjectStore.list_tree`. Raises OSError.

    Directories are read one after another: a name costs about a microsecond, threads would cost more.
    """
    pending, waiting = [""], []
    while pending:
        prefix = pending.pop()
        try:
            with os.scandir(f"{directory}/{prefix}" if prefix else directory) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        waiting.append(prefix + entry.name)
                    elif not skips(entry.name):
                        pending.append(f"{prefix}{entry.name}/")
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed meanwhile
        if len(waiting) >= _ROWS:
            yield _batch(waiting)
            waiting = []
    if waiting:
        yield _batch(waiting)


def with_status(directory: str, files: pa.RecordBatch) -> pa.RecordBatch:
    """Return listed files with their sizes and times. Raises OSError.

    Left out are those that are gone meanwhile, and links to directories, which a listing takes for files.
    """
    paths, sizes, times = [], [], []
    prefix = f"{directory.rstrip('/')}/"
    for path in files.column("path").to_pylist():
        try:
            found = os.stat(prefix + path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if stat.S_ISDIR(found.st_mode):
            continue
        paths.append(path)
        sizes.append(found.st_size)
        times.append(found.st_mtime_ns // 1_000_000)
    return pa.RecordBatch.from_pydict({"path": paths, "size": sizes, "modification_time": times}, TREE)


def remove_empty_directories(root: str, directories: Iterable[str]) -> int:
    """Remove directories below `root` that are empty, and parents that become so; return their number.

    `directories` are paths below `root`. A directory that gets a file meanwhile is not empty, and stays.
    """
    by_depth: dict[int, set[str]] = {}
    for path in directories:
        by_depth.setdefault(path.count("/"), set()).add(path)
    removed = 0
    for depth in range(max(by_depth, default=-1), -1, -1):
        for path in by_depth.get(depth, ()):
            try:
                os.rmdir(f"{root}/{path}")
            except OSError:
                continue
            removed += 1
            if depth:
                by_depth.setdefault(depth - 1, set()).add(path.rpartition("/")[0])
    return removed


def _batch(paths: list[str]) -> pa.RecordBatch:
    try:
        array = pa.array(paths, pa.string())
    except UnicodeEncodeError:  # a name that is not UTF-8, which no log can name
        array = pa.array([path for path in paths if path.isascii() or _is_unicode(path)], pa.string())
    nothing = pa.nulls(len(array), pa.int64())
    return pa.RecordBatch.from_arrays([array, nothing, nothing], schema=TREE)


def _is_unicode(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
