"""The slow store of the benchmarks: S3 as clients see it, later by what was asked for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from benchmarks.slow_store import GET_SECONDS, LIST_SECONDS, PAGE, SlowStore, reach

from pyspark_delta.errors import FileNotFoundInStoreError
from pyspark_delta.storage import ObjectStore, store_for


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with more files than an answer to LIST holds, and one below it."""
    log = tmp_path / "table" / "_delta_log"
    (log / "_sidecars").mkdir(parents=True)
    for number in range(PAGE + 5):
        (log / f"{number:020d}.json").write_bytes(b"%d" % number)
    (log / "_sidecars" / "a b.parquet").write_bytes(b"0123456789")
    return log


@pytest.fixture
def store(files: Path) -> tuple[str, ObjectStore]:
    location, options = reach(str(files.parent), slow=True)
    return location, store_for(location, options)


def test_files_are_listed_and_read_as_from_s3(store: tuple[str, ObjectStore]) -> None:
    log, opened = f"{store[0]}/_delta_log", store[1]
    listed = [status.path for status in opened.list_from(f"{log}/{7:020d}")]
    assert listed == [f"{log}/{number:020d}.json" for number in range(7, PAGE + 5)]
    below = f"{log}/_sidecars/a b.parquet"
    assert [(s.path, s.size) for s in opened.list_from(f"{log}/_sidecars/")] == [(below, 10)]
    assert opened.read(below) == b"0123456789"
    assert opened.read(below, (2, 5)) == b"234"
    assert opened.read(below, (8, 20)) == b"89"
    assert opened.status(below).size == 10
    with pytest.raises(FileNotFoundInStoreError):
        opened.read(f"{log}/none")


def test_every_answer_has_its_delay(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def ask(*targets: str) -> None:
        reader, writer = asyncio.StreamReader(), _Sink()
        for target in targets:
            reader.feed_data(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        reader.feed_eof()
        await SlowStore(files.parents[1]).serve(reader, writer)  # type: ignore[arg-type]

    monkeypatch.setattr(asyncio, "sleep", sleep)
    asyncio.run(ask(f"/slow/table/_delta_log/{0:020d}.json", "/slow/none", "/slow?list-type=2&prefix=table"))
    assert waited == [GET_SECONDS, GET_SECONDS, LIST_SECONDS]


class _Sink:
    def write(self, data: bytes) -> None:
        """Take it."""

    async def drain(self) -> None:
        """Take more."""

    def close(self) -> None:
        """End."""


def test_a_near_table_stays_where_it_is(tmp_path: Path) -> None:
    assert reach(str(tmp_path), slow=False) == (str(tmp_path), {})
