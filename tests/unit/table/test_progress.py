"""The progress of `Table`: what a callback gets, how it cancels, and who sees a bar."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_delta import Progress, Table

ROWS, FILES = 4000, 8


class Stop(Exception):
    """Raised by a callback."""


class Seen:
    """A callback that keeps what it gets, and raises Stop at its `stop_at`th call of a phase."""

    def __init__(self, phase: str = "", stop_at: int = 0) -> None:
        self.values: list[Progress] = []
        self._phase, self._stop_at = phase, stop_at

    def __call__(self, progress: Progress) -> None:
        self.values.append(progress)
        if self._stop_at and sum(one.phase == self._phase for one in self.values) == self._stop_at:
            raise Stop(progress.phase)

    def last(self, phase: str) -> tuple[int, int | None, str]:
        found = [one for one in self.values if one.phase == phase]
        assert [one.done for one in found] == sorted(one.done for one in found)
        assert [one.seconds for one in found] == sorted(one.seconds for one in found)
        return found[-1].done, found[-1].total, found[-1].unit


def rows(start: int = 0, count: int = ROWS) -> pa.Table:
    return pa.table({"id": range(start, start + count), "part": [i % 2 for i in range(count)]})


def in_batches(table: pa.Table) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=500))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table of eight files, which deletes rewrite."""
    properties = {"delta.enableDeletionVectors": False, "delta.enableChangeDataFeed": True}
    made = Table.create(tmp_path / "t", "id BIGINT, part BIGINT", properties=properties)
    made.append(rows(), max_records_per_file=ROWS // FILES)
    return made


def files_of(table: Table) -> set[str]:
    return {str(path) for path in Path(table.location).rglob("*") if path.is_file()}


def test_reading_counts_files(table: Table) -> None:
    seen, streamed, changed = Seen(), Seen(), Seen()
    table.scan().to_arrow(progress=seen)
    assert seen.last("Read files") == (FILES, FILES, "files")
    assert sum(len(batch) for batch in table.scan().to_batches(progress=streamed)) == ROWS
    assert streamed.last("Read files") == (FILES, FILES, "files")
    table.changes(1).to_arrow(progress=changed)
    assert changed.last("Read files") == (FILES, FILES, "files")


def test_writing_counts_rows_whose_number_may_be_unknown(table: Table) -> None:
    known, unknown = Seen(), Seen()
    table.append(rows(), progress=known)
    table.overwrite(in_batches(rows()), progress=unknown)
    assert known.last("Write rows") == (ROWS, ROWS, "rows")
    assert unknown.last("Write rows") == (ROWS, None, "rows")
    assert len(unknown.values) > ROWS // 500


def test_maintenance_counts_files(table: Table) -> None:
    seen = Seen()
    table.checkpoint(progress=seen)
    assert seen.last("Write checkpoint") == (FILES, FILES, "files")


def test_existing_rows_are_checked_with_progress(table: Table) -> None:
    seen = Seen()
    table.alter(progress=seen).add_constraint("positive", "id >= 0")
    assert seen.last("Read files") == (FILES, FILES, "files")


CHANGES: dict[str, tuple[str, Callable[[Table, Any], object]]] = {
    "append": ("Write rows", lambda t, p: t.append(in_batches(rows()), progress=p, max_records_per_file=500)),
    "overwrite": ("Write rows", lambda t, p: t.overwrite(in_batches(rows()), progress=p, max_records_per_file=500)),
    "replace where": (
        "Read files",
        lambda t, p: t.overwrite(rows(100_000, 10), where="id % 3 = 1 OR id >= 100000", progress=p),
    ),
    "append a scan": ("Read files", lambda t, p: t.append(t.scan(), progress=p, max_records_per_file=500)),
    "delete": ("Read files", lambda t, p: t.delete("id % 3 = 1", progress=p)),
    "update": ("Read files", lambda t, p: t.update({"part": "9"}, "id % 3 = 1", progress=p)),
    "merge": (
        "Read files",
        lambda t, p: (
            t.merge(rows(), "t.id = s.id", target_alias="t", source_alias="s", progress=p)
            .when_matched_delete("s.part = 1")
            .execute()
        ),
    ),
}


STOPS = {"replace where": (1,), "append a scan": (1, 2)}  # small files are read together
CANCELLED = [(change, stop_at) for change in CHANGES for stop_at in STOPS.get(change, (1, 7))]


@pytest.mark.parametrize(("change", "stop_at"), CANCELLED)
def test_a_callback_that_raises_cancels_the_change_and_leaves_no_file(table: Table, change: str, stop_at: int) -> None:
    phase, run = CHANGES[change]
    before, version = files_of(table), table.version
    with pytest.raises(Stop):
        run(table, Seen(phase, stop_at))
    assert files_of(table) == before
    assert table.refresh().version == version
    run(table, Seen())
    assert table.version == version + 1


def test_a_reader_is_cancelled_in_the_middle(table: Table) -> None:
    seen = Seen("Read files", 2)
    with pytest.raises(Stop):
        table.scan().to_arrow(progress=seen)
    assert len(seen.values) == 2


def test_work_after_the_commit_cannot_be_cancelled(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id BIGINT", properties={"delta.checkpointInterval": 1})
    seen = Seen("Write checkpoint", 1)
    table.append([{"id": 1}], progress=seen)
    assert (tmp_path / "_delta_log" / f"{1:020}.checkpoint.parquet").exists()
    assert {one.phase for one in seen.values} == {"Write rows"}


def test_a_wrong_callback_is_refused_before_anything_is_written(table: Table) -> None:
    before = files_of(table)
    with pytest.raises(TypeError, match="progress is None, False or a function"):
        table.append(rows(), progress="yes")  # type: ignore[call-overload]
    assert files_of(table) == before


# ---------------------------------------------------------------------------------------------------------- the bar
BAR = """
import sys
import pyarrow as pa
from pyspark_delta import Table, progress
progress.DELAY_SECONDS = 0
Table.open(sys.argv[1]).scan().to_arrow(progress=eval(sys.argv[2]))
print("rich" in sys.modules)
"""


def run_in_terminal(table: Table, option: str = "None", **environment: str) -> tuple[str, str]:
    """Read the table in a process whose standard error is a terminal; what it prints, and what the terminal gets."""
    quiet = {"CI", "PYTEST_CURRENT_TEST", "PYSPARK_DELTA_PROGRESS"}
    full = {name: value for name, value in os.environ.items() if name not in quiet} | {"TERM": "xterm", **environment}
    master, slave = pty.openpty()
    command = [sys.executable, "-c", BAR, table.location, option]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=slave, text=True, env=full, check=True)
    os.close(slave)
    shown = b""
    try:
        while part := os.read(master, 65536):
            shown += part
    except OSError:  # the other side is closed
        pass
    os.close(master)
    return done.stdout.strip(), shown.decode()


def test_a_terminal_shows_a_bar(table: Table) -> None:
    imported, shown = run_in_terminal(table)
    assert (imported, "Read files" in shown, f"{FILES}/{FILES}" in shown) == ("True", True, True)


@pytest.mark.parametrize(("option", "environment"), [("False", {}), ("None", {"PYSPARK_DELTA_PROGRESS": "0"})])
def test_a_bar_can_be_turned_off(table: Table, option: str, environment: dict[str, str]) -> None:
    assert run_in_terminal(table, option, **environment) == ("False", "")


def test_pipes_and_tests_show_no_bar(table: Table, capfd: pytest.CaptureFixture[str]) -> None:
    table.scan().to_arrow()
    assert capfd.readouterr() == ("", "")
