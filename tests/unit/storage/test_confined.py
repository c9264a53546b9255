"""The store of a server: regular files below one directory, and nothing else that lies there."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from pyspark_delta.errors import FileAlreadyExistsError, FileNotFoundInStoreError, PermissionDeniedError
from pyspark_delta.storage.confined import ConfinedStore


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The log of a table below a root that is reached through a link, which is allowed."""
    (tmp_path / "disk" / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / "root").symlink_to(tmp_path / "disk")
    (tmp_path / "secret").write_bytes(b"secret")
    return tmp_path / "root" / "t" / "_delta_log"


def store(table: Path) -> ConfinedStore:
    return ConfinedStore(str(table.parents[1]))


def test_regular_files_are_read_listed_and_written_once(table: Path) -> None:
    for name, content in (("b", b"two"), ("a", b"x" * 3_000_000)):
        store(table).write_if_absent(str(table / name), content)
        with pytest.raises(FileAlreadyExistsError):
            store(table).write_if_absent(str(table / name), b"other")
        assert store(table).read(str(table / name)) == content
        assert store(table).status(str(table / name)).size == len(content)
    (table / "d").mkdir()
    assert [found.path for found in store(table).list_from(str(table / "a"))] == [str(table / "a"), str(table / "b")]
    assert [found.path for found in store(table).list_from(str(table / "aa"))] == [str(table / "b")]
    assert sorted(os.listdir(table)) == ["a", "b", "d"]
    assert list(store(table).list_from(str(table / "none" / "a"))) == []
    with pytest.raises(FileNotFoundInStoreError):
        store(table).read(str(table / "c"))
    with pytest.raises(FileNotFoundInStoreError):
        store(table).status(str(table / "none" / "c"))


def by_link(path: Path) -> None:
    path.symlink_to(path.parents[3] / "secret")


def by_pipe(path: Path) -> None:
    os.mkfifo(path)


def by_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        before = os.getcwd()
        os.chdir(path.parent)  # the path of a socket is short
        try:
            listening.bind(path.name)
        finally:
            os.chdir(before)


@pytest.mark.parametrize("attack", [by_link, by_pipe, by_socket])
def test_what_is_no_regular_file_is_refused(table: Path, attack: Callable[[Path], None]) -> None:
    path = table / "x"
    attack(path)
    with pytest.raises(PermissionDeniedError):
        store(table).read(str(path))
    with pytest.raises(PermissionDeniedError):
        store(table).status(str(path))
    with pytest.raises(FileAlreadyExistsError):
        store(table).write_if_absent(str(path), b"mine")
    assert list(store(table).list_from(str(table / "a"))) == []
    assert (table.parents[2] / "secret").read_bytes() == b"secret"


@pytest.mark.parametrize("linked", ["t", "t/_delta_log"])
def test_no_directory_is_reached_through_a_link(table: Path, linked: str) -> None:
    elsewhere = table.parents[2] / "elsewhere"
    (elsewhere / "_delta_log").mkdir(parents=True)
    for directory in (elsewhere, elsewhere / "_delta_log"):
        (directory / "x").write_bytes(b"secret")
    at = table.parents[1] / linked
    at.rename(table.parents[2] / "moved")
    at.symlink_to(elsewhere)
    for call in (
        lambda: store(table).read(str(table / "x")),
        lambda: store(table).status(str(table / "x")),
        lambda: list(store(table).list_from(str(table / "a"))),
        lambda: store(table).write_if_absent(str(table / "y"), b"mine"),
    ):
        with pytest.raises(PermissionDeniedError):
            call()
    assert not list(elsewhere.rglob("y"))


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "{root}/../secret", "{root}/t/../../secret", "{root}x/a", "{root}/t//x"]
)
def test_nothing_outside_is_reached(table: Path, path: str) -> None:
    with pytest.raises(PermissionDeniedError, match="not below"):
        store(table).read(path.format(root=table.parents[1]))
