"""Local commits are whole, exclusive and on disk, whatever step a crash or another writer interrupts."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.processes import processes as started

from pyspark_delta.errors import FileAlreadyExistsError, PermissionDeniedError, StorageError
from pyspark_delta.storage.local import LocalStore
from pyspark_delta.testing.faults import SimulatedCrash

STORE = LocalStore()
STEPS = ("open", "write", "fsync", "close", "link", "replace", "unlink", "mkdir")


class Recorder:
    """Notes the system calls of `os` in order, and crashes before or after the n-th."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, crash_at: int = 0, when: str = "before") -> None:
        self.calls: list[tuple[str, str]] = []
        self._crash_at, self._when = crash_at, when
        self._paths: dict[int, str] = {}
        for name in STEPS:
            monkeypatch.setattr(os, name, self._recorded(name, getattr(os, name)))

    def _recorded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*arguments: Any, **named: Any) -> Any:
            subject = arguments[0]
            self.calls.append((name, self._paths.get(subject, "?") if isinstance(subject, int) else str(subject)))
            due = len(self.calls) == self._crash_at
            if due and self._when == "before":
                raise SimulatedCrash(name)
            result = call(*arguments, **named)
            if name == "open":
                self._paths[result] = str(subject)
            if due:
                raise SimulatedCrash(name)
            return result

        return recorded


def _is_temporary(path: str) -> bool:
    return os.path.basename(path).startswith(".pyspark-delta-")


def test_content_and_directory_are_forced_to_disk_around_the_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(monkeypatch)
    STORE.write_if_absent(f"{tmp_path}/0.json", b"content")
    steps = [(name, path) for name, path in recorder.calls if name in ("write", "fsync", "link")]
    assert [name for name, _ in steps] == ["write", "fsync", "link", "fsync"]
    assert _is_temporary(steps[1][1])
    assert steps[3][1] == str(tmp_path)


def test_write_forces_content_then_replaces_then_forces_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(monkeypatch)
    STORE.write(f"{tmp_path}/_last_checkpoint", b"content")
    steps = [(name, path) for name, path in recorder.calls if name in ("write", "fsync", "replace")]
    assert [name for name, _ in steps] == ["write", "fsync", "replace", "fsync"]
    assert _is_temporary(steps[1][1])
    assert steps[3][1] == str(tmp_path)


def test_a_new_directory_is_durable_in_the_one_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch)
    STORE.write_if_absent(f"{tmp_path}/t/_delta_log/0.json", b"content")
    made = [path for name, path in recorder.calls if name == "mkdir"]
    forced = [path for name, path in recorder.calls if name == "fsync"]
    assert made == [f"{tmp_path}/t", f"{tmp_path}/t/_delta_log"]
    assert forced[:2] == [str(tmp_path), f"{tmp_path}/t"]


def test_a_data_file_is_durable_when_it_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch)
    with STORE.open_output(f"{tmp_path}/part.parquet") as sink:
        sink.write(b"content")
    names = [name for name, _ in recorder.calls if name in ("fsync", "replace")]
    assert names == ["fsync", "replace", "fsync"]


def test_new_directories_of_a_data_file_are_durable_before_others_can_use_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(monkeypatch)
    sink = STORE.open_output(f"{tmp_path}/p=1/q=2/part.parquet")
    assert [path for name, path in recorder.calls if name == "fsync"] == [str(tmp_path), f"{tmp_path}/p=1"]
    recorder.calls.clear()
    sink.write(b"content")
    sink.close()
    assert [name for name, _ in recorder.calls if name in ("fsync", "replace")] == ["fsync", "replace", "fsync"]


def _output(path: str, content: bytes) -> None:
    with STORE.open_output(path) as sink:
        sink.write(content)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("operation", [STORE.write, STORE.write_if_absent, _output])
def test_a_crash_at_any_step_leaves_no_half_file(
    tmp_path: Path, operation: Callable[[str, bytes], None], when: str
) -> None:
    content = b"content" * 1000
    step = 0
    while True:
        step += 1
        root = tmp_path / str(step)
        root.mkdir()
        (root / "before").write_bytes(b"old")
        path = f"{root}/new/log/0.json"
        with pytest.MonkeyPatch.context() as patch:
            recorder = Recorder(patch, crash_at=step, when=when)
            with contextlib.suppress(SimulatedCrash):
                operation(path, content)
        visible = [status.path for status in STORE.list_from(f"{root}/new/log/")]
        assert visible in ([], [path]), step
        if visible:
            assert STORE.read(path) == content, step
        # And whatever is left over does not stand in the way.
        STORE.write(f"{root}/new/log/1.json", b"next")
        if not visible:
            STORE.write_if_absent(path, content)
        assert [status.path for status in STORE.list_from(f"{root}/new/log/")] == [path, f"{root}/new/log/1.json"]
        if len(recorder.calls) < step:
            break
    assert step > 8


def _race(number: int, path: str, barrier: Any, results: Any) -> None:
    barrier.wait()
    for version in range(20):
        try:
            STORE.write_if_absent(f"{path}/{version:020}.json", bytes([number]) * 100_000)
        except FileAlreadyExistsError:
            continue
        results.put((version, number))


def test_one_of_eight_processes_wins(tmp_path: Path) -> None:
    context = started()
    barrier, results = context.Barrier(8), context.Queue()
    processes = [context.Process(target=_race, args=(number, str(tmp_path), barrier, results)) for number in range(8)]
    for process in processes:
        process.start()
    won = dict(results.get(timeout=60) for _ in range(20))
    for process in processes:
        process.join(timeout=60)
        assert process.exitcode == 0
    assert results.empty()
    assert sorted(won) == list(range(20))
    for version, number in won.items():
        assert STORE.read(f"{tmp_path}/{version:020}.json") == bytes([number]) * 100_000
    assert len(os.listdir(tmp_path)) == 20


# ------------------------------------------------------------------------------------------------ other file systems
@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK])
def test_without_hard_links_a_rename_that_does_not_replace_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def no_link(source: str, target: str) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", no_link)
    path = f"{tmp_path}/0.json"
    STORE.write_if_absent(path, b"first")
    assert STORE.read(path) == b"first"
    monkeypatch.setattr(os.path, "lexists", lambda path: False)  # the other writer came in between
    with pytest.raises(FileAlreadyExistsError):
        STORE.write_if_absent(path, b"second")
    assert STORE.read(path) == b"first"
    assert os.listdir(tmp_path) == ["0.json"]


def test_without_links_and_such_a_rename_nothing_is_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(source: str, target: str) -> None:
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", no_link)
    monkeypatch.setattr("pyspark_delta.storage.exclusive_rename._call", lambda source, target: errno.EINVAL)
    with pytest.raises(StorageError, match="keep the table on another file system"):
        STORE.write_if_absent(f"{tmp_path}/0.json", b"first")
    assert os.listdir(tmp_path) == []


def test_a_link_whose_answer_was_lost_counts_as_won(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_link = os.link

    def link_twice(source: str, target: str) -> None:
        real_link(source, target)
        real_link(source, target)

    monkeypatch.setattr(os, "link", link_twice)
    STORE.write_if_absent(f"{tmp_path}/0.json", b"mine")
    assert STORE.read(f"{tmp_path}/0.json") == b"mine"


def test_a_directory_that_cannot_be_forced_to_disk_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EINVAL, "not for directories")
        real_fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    STORE.write_if_absent(f"{tmp_path}/0.json", b"first")
    assert STORE.read(f"{tmp_path}/0.json") == b"first"


def test_stale_hadoop_checksums_go(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f".{name}.crc").write_bytes(b"crc\0")
    STORE.write(f"{tmp_path}/a", b"1")
    STORE.write_if_absent(f"{tmp_path}/b", b"1")
    with STORE.open_output(f"{tmp_path}/c") as sink:
        sink.write(b"1")
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "c"]


def test_a_refused_commit_keeps_the_winners_hadoop_checksum(tmp_path: Path) -> None:
    (tmp_path / "0.json").write_bytes(b"theirs")
    (tmp_path / ".0.json.crc").write_bytes(b"crc\0")
    with pytest.raises(FileAlreadyExistsError):
        STORE.write_if_absent(f"{tmp_path}/0.json", b"mine")
    assert (tmp_path / ".0.json.crc").exists()


# -------------------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (errno.ENOSPC, StorageError, "full"),
        (errno.EDQUOT, StorageError, "full"),
        (errno.EACCES, PermissionDeniedError, "No permission to write"),
        (errno.EROFS, PermissionDeniedError, "read-only"),
        (errno.EIO, StorageError, "Input/output error"),
    ],
)
@pytest.mark.parametrize("operation", [STORE.write, STORE.write_if_absent, _output])
def test_failures_of_the_disk_are_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    operation: Callable[[str, bytes], None],
    code: int,
    kind: type[StorageError],
    words: str,
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(kind, match=words) as caught:
        operation(f"{tmp_path}/x", b"content")
    assert caught.value.path == f"{tmp_path}/x"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("operation", [STORE.write, _output])
def test_a_directory_is_not_replaced_by_a_file(tmp_path: Path, operation: Callable[[str, bytes], None]) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(StorageError, match="is a directory"):
        operation(f"{tmp_path}/d", b"content")
    assert os.listdir(tmp_path) == ["d"]


def test_deleting_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(StorageError):
        STORE.delete([f"{tmp_path}/d"])
    assert (tmp_path / "d").is_dir()


# ------------------------------------------------------------------------------------------------------- listing
def test_listing_asks_nothing_about_names_before_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in range(100):
        (tmp_path / f"{version:020}.json").write_bytes(b"x")
    asked: list[str] = []
    real_stat = os.stat

    def stat(path: Any, *arguments: Any, **named: Any) -> os.stat_result:
        asked.append(str(path))
        return real_stat(path, *arguments, **named)

    monkeypatch.setattr(os, "stat", stat)
    listing = STORE.list_from(f"{tmp_path}/{97:020}.json")
    first = next(listing)
    assert [first.path] == asked == [f"{tmp_path}/{97:020}.json"]
    assert len(list(listing)) == 2
    assert len(asked) == 3


def test_a_file_removed_while_listing_is_left_out(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(b"x")
    listing = STORE.list_from(f"{tmp_path}/")
    next(listing)
    (tmp_path / "b").unlink()
    assert [status.path for status in listing] == [f"{tmp_path}/c"]


def test_links_to_files_are_listed_and_links_to_directories_are_not(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_bytes(b"x")
    (tmp_path / "link-d").symlink_to("d")
    (tmp_path / "link-f").symlink_to("f")
    (tmp_path / "link-nowhere").symlink_to("nowhere")
    assert [os.path.basename(status.path) for status in STORE.list_from(f"{tmp_path}/")] == ["f", "link-f"]


def test_an_abandoned_sink_leaves_nothing(tmp_path: Path) -> None:
    sink = STORE.open_output(f"{tmp_path}/x")
    sink.write(b"half")
    del sink
    assert os.listdir(tmp_path) == []
