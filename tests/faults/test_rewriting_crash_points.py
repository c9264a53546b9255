"""OPTIMIZE, PURGE and layouts that fail at each of their storage calls in turn; see `crash_points`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.faults.crash_points import WRITING, Operation, Rows, content, crash_points, new_location, prepared, survive
from tests.lengths import FULL
from tests.pickled_tasks import PickledTasks

from pyspark_delta.errors import CommitStateUnknownError
from pyspark_delta.maintenance.optimize import OptimizeRequest, plan_optimize
from pyspark_delta.maintenance.rewriting.plan import in_tasks
from pyspark_delta.storage import intercepted, store_for
from pyspark_delta.storage.counting import CountingStore
from pyspark_delta.table import Table
from pyspark_delta.testing.faults import connection_lost
from pyspark_delta.transaction.attempts import AttemptPolicy, commit_reconciled

ZORDER = OptimizeRequest(zorder_by=["id"])
COMMANDS: dict[str, Callable[[Table], object]] = {
    "optimize": lambda table: table.optimize(threads=1),
    "purge": lambda table: table.purge(threads=1),
    "layout": lambda table: table.optimize(zorder_by=["id"], threads=1),
    "layout in tasks": lambda table: in_tasks(plan_optimize(table.snapshot, ZORDER), PickledTasks()).execute(),
}


def make(location: str) -> None:
    """Three files in two partitions each, some with vectors; row ids, and a checkpoint after every commit."""
    properties = {"delta.enableDeletionVectors": True, "delta.enableRowTracking": True, "delta.checkpointInterval": 1}
    table = Table.create(location, "id BIGINT, p STRING", partition_by=["p"], properties=properties)
    for number in range(3):
        ids = [4 * number + i for i in range(4)]
        table.append({"id": ids, "p": ["a", "b", "a", "b"]})
    table.delete("id IN (0, 5, 10)")


def expected(_: int = 0) -> Rows:
    return [{"id": i, "p": "b" if i % 2 else "a"} for i in range(12) if i not in (0, 5, 10)]


def check(location: str) -> None:
    """No deletion vector is left, and every file that the log names can be read."""
    files = Table.open(location).snapshot.files(("deletion_vector",))
    assert files["deletion_vector"].null_count == files.num_rows


def operation(name: str) -> Operation:
    return Operation(name, make, lambda location: COMMANDS[name](Table.open(location)), expected, check)


@pytest.mark.parametrize("name", COMMANDS)
def test_c012_a_rearrangement_that_fails_at_any_storage_call_is_done_or_not(name: str) -> None:
    tried = operation(name)
    ready = prepared(tried)
    points = list(crash_points(tried, ["any"] if FULL else WRITING))
    if not FULL:
        points = [point for point in points if point.crashes == (point.when == "before")]
    acknowledged = [survive(tried, point, ready) for point in points]
    assert any(acknowledged)  # what follows the commit may fail
    assert not all(acknowledged)


class LosesAnswers(CountingStore):
    """Every commit is written or not, its answer is lost, and the log cannot be read afterwards."""

    lands = True
    _failed = False

    def write_if_absent(self, path: str, data: bytes) -> None:
        if not path.endswith(".json"):
            return super().write_if_absent(path, data)
        self._failed = True
        if self.lands:
            super().write_if_absent(path, data)
        raise connection_lost(path)

    def read(self, path: str, byte_range: tuple[int, int] | None = None) -> bytes:
        if self._failed:
            raise connection_lost(path)
        return super().read(path, byte_range)


@pytest.mark.parametrize("lands", [True, False])
def test_c013_files_of_a_commit_of_unknown_outcome_stay(lands: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(commit_reconciled.__kwdefaults__, "policy", AttemptPolicy(sleep=lambda _: None))
    location = new_location()
    make(location)
    store = LosesAnswers(store_for(location))
    store.lands = lands
    with intercepted(lambda _: store), pytest.raises(CommitStateUnknownError, match="check whether the history"):
        Table.open(location).optimize()
    assert content(location) == expected()
    Table.open(location).optimize()
    assert content(location) == expected()
    check(location)
