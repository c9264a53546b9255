"""A crash, or a failure of the store, at every call that a checkpoint makes: the table stays what it was."""

from __future__ import annotations

import contextlib
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_delta.actions.columns import MODIFICATION_TIME, PARTITION_VALUES, PATH, SIZE, STATS
from pyspark_delta.errors import CorruptLogError, DeltaError, DeltaWarning
from pyspark_delta.log.checkpoint_writer import write_checkpoint
from pyspark_delta.log.replay import LogReplay
from pyspark_delta.log.segment import load_segment
from pyspark_delta.protocol.draft import CommitDraft, Operation
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import FileStatus, ObjectStore, intercepted, store_for
from pyspark_delta.storage.counting import CountingStore
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
        fault = Fault(kind="any", nth=number, when=when, raises=raises)
        faulty = FaultyStore(store_for(str(copy)), fault)
        with intercepted(lambda _, faulty=faulty: faulty), contextlib.suppress(DeltaError, SimulatedCrash):  # type: ignore[misc]
            work(str(copy))
        if not faulty.struck:
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
        said = r"Version 5 .* is committed, but its checkpoint could not be written"
        with intercepted(lambda _, store=store: store), pytest.warns(DeltaWarning, match=said):  # type: ignore[misc]
            commit_draft(draft, replace(base, location=str(copy)))
        assert store.struck
        assert answer(str(copy))[:2] == (5, ["1", "2", "3", "4", "5"])


class Meanwhile(CountingStore):
    """Lets something happen before the first call of a kind for a sidecar."""

    def __init__(self, inner: ObjectStore, kind: str, happens: Callable[[], object]) -> None:
        super().__init__(inner)
        self._kind, self._happens, self._happened = kind, happens, False

    def open_input(self, path: str) -> Any:
        self._before("open_input", path)
        return super().open_input(path)

    def open_output(self, path: str) -> Any:
        self._before("open_output", path)
        return super().open_output(path)

    def list_from(self, start: str) -> Iterator[FileStatus]:
        self._before("list", start)
        return super().list_from(start)

    def _before(self, kind: str, path: str) -> None:
        if kind == self._kind and "_sidecars" in path and not self._happened:
            self._happened = True
            self._happens()


@pytest.mark.parametrize("kind", ["open_input", "open_output", "list"])
def test_the_old_checkpoint_may_be_cleaned_up_while_the_next_is_written(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark_delta.log.checkpoint_writer.SIDECAR_ACTIONS", 2)
    table = make(tmp_path, "v2")
    old = [*table.log.glob("*2.checkpoint.*"), *table.log.glob("_sidecars/*")]
    assert len(old) > 2
    state = [V2, metadata({"id": "long"}, (), {"delta.checkpointPolicy": "v2"}), *map(add, "123")]

    def clean_up() -> None:
        table.classic_checkpoint(3, [*state, remove("0", deletionTimestamp=2**45)])
        for version in (0, 1, 2):
            (table.log / f"{version:020d}.json").unlink()
        for file in old:
            file.unlink()

    store = Meanwhile(store_for(table.location), kind, clean_up)
    snapshot = Snapshot.load(table.location)
    written = write_checkpoint(LogReplay(store, load_segment(store, table.location)), snapshot.configuration)
    assert not any(file.exists() for file in old)
    assert (written.version, written.reused_sidecars) == (4, 0)
    assert all(Path(file).exists() for file in written.files)
    assert answer(table.location)[:2] == (4, ["1", "2", "3", "4"])


def test_a_sidecar_that_is_really_missing_stops_the_next_checkpoint(tmp_path: Path) -> None:
    table = make(tmp_path, "v2")
    lost = next(table.log.glob("_sidecars/*"))
    lost.unlink()
    before = sorted(table.log.rglob("*"))
    with pytest.raises(CorruptLogError, match=lost.name):
        Snapshot.load(table.location).checkpoint()
    assert sorted(table.log.rglob("*")) == before
