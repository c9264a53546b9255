"""A crash, or a failure of the store, at every call that a checkpoint makes: the table stays what it was."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_delta.actions.columns import MODIFICATION_TIME, PARTITION_VALUES, PATH, SIZE, STATS
from pyspark_delta.errors import DeltaError, DeltaWarning
from pyspark_delta.log.segment import load_segment
from pyspark_delta.protocol.draft import CommitDraft, Operation
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import intercepted, store_for
from pyspark_delta.testing.faults import Fault, FaultyStore, SimulatedCrash, crash
from pyspark_delta.testing.table_builder import TableBuilder, add, metadata, protocol, remove
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of

V2 = protocol(3, 7, ["v2Checkpoint"])


def make(path: Path, policy: str) -> TableBuilder:
    """Versions 0 to 4, a checkpoint of version 2."""
    table = TableBuilder(path)
    properties = {"delta.checkpointPolicy": policy, "delta.checkpointInterval": "5"}
    table.commit(0, [V2 if policy == "v2" else protocol(), metadata({"id": "long"}, (), properties), add("0")])
    for version in (1, 2):
        table.commit(version, [add(str(version))])
    Snapshot.load(table.location).checkpoint()
    table.commit(3, [add("3"), remove("0", deletionTimestamp=2**45)])
    table.commit(4, [add("4")])
    return table


def answer(location: str) -> tuple[int, list[str], int]:
    snapshot = Snapshot.load(location)
    return snapshot.version, sorted(snapshot.files()["path"].to_pylist()), len(snapshot.tombstones())


def with_faults(table: TableBuilder, work: Callable[[str], Any], scratch: Path, raises: Any, when: Any) -> list[str]:
    """Run the work once for each call that it makes, with a fault there; the locations of what is left."""
    left = []
    for number in range(1, 200):
        copy = scratch / f"{when} {number}"
        shutil.copytree(table.directory, copy)
        faulty: list[FaultyStore] = []
        fault = Fault(kind="any", nth=number, when=when, raises=raises)

        def wrap(store: Any) -> Any:
            faulty.append(faulty[0] if faulty else FaultyStore(store, fault))
            return faulty[0]

        with intercepted(wrap):
            try:
                work(str(copy))
            except (DeltaError, SimulatedCrash):
                pass
        if not faulty[0].struck:
            assert number > 5
            return left
        left.append(str(copy))
    raise AssertionError("the work never ends")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_c036_a_checkpoint_that_fails_anywhere_leaves_the_table_readable(
    tmp_path: Path, policy: str, when: Any
) -> None:
    table = make(tmp_path / "table", policy)
    expected = answer(table.location)
    assert expected == (4, ["1", "2", "3", "4"], 1)

    def checkpoint(location: str) -> None:
        Snapshot.load(location).checkpoint()

    for location in with_faults(table, checkpoint, tmp_path / "left", crash, when):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # nor may a checkpoint be there that has to be passed over
            assert answer(location) == expected
            checkpoint(location)
            assert answer(location) == expected
        assert load_segment(store_for(location), location).checkpoint_version == 4


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_c025_a_checkpoint_that_fails_after_a_commit_is_a_warning(tmp_path: Path, policy: str) -> None:
    table = make(tmp_path / "table", policy)
    schema = pa.schema([PATH, PARTITION_VALUES, SIZE, MODIFICATION_TIME, STATS])
    files = pa.Table.from_pylist([{"path": "5", "partition_values": [], "size": 1, "modification_time": 1}], schema)
    base = state_of(Snapshot.load(table.location))

    for kind, path_part in (("open_output", ""), ("write", "_last_checkpoint"), ("open_input", "checkpoint")):
        copy = tmp_path / kind
        shutil.copytree(table.directory, copy)
        draft = CommitDraft(operation=Operation("WRITE"), adds=files)
        store = FaultyStore(store_for(str(copy)), Fault(kind=kind, nth=1, path_part=path_part, when="before"))
        with intercepted(lambda _, store=store: store):  # type: ignore[misc]
            with pytest.warns(DeltaWarning, match="Version 5 .* is committed, but its checkpoint could not be written"):
                commit_draft(draft, _at(base, str(copy)))
        assert store.struck
        assert answer(str(copy))[:2] == (5, ["1", "2", "3", "4", "5"])


def _at(base: Any, location: str) -> Any:
    from dataclasses import replace

    return replace(base, location=location)
