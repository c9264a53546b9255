"""Which store serves a location, and what happens without the `cloud` extra."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_delta.errors import InvalidOptionError, MissingDependencyError
from pyspark_delta.storage import intercepted, store_for
from pyspark_delta.storage.counting import CountingStore, Counts
from pyspark_delta.storage.local import LocalStore
from pyspark_delta.storage.memory import MemoryStore


def test_one_store_per_bucket_and_options() -> None:
    pytest.importorskip("obstore")
    assert isinstance(store_for("/t"), LocalStore)
    assert store_for("memory://one/t") is store_for("memory://one/u")
    assert store_for("memory://one/t") is not store_for("memory://two/t")
    assert store_for("s3://b/t", {"aws_region": "r"}) is store_for("s3://b/u", {"aws_region": "r"})
    assert store_for("s3://b/t", {"aws_region": "r"}) is not store_for("s3://b/t", {"aws_region": "q"})


def test_without_obstore_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'pyspark-delta\[cloud\]'"):
        store_for("s3://bucket-without-obstore/t")


def test_an_unknown_option_is_named() -> None:
    pytest.importorskip("obstore")
    with pytest.raises(InvalidOptionError, match="aws_nonsense"):
        store_for("s3://b/t", {"aws_nonsense": "x"}).read("s3://b/t/x")


def test_counting() -> None:
    counts = Counts()
    with intercepted(lambda inner: CountingStore(inner, counts)):
        store = store_for("memory://counted/t")
        store.write("memory://counted/t/a", b"12345")
        store.write_if_absent("memory://counted/t/b", b"123")
        store.read("memory://counted/t/a")
        store.read("memory://counted/t/a", (0, 2))
        store.status("memory://counted/t/a")
        assert len(list(store.list_from("memory://counted/t/"))) == 2
        with store.open_input("memory://counted/t/a") as file:
            file.read(4)
        with store.open_output("memory://counted/t/c") as sink:
            sink.write(b"1234567")
        store.copy("memory://counted/t/a", "memory://counted/t/d")
        store.delete(["memory://counted/t/a", "memory://counted/t/b"])
    assert isinstance(store_for("memory://counted/t"), MemoryStore)
    assert counts.calls == {
        "read": 2,
        "status": 1,
        "list": 1,
        "open_input": 1,
        "open_output": 1,
        "write": 1,
        "write_if_absent": 1,
        "copy": 1,
        "delete": 2,
    }
    assert counts.bytes["read"] == 7
    assert counts.bytes["open_input"] == 4
    assert counts.bytes["open_output"] == 7
    assert (counts.files, counts.total_calls, counts.total_bytes) == (2, 11, 26)
    assert counts.log[0] == ("write", "memory://counted/t/a")
    assert "read=2 (7 B)" in repr(counts)
    counts.reset()
    assert counts.total_calls == counts.files == 0


def test_parquet_footers_are_counted(tmp_path: Path) -> None:
    path = f"{tmp_path}/x.parquet"
    counts = Counts()
    store = CountingStore(store_for(path), counts)
    with store.open_output(path) as sink:
        pq.write_table(pa.table({"a": range(100_000)}), sink)
    with store.open_input(path) as file:
        pq.ParquetFile(file)
    size = store.status(path).size
    assert counts.bytes["open_output"] == size
    assert 0 < counts.bytes["open_input"] < size
