"""Concurrent writers number their rows: no number is given twice, and nobody waits for ever."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.hand_made import features, field, metadata

from pyspark_delta.actions.model import Metadata
from pyspark_delta.errors import MetadataChangedError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, Operation, ReadSet
from pyspark_delta.protocol.identity import differ_in_marks_only, move_marks, next_number
from pyspark_delta.protocol.state import TableState
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of
from pyspark_delta.transaction.identity_allocation import commit_numbered

KEYS = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}


@pytest.fixture
def location(tmp_path: Path) -> str:
    """An empty table with the identity columns `up` and `down`."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    down = {**KEYS, "delta.identity.step": -10}
    columns = (field("up", "long", **KEYS), field("down", "long", **down), field("v"))
    actions = (features("identityColumns", reader=[]), metadata(*columns))
    (log / f"{0:020}.json").write_text("\n".join(json.dumps(action) for action in actions))
    return str(tmp_path)


def current(location: str) -> TableState:
    return state_of(Snapshot.load(location))


def known(state: TableState) -> TableConfiguration:
    assert state.configuration is not None
    return state.configuration


class Writer:
    """Stages drafts that give `rows` numbers, remembers them, and lets something happen between write and commit."""

    def __init__(self, rows: int, between: Callable[[], object] = lambda: None, reads: ReadSet | None = None) -> None:
        self.rows, self.between, self.reads = rows, between, reads or ReadSet()
        self.writes = 0
        self.given: dict[str, list[int]] = {}

    def stage(self, base: TableState) -> CommitDraft:
        self.writes += 1
        for column in known(base).schema.fields[:2]:
            step = column.metadata["delta.identity.step"]
            self.given[column.name] = [next_number(column) + i * step for i in range(self.rows)]
        moved = move_marks(known(base), {name: numbers[-1] for name, numbers in self.given.items()})
        self.between()
        return CommitDraft(operation=Operation("WRITE"), metadata=moved, reads=self.reads)

    def write(self, location: str) -> TableState:
        return commit_numbered(current(location), self.stage, lambda: current(location))


def test_c401_a_commit_that_numbers_rows_moves_the_marks(location: str) -> None:
    writer = Writer(5)
    writer.write(location)
    assert writer.given == {"up": [1, 2, 3, 4, 5], "down": [1, -9, -19, -29, -39]}
    assert [next_number(f) for f in known(current(location)).schema.fields[:2]] == [6, -49]
    assert current(location).version == 1


def test_c401_a_writer_that_lost_writes_again_with_numbers_of_its_own(location: str) -> None:
    rival = Writer(3)
    writer = Writer(4, lambda: rival.write(location) if not rival.writes else None)
    writer.write(location)
    assert writer.writes == 2
    assert writer.given["up"] == [4, 5, 6, 7]
    assert writer.given["down"] == [-29, -39, -49, -59]
    state = current(location)
    assert state.version == 3
    assert [next_number(f) for f in known(state).schema.fields[:2]] == [8, -69]


def test_c401_others_may_number_rows_while_the_second_write_runs(location: str) -> None:
    rivals = [Writer(3), Writer(2)]
    writer = Writer(4, lambda: rivals[writer.writes - 1].write(location))
    writer.write(location)
    assert writer.writes == 2
    every = [*writer.given["up"], *rivals[0].given["up"], *rivals[1].given["up"]]
    assert sorted(every) == list(range(1, 10))


def test_more_rows_in_the_second_write_are_still_numbered_once(location: str) -> None:
    rivals = [Writer(1), Writer(1)]

    def grow() -> None:
        rivals[min(writer.writes, 2) - 1].write(location)
        writer.rows = 6

    writer = Writer(2, lambda: grow() if writer.writes <= 2 else None)
    writer.write(location)
    every = [*writer.given["up"], *rivals[0].given["up"], *rivals[1].given["up"]]
    assert len(every) == len(set(every)) == 8


def test_c401_many_writers_at_once(location: str) -> None:
    writers = [Writer(7) for _ in range(6)]
    threads = [threading.Thread(target=writer.write, args=(location,)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in ("up", "down"):
        every = [number for writer in writers for number in writer.given[name]]
        assert len(every) == len(set(every)) == 42


def _rename(location: str) -> None:
    state = current(location)
    renamed: Metadata = replace(known(state).metadata, name="other")
    commit_draft(CommitDraft(operation=Operation("SET"), metadata=renamed), state)


def test_other_changes_of_metadata_stay_conflicts(location: str) -> None:
    writer = Writer(4, lambda: _rename(location))
    with pytest.raises(MetadataChangedError):
        writer.write(location)
    assert (writer.writes, current(location).version) == (1, 1)


def test_who_has_read_the_table_does_not_write_again(location: str) -> None:
    writer = Writer(4, lambda: Writer(1).write(location), ReadSet(whole_table=True))
    with pytest.raises(MetadataChangedError):
        writer.write(location)
    assert writer.writes == 1


def test_metadata_that_differ_in_marks(location: str) -> None:
    before = known(current(location))
    Writer(1).write(location)
    after = known(current(location))
    assert differ_in_marks_only(before, after)
    assert not differ_in_marks_only(before, before)
    assert not differ_in_marks_only(before, replace(after, metadata=replace(after.metadata, name="other")))
    assert move_marks(after, {"up": 1, "down": 11, "other": 5}) is None
