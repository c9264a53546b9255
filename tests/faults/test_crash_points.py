"""Operations that fail at each of their storage calls in turn; see `crash_points`."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.commits import declared
from tests.faults.crash_points import Operation, Rows, content, count_calls, prepared, survive, telling_points
from tests.processes import processes

from pyspark_delta.log.cleanup import clean_log
from pyspark_delta.log.listing import list_log
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import store_for
from pyspark_delta.table import Table
from pyspark_delta.transaction.attempts import AttemptPolicy
from pyspark_delta.transaction.transaction import Transaction

PATIENT: dict[str, Any] = {"policy": AttemptPolicy(repetitions=2, sleep=lambda _: None)}
FEATURES = ("rowTracking", "domainMetadata", "inCommitTimestamp")
TIMED = {"delta.enableInCommitTimestamps": "true"}


def batches(*rows: tuple[str, int]) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pydict({"p": pa.array([p]), "id": pa.array([i], pa.int64())}) for p, i in sorted(rows)]


def create(location: str, *features: str, **properties: str) -> None:
    own = {f"delta.{name}": value for name, value in properties.items()}
    protocol, metadata = declared(*FEATURES, *features, properties={**TIMED, **own}, partitioned=True)
    with Transaction.creating(location, TableConfiguration(protocol, metadata), **PATIENT) as transaction:
        transaction.write(batches(("x", 1), ("y", 2)))


def create_or_append(location: str) -> None:
    """What runs a second time must find the table where the first time made it."""
    if _exists(location):
        append(location)
    else:
        create(location)


def append(location: str) -> None:
    with Transaction.on(Snapshot.load(location), **PATIENT) as transaction:
        transaction.write(batches(("x", 3), ("y", 4)))


def overwrite(location: str) -> None:
    with Transaction.on(Snapshot.load(location), **PATIENT) as transaction:
        transaction.remove(transaction.read().files)
        transaction.write(batches(("x", 3), ("y", 4)))


def replace_partition(location: str) -> None:
    with Transaction.on(Snapshot.load(location), **PATIENT) as transaction:
        transaction.remove(transaction.read(where="p = 'x'").files)
        transaction.write(batches(("x", 3)))
        transaction.set_domain("com.example.mark", "1")


def append_and_compact(location: str) -> None:
    append(location)
    table = Table(Snapshot.load(location))
    table.compact_log(0, table.version)


def append_and_clean(location: str) -> None:
    """The commit makes a checkpoint, and forty days later everything before that goes."""
    append(location)
    configuration = Snapshot.load(location).configuration
    later = int(time.time() * 1000) + 40 * 86_400_000
    clean_log(store_for(location), location, configuration, now_ms=later)


def begins_late(location: str) -> None:
    """The log is that of the version of the last checkpoint."""
    assert list(list_log(store_for(location), location).commits) == [Snapshot.load(location).version]


def _exists(location: str) -> bool:
    return content(location) is not None


def rows(*found: tuple[str, int]) -> Rows:
    return [{"p": p, "id": i} for p, i in sorted(found)]


FIRST, MORE = [("x", 1), ("y", 2)], [("x", 3), ("y", 4)]
OPERATIONS: Sequence[Operation] = (
    Operation(
        "create",
        lambda location: None,
        create_or_append,
        lambda runs: rows(*FIRST, *(MORE * (runs - 1))) if runs else None,
    ),
    Operation("append", create, append, lambda runs: rows(*FIRST, *(MORE * runs))),
    Operation("overwrite", create, overwrite, lambda runs: rows(*(MORE if runs else FIRST))),
    Operation(
        "append with a checkpoint",
        lambda location: create(location, checkpointInterval="1"),
        append,
        lambda runs: rows(*FIRST, *(MORE * runs)),
    ),
    Operation(
        "overwrite with a V2 checkpoint",
        lambda location: create(location, "v2Checkpoint", checkpointInterval="1", checkpointPolicy="v2"),
        overwrite,
        lambda runs: rows(*(MORE if runs else FIRST)),
    ),
    Operation("append and compact the log", create, append_and_compact, lambda runs: rows(*FIRST, *(MORE * runs))),
    Operation(
        "append and clean the log",
        lambda location: create(location, checkpointInterval="1"),
        append_and_clean,
        lambda runs: rows(*FIRST, *(MORE * runs)),
        begins_late,
    ),
    Operation(
        "replace a partition",
        create,
        replace_partition,
        lambda runs: rows(("x", 3 if runs else 1), ("y", 2)),
    ),
)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_c012_c015_a_failure_at_any_storage_call_leaves_all_or_nothing(operation: Operation) -> None:
    points = list(telling_points(operation))
    assert sum(point.crashes for point in points) >= 4  # at least two data files, the commit and its checksum
    ready = prepared(operation)
    acknowledged = [survive(operation, point, ready) for point in points]
    assert any(acknowledged)  # what follows the commit may fail
    assert not all(acknowledged)


def test_the_harness_counts_the_calls_of_an_operation() -> None:
    assert count_calls(OPERATIONS[1]) == count_calls(OPERATIONS[1]) > 3


# ------------------------------------------------------------------------------------------ processes that are killed
def append_for_ever(location: str, start: int, told: Connection) -> None:
    """Append rows numbered from `start`, one commit each, and tell each number when its commit is acknowledged."""
    number = start
    while True:
        with Transaction.on(Snapshot.load(location)) as transaction:
            transaction.write(batches(("x", number)))
        told.send(number)
        number += 1


def told_to(reader: Connection) -> Iterator[int]:
    """The numbers, until the process ends."""
    with reader, contextlib.suppress(EOFError):
        while True:
            yield reader.recv()


def test_c013_c015_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    location = str(tmp_path / "table")
    protocol, metadata = declared(partitioned=True)
    with Transaction.creating(location, TableConfiguration(protocol, metadata)) as transaction:
        transaction.write([])
    acknowledged: list[int] = []
    for run in range(4):
        reader, writer = processes().Pipe(duplex=False)
        process = processes().Process(target=append_for_ever, args=(location, 1000 * run, writer))
        process.start()
        writer.close()
        for number in told_to(reader):
            acknowledged.append(number)
            if len(acknowledged) % 5 == run % 5:  # in the middle of the next one
                process.kill()
        process.join()
    table = Table.open(location)
    found = sorted(table.scan(columns=["id"]).to_arrow().column("id").to_pylist())
    assert len(found) == len(set(found))
    extra = set(found) - set(acknowledged)
    assert set(acknowledged) <= set(found)
    assert len(extra) <= 4  # at most the commit that each process was making
    assert table.version == len(found)
    assert [json.loads(f)["numRecords"] for f in table.files().column("stats").to_pylist()] == [1] * len(found)
