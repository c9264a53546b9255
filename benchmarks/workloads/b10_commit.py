"""B10: one small append to a table of any size: a data file, the commit, and what follows it."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import Any

from benchmarks.model import OURS, Goal, Growth, Peer, Prepared, Scale, Variant, Workload, size
from benchmarks.workloads.logs import log

_HERE = __name__


def workload(scale: Scale) -> Workload:
    """Every size, with a handle that made the commit before, and by path."""
    small, middle, large = scale.files

    def variant(files: int, ratio: float, *, by_path: bool) -> Variant:
        how = "by path" if by_path else "own handle"
        goals: tuple[Goal | Growth, ...] = (Goal("deltalake", ratio),)
        if files != small:
            goals = (*goals, Growth(f"{size(small)} files, {how}", 1.3))
        name = f"{size(files)} files, {how}"
        return Variant(name, log(files, checksum=True), {"by_path": by_path}, goals, 3)

    return Workload(
        "B10",
        "Commit a small append",
        (
            Peer(OURS, f"{_HERE}:ours", inner=5),
            Peer("deltalake", f"{_HERE}:deltalake", inner=5),
            Peer("two durable files", f"{_HERE}:put", inner=5, checked=False),
        ),
        tuple(
            variant(files, ratio, by_path=by_path)
            for by_path in (False, True)
            for files, ratio in ((small, 3.0), (middle, 20.0), (large, 150.0))
        ),
    )


def ours(location: str, by_path: bool) -> Prepared:
    from pyspark_delta.snapshot import Snapshot
    from pyspark_delta.transaction.base import state_of
    from pyspark_delta.transaction.transaction import Transaction

    copy = copied_log(location)
    rows = row()
    state = state_of(Snapshot.load(copy))

    def timed() -> None:
        nonlocal state
        if by_path:
            state = state_of(Snapshot.load(copy))
        transaction = Transaction(state, None)
        transaction.write(rows.to_batches())
        state = transaction.commit()

    return Prepared(timed, lambda _: files_added(copy))


def deltalake(location: str, by_path: bool) -> Prepared:
    from deltalake import DeltaTable, write_deltalake

    copy = copied_log(location)
    rows = row()
    table = DeltaTable(copy)
    return Prepared(
        lambda: write_deltalake(copy if by_path else table, rows, mode="append"), lambda _: files_added(copy)
    )


def put(location: str, by_path: bool) -> Prepared:
    """The least that a durable writer of two files does: write and sync each, and link the second one exclusively."""
    folder = Path(copied_log(location))

    def timed() -> None:
        for content in (os.urandom(4_000), os.urandom(1_000)):
            claim(folder, uuid.uuid4().hex, content)

    return Prepared(timed)


def claim(folder: Path, name: str, content: bytes) -> None:
    """Make a file durably and only if it is not there."""
    unfinished = folder / f".{uuid.uuid4().hex}"
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(unfinished, folder / name)
    finally:
        unfinished.unlink()
    directory = os.open(folder, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def copied_log(location: str) -> str:
    """A table of its own with the same log: its files are never changed, so links to them serve."""
    copy = Path(tempfile.mkdtemp(prefix="b10-", dir=Path(location).parent))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    shutil.copytree(Path(location, "_delta_log"), copy / "_delta_log", copy_function=os.link)
    return str(copy)


def row() -> Any:
    """One row for the tables of the synthetic logs."""
    import pyarrow as pa

    columns = {
        "id": pa.array([1], pa.int64()),
        "amount": pa.array([1], pa.int64()),
        "price": pa.array([1.0]),
        "ratio": pa.array([0.5]),
        "name": pa.array(["customer"]),
        "city": pa.array(["city"]),
        "at": pa.array([0], pa.timestamp("us", "UTC")),
        "day": pa.array([0], pa.date32()),
        "p_date": pa.array([0], pa.date32()),
    }
    return pa.table(columns)


def files_added(location: str) -> int:
    """How many files the newest commit adds."""
    newest = max(Path(location, "_delta_log").glob("[0-9]*.json"))
    return newest.read_text().count('{"add"')
