"""B11: processes that append to one table at once, 200 commits together; none may be lost."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.model import OURS, Goal, Peer, Prepared, Scale, Variant, Workload
from benchmarks.workloads.b10_commit import claim, copied_log, row
from benchmarks.workloads.logs import LAST_VERSION, log

_HERE = __name__
COMMITS = 200


def workload(scale: Scale) -> Workload:
    """2, 4 and 8 processes."""
    return Workload(
        "B11",
        f"{COMMITS} small appends by several processes",
        (
            Peer(OURS, f"{_HERE}:ours"),
            Peer("deltalake", f"{_HERE}:deltalake"),
            Peer("exclusive durable links", f"{_HERE}:links", checked=False),
        ),
        tuple(
            Variant(
                f"{processes} processes",
                log(scale.files[0], checksum=True),
                {"processes": processes},
                (Goal("deltalake", 8), Goal("exclusive durable links", 0.25)) if processes == 8 else (),
                repetitions=3,
            )
            for processes in (2, 4, 8)
        ),
    )


def ours(location: str, processes: int) -> Prepared:
    return _together(append_ours, copied_log(location), processes)


def deltalake(location: str, processes: int) -> Prepared:
    return _together(append_deltalake, copied_log(location), processes)


def links(location: str, processes: int) -> Prepared:
    """What a file system gives: every process claims the next free number, again until it has enough of them."""
    return _together(claim_numbers, tempfile.mkdtemp(dir=Path(location).parent), processes)


def _together(work: Callable[[str, int], int], location: str, processes: int) -> Prepared:
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    list(pool.map(work, [location] * processes * 4, [0] * processes * 4))  # so that all have started and imported

    def timed() -> int:
        return sum(pool.map(work, [location] * processes, [COMMITS // processes] * processes))

    def answer(done: int) -> list[int]:
        pool.shutdown()
        versions = [int(path.stem) for path in Path(location, "_delta_log").glob("[0-9]*.json")]
        return [done, max(versions, default=LAST_VERSION) - LAST_VERSION]

    return Prepared(timed, answer)


def append_ours(location: str, commits: int) -> int:
    """So many appends; the number of those that were acknowledged."""
    from pyspark_delta.snapshot import Snapshot
    from pyspark_delta.transaction.base import state_of
    from pyspark_delta.transaction.transaction import Transaction

    state, rows = state_of(Snapshot.load(location)), row()
    for _ in range(commits):
        transaction = Transaction(state, None)
        transaction.write(rows.to_batches())
        state = transaction.commit()
    return commits


def append_deltalake(location: str, commits: int) -> int:
    """The same; an append that gives up is made again."""
    from deltalake import write_deltalake
    from deltalake.exceptions import CommitFailedError

    rows, done = row(), 0
    while done < commits:
        try:
            write_deltalake(location, rows, mode="append")
            done += 1
        except CommitFailedError:
            continue
    return done


def claim_numbers(location: str, commits: int) -> int:
    """Files of the next numbers that nobody has."""
    number, done, folder = 0, 0, Path(location)
    while done < commits:
        try:
            claim(folder, f"{number:020d}.json", b"x" * 1000)
            done += 1
        except FileExistsError:
            pass
        number += 1
    return done
