"""What happens to a table when an operation on it fails at one storage call: a harness for any operation.

An operation is tried with a failure at its first storage call, then at its second, and so on, before the call has had
its effect and after it, as a lost connection and as the end of the process. Whatever happens, the table must be there
as it was before or as it is after the operation, and the operation must work when it is run again.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.lengths import FULL

from pyspark_delta.errors import DeltaError, DeltaWarning, TableNotFoundError
from pyspark_delta.log.listing import list_log
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import intercepted, store_for
from pyspark_delta.table import Table
from pyspark_delta.testing.faults import Fault, FaultyStore, SimulatedCrash, connection_lost, crash

Rows = list[dict[str, Any]]
WRITING = ("open_output", "write", "write_if_absent", "delete")
_NEVER = 1_000_000


@dataclass(frozen=True)
class Operation:
    """`prepare` makes a table at a location, `run` does the operation; `rows` is the content after so many runs.

    None for `rows` means that there is no table. `check` looks at whatever else must hold afterwards.
    """

    name: str
    prepare: Callable[[str], object]
    run: Callable[[str], object]
    rows: Callable[[int], Rows | None]
    check: Callable[[str], object] = lambda location: None


@dataclass(frozen=True)
class CrashPoint:
    """The `nth` storage call of a kind fails: before its effect or after, and the process lives on or not."""

    nth: int
    when: Literal["before", "after"]
    crashes: bool
    kind: str = "any"

    @property
    def fault(self) -> Fault:
        return Fault(kind=self.kind, nth=self.nth, when=self.when, raises=crash if self.crashes else connection_lost)


def new_location() -> str:
    """A place in memory of its own."""
    return f"memory://{uuid.uuid4().hex}/table"


def count_calls(operation: Operation, kind: str = "any") -> int:
    """How many storage calls of a kind the operation makes when nothing fails."""
    return _run(operation, prepared(operation), Fault(kind=kind, nth=_NEVER)).calls


def telling_points(operation: Operation) -> Iterator[CrashPoint]:
    """The ways in which the operation can fail that leave the table, or the operation, in different states.

    The process ends before any call: after a call is before the next one. The connection is lost at calls that write,
    and it is known or not whether they did.
    """
    if FULL:
        yield from crash_points(operation)
        return
    yield from (point for point in crash_points(operation) if point.crashes and point.when == "before")
    yield from (point for point in crash_points(operation, WRITING) if not point.crashes)


def crash_points(operation: Operation, kinds: Sequence[str] = ("any",)) -> Iterator[CrashPoint]:
    """Every way in which the operation can fail at one call of some kinds."""
    for kind in kinds:
        for nth in range(1, count_calls(operation, kind) + 1):
            for when in ("before", "after"):
                for crashes in (False, True):
                    yield CrashPoint(nth, when, crashes, kind)


def prepared(operation: Operation) -> str:
    """A place in which everything is ready for the operation."""
    location = new_location()
    operation.prepare(location)
    return location


def copy_of(original: str) -> str:
    """A place of its own with the same files."""
    location = new_location()
    here, there = (store_for(place)._files for place in (original, location))  # type: ignore[attr-defined]
    there.update({path.replace(original, location): file for path, file in here.items()})
    return location


def survive(operation: Operation, point: CrashPoint, ready: str) -> bool:
    """Let the operation fail at a point, and check what is left; whether it was acknowledged all the same.

    `ready` is where everything is ready for it.
    """
    location = copy_of(ready)
    acknowledged = True
    try:
        store = _run(operation, location, point.fault)
    except (DeltaError, SimulatedCrash):
        acknowledged = False
    else:
        assert store.struck, "the operation made fewer calls than before"
    done = _runs_seen(operation, location)
    assert done == 1 or not acknowledged, "an acknowledged operation is gone"
    operation.run(location)
    assert content(location) == operation.rows(done + 1)
    _check_log(location)
    operation.check(location)
    return acknowledged


def content(location: str) -> Rows | None:
    """The rows of a table in order; None where there is none."""
    try:
        table = Table(Snapshot.load(location))
    except TableNotFoundError:
        return None
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: list(row.values()))


def _runs_seen(operation: Operation, location: str) -> int:
    found = content(location)
    seen = [runs for runs in (0, 1) if operation.rows(runs) == found]
    assert seen, f"half of the operation is visible: {found}"
    if found is not None:
        _check_log(location)
    return seen[-1]  # the only one, unless the operation does not change rows


def _check_log(location: str) -> None:
    snapshot = Snapshot.load(location)
    versions = sorted(list_log(store_for(location), location).commits)
    assert versions == list(range(versions[0], snapshot.version + 1))
    assert snapshot.checksum_differences() == ()


def _run(operation: Operation, location: str, fault: Fault) -> FaultyStore:
    store = FaultyStore(store_for(location), fault)
    with intercepted(lambda _: store), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeltaWarning)  # what follows a commit may fail
        operation.run(location)
    return store
