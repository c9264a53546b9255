"""Few requests for the ways in which Parquet reads a file."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_delta.storage.object_file import ObjectInput

MIB = 1024 * 1024


class Source:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.requests: list[tuple[int, int]] = []

    def open(self) -> ObjectInput:
        return ObjectInput(self._fetch, len(self.content))

    def _fetch(self, start: int, end: int) -> memoryview:
        assert 0 <= start < end <= len(self.content)
        self.requests.append((start, end))
        return memoryview(self.content)[start:end]


def test_random_reads_return_the_content() -> None:
    random.seed(7)
    source = Source(random.randbytes(3 * MIB))
    file = source.open()
    for _ in range(500):
        start = random.randrange(0, 3 * MIB + 10)
        size = random.choice((1, 100, 70_000, 500_000))
        file.seek(start)
        assert file.read(size) == source.content[start : start + size]
        assert file.read(10) == source.content[start + size : start + size + 10]


def test_a_footer_is_one_request_and_a_small_file_is_no_other() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": range(1000)}), sink)
    source = Source(sink.getvalue().to_pybytes())
    assert pq.ParquetFile(source.open()).read().num_rows == 1000
    assert source.requests == [(0, len(source.content))]


def test_small_reads_in_sequence_grow_into_large_requests() -> None:
    source = Source(bytes(40 * MIB))
    file = source.open()
    while file.read(10_000):
        pass
    assert len(source.requests) < 15
    assert sum(end - start for start, end in source.requests) <= len(source.content) + 64 * 1024


def test_a_large_read_is_one_request_with_little_surplus() -> None:
    source = Source(bytes(40 * MIB))
    file = source.open()
    file.seek(MIB)
    file.read(10 * MIB)
    assert source.requests == [(MIB, 11 * MIB)]


def test_a_closed_file_refuses() -> None:
    file = Source(b"abc").open()
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.read()
    with pytest.raises(ValueError, match="closed"):
        file.seek(0)


def test_the_rest_of_a_file_protocol() -> None:
    file = Source(b"abcdef").open()
    buffer = bytearray(4)
    assert (file.readable(), file.writable(), file.seekable(), file.size()) == (True, False, True, 6)
    assert (file.readinto(buffer), bytes(buffer)) == (4, b"abcd")
    with pytest.raises(ValueError, match="-1"):
        file.seek(-1)
