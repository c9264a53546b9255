"""Managed tables whose writer fails at each of its calls in turn, to the store and to the catalog (C453, C455, C470).

Whatever happens, the table is as it was or as it is after the operation; what was acknowledged is there once; the next
writer goes on, and publishes what is left behind.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.faults.crash_points import WRITING
from tests.lengths import FULL
from tests.managed import Warehouse

from pyspark_delta.ddl.change import commit_change
from pyspark_delta.ddl.properties import set_properties
from pyspark_delta.errors import CatalogNameNotFoundError, CommitStateUnknownError, DeltaError, DeltaWarning
from pyspark_delta.log.listing import list_log
from pyspark_delta.storage import intercepted, store_for
from pyspark_delta.testing.catalog_faults import FaultyCatalog, no_answer
from pyspark_delta.testing.faults import Fault, FaultyStore, SimulatedCrash, crash

_NEVER = 1_000_000
Run = Callable[[Warehouse], object]


def append(warehouse: Warehouse) -> None:
    """A commit that is given to the catalog."""
    warehouse.append(1)


def stage(warehouse: Warehouse) -> None:
    """A commit that is too large for that, and staged."""
    snapshot = warehouse.snapshot()
    number = int(snapshot.properties.get("runs", "0")) + 1
    commit_change(set_properties(snapshot.configuration, {"runs": str(number), "note": "x" * 20_000}), snapshot)


def create(warehouse: Warehouse) -> None:
    """The first version of a table, and its name."""
    warehouse.create("new", mode="create if not exists")


def runs_of(run: Run, warehouse: Warehouse) -> int:
    """How often the operation has had its effect; it fails where a part of it is visible."""
    if run is append:
        ids = warehouse.ids()
        assert set(ids) <= {1}
        return len(ids)
    if run is stage:
        return int(warehouse.snapshot().properties.get("runs", "0"))
    try:
        return warehouse.open("new").version + 1
    except CatalogNameNotFoundError:
        return 0


@contextmanager
def failing(warehouse: Warehouse, at: str, fault: Fault) -> Iterator[Any]:
    """While the block runs, the store or the catalog fails."""
    whole = warehouse.catalog.catalog
    if at == "catalog":
        catalog = FaultyCatalog(whole, fault)
        warehouse.through(catalog)  # type: ignore[arg-type]
        try:
            yield catalog
        finally:
            warehouse.through(whole)
    else:
        store = FaultyStore(store_for(warehouse.root), fault)
        with intercepted(lambda _: store):
            yield store


def new_warehouse(directory: Path) -> Warehouse:
    """A catalog with a table whose every second version gets a checkpoint."""
    folder = directory / uuid.uuid4().hex
    folder.mkdir()
    warehouse = Warehouse(folder, root=f"memory://{uuid.uuid4().hex}/tables")
    warehouse.create(properties={"delta.checkpointInterval": "2"})
    return warehouse


@pytest.mark.parametrize("at", ["store", "catalog"])
@pytest.mark.parametrize("run", [append, stage, create])
def test_c446_c448_c453_c455_c468_c470_a_failure_at_every_call(run: Run, at: str, tmp_path: Path) -> None:
    faults = [Fault(raises=crash), *_lost(at)]
    if FULL or at == "catalog":
        faults.append(Fault(raises=crash, when="after"))  # in the store, this is before the next call
    for fault in faults:
        warehouse = new_warehouse(tmp_path)
        with failing(warehouse, at, replace(fault, nth=_NEVER)) as counted:
            run(warehouse)
        for nth in range(1, counted.calls + 1):
            survive(run, new_warehouse(tmp_path), at, replace(fault, nth=nth))


def _lost(at: str) -> Iterator[Fault]:
    """Answers that are lost, at the usual length only those of the store that say whether something was written."""
    for when in ("before", "after"):
        if at == "catalog":
            yield Fault(raises=no_answer, when=when)  # type: ignore[arg-type]
        else:
            yield from (Fault(kind=kind, when=when) for kind in (["any"] if FULL else WRITING))  # type: ignore[arg-type]


def survive(run: Run, warehouse: Warehouse, at: str, fault: Fault) -> None:
    """Let the operation fail, and check what is left."""
    acknowledged = unknown = False
    with failing(warehouse, at, fault), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeltaWarning)  # what follows a commit may fail
        try:
            run(warehouse)
            acknowledged = True
        except CommitStateUnknownError:
            unknown = True
        except (DeltaError, SimulatedCrash):
            pass
    done = runs_of(run, warehouse)
    assert done == 1 or not acknowledged, "an acknowledged commit is gone"
    assert done <= 1, "the operation has had its effect twice"
    if fault.raises is not crash:
        assert acknowledged or unknown or done == 0 or run is create, "a commit that failed is there"
    run(warehouse)
    assert runs_of(run, warehouse) == (1 if run is create else done + 1)
    if run is not create:
        warehouse.append(1)
        warehouse.catalog.publish("s.t")
        snapshot = warehouse.snapshot()
        published = list_log(store_for(snapshot.location), snapshot.location)
        assert sorted(published.commits) == list(range(snapshot.version + 1))
        assert snapshot.checksum_differences() == ()
