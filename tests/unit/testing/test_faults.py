"""Faults strike once, at the call they are set for, before or after its effect."""

from __future__ import annotations

import pickle
import uuid

import pytest

from pyspark_delta.errors import FileNotFoundInStoreError, PermissionDeniedError, StorageError
from pyspark_delta.storage import ObjectStore, store_for
from pyspark_delta.testing.faults import Fault, FaultyStore, SimulatedCrash, crash


@pytest.fixture
def root() -> str:
    return f"memory://{uuid.uuid4().hex}/t"


@pytest.fixture
def inner(root: str) -> ObjectStore:
    return store_for(root)


@pytest.mark.parametrize("kind", ["write", "write_if_absent"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_writes(inner: ObjectStore, root: str, kind: str, when: str) -> None:
    store = FaultyStore(inner, Fault(kind=kind, nth=2, when=when))  # type: ignore[arg-type]
    operation = getattr(store, kind)
    operation(f"{root}/1", b"1")
    with pytest.raises(StorageError, match="connection was lost"):
        operation(f"{root}/2", b"2")
    operation(f"{root}/3", b"3")
    names = [status.path[-1] for status in inner.list_from(f"{root}/")]
    assert names == (["1", "3"] if when == "before" else ["1", "2", "3"])
    assert store.struck


@pytest.mark.parametrize("kind", ["read", "status", "open_input", "list"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_reads(inner: ObjectStore, root: str, kind: str, when: str) -> None:
    inner.write(f"{root}/x", b"x")
    store = FaultyStore(inner, Fault(kind=kind, when=when))  # type: ignore[arg-type]
    operation = {"list": lambda path: list(store.list_from(path))}.get(kind) or getattr(store, kind)
    with pytest.raises(StorageError):
        operation(f"{root}/x")
    operation(f"{root}/x")


def test_data_files(inner: ObjectStore, root: str) -> None:
    with pytest.raises(StorageError):
        FaultyStore(inner, Fault(kind="open_output")).open_output(f"{root}/1")
    with (
        pytest.raises(StorageError),
        FaultyStore(inner, Fault(kind="open_output", when="after")).open_output(f"{root}/2") as sink,
    ):
        sink.write(b"2")
    assert [status.path for status in inner.list_from(f"{root}/")] == [f"{root}/2"]


def test_deletes_stop_in_the_middle(inner: ObjectStore, root: str) -> None:
    for name in "abc":
        inner.write(f"{root}/{name}", b"x")
    store = FaultyStore(inner, Fault(kind="delete", nth=2))
    with pytest.raises(StorageError):
        store.delete(f"{root}/{name}" for name in "abc")
    assert [status.path[-1] for status in inner.list_from(f"{root}/")] == ["b", "c"]


def test_any_call_by_path(inner: ObjectStore, root: str) -> None:
    store = FaultyStore(inner, Fault(nth=2, path_part="_delta_log"))
    store.write(f"{root}/data", b"x")
    store.write(f"{root}/_delta_log/0.json", b"x")
    store.read(f"{root}/data")
    with pytest.raises(StorageError):
        store.read(f"{root}/_delta_log/0.json")
    assert store.calls == 2


def test_what_is_raised_can_be_chosen(inner: ObjectStore, root: str) -> None:
    with pytest.raises(SimulatedCrash):
        FaultyStore(inner, Fault(raises=crash)).write(f"{root}/x", b"x")
    denied = Fault(raises=lambda path: PermissionDeniedError("No.", path=path))
    with pytest.raises(PermissionDeniedError):
        FaultyStore(inner, denied).write(f"{root}/x", b"x")
    assert not issubclass(SimulatedCrash, Exception)


def test_an_unknown_kind_is_a_mistake_in_the_test() -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        Fault(kind="wirte")


def test_own_errors_pass(inner: ObjectStore, root: str) -> None:
    store = FaultyStore(inner, Fault(nth=99))
    with pytest.raises(FileNotFoundInStoreError):
        store.read(f"{root}/missing")
    assert not store.struck
    assert pickle.loads(pickle.dumps(store)).fault == store.fault
