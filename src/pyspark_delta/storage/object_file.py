"""Files of an object store as Python file objects, with read-ahead for Parquet."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from pyspark_delta.storage.sink import Sink

_TAIL = 64 * 1024  # most Parquet footers fit
_AHEAD = 256 * 1024  # at 100 MB/s some 3 ms, little compared with the 20 to 100 ms of a request
_MOST_AHEAD = 8 * 1024 * 1024


class ObjectInput:
    """A seekable file over range requests.

    The end of the file is fetched once and kept, because Parquet readers begin there. Any other read fetches more than
    requested; this read-ahead doubles while each read begins where the last one ended.
    """

    def __init__(self, fetch: Callable[[int, int], memoryview], size: int) -> None:
        self._fetch = fetch
        self._size = size
        self._position = 0
        self._tail = _Block(size, memoryview(b""))
        self._block = _Block(0, memoryview(b""))
        self._ahead = _AHEAD
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        """The size in bytes."""
        return self._size

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._require_open()
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"cannot seek to {base + offset}")
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        self._require_open()
        start = min(self._position, self._size)
        end = self._size if size is None or size < 0 else min(start + size, self._size)
        if start == end:
            return b""
        data = self._bytes(start, end)
        self._position = end
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(memoryview(buffer).cast("B")))
        memoryview(buffer).cast("B")[: len(data)] = data
        return len(data)

    def flush(self) -> None:
        """Do nothing: the file is read-only."""

    def close(self) -> None:
        self._closed = True
        self._tail = self._block = _Block(0, memoryview(b""))

    def __enter__(self) -> ObjectInput:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _bytes(self, start: int, end: int) -> bytes:
        for block in (self._block, self._tail):
            if block.start <= start and end <= block.end:
                return block.slice(start, end)
        if start >= self._size - _TAIL and not self._tail.data:
            first = max(0, self._size - _TAIL)
            self._tail = _Block(first, self._fetch(first, self._size))
            return self._tail.slice(start, end)
        if self._block.start <= start <= self._block.end and self._block.data:
            self._ahead = min(self._ahead * 2, _MOST_AHEAD)
        else:
            self._ahead = _AHEAD
        kept = self._block.slice(start, self._block.end) if self._block.start <= start < self._block.end else b""
        fetched_from = start + len(kept)
        last = min(max(end, fetched_from + self._ahead), self._size)
        self._block = _Block(fetched_from, self._fetch(fetched_from, last))
        return kept + self._block.slice(fetched_from, end)

    def _require_open(self) -> None:
        if self._closed:
            raise ValueError("the file is closed")


class _Block:
    __slots__ = ("data", "end", "start")

    def __init__(self, start: int, data: memoryview) -> None:
        self.start = start
        self.data = data
        self.end = start + len(data)

    def slice(self, start: int, end: int) -> bytes:
        return bytes(self.data[start - self.start : end - self.start])


class ObjectOutput(Sink):
    """A sink that uploads in parts. The object exists once `close` returns, and never after a failure."""

    def __init__(self, writer: Any, translated: Callable[[], AbstractContextManager[None]]) -> None:
        self._writer = writer
        self._translated = translated
        self._position = 0
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        if self._closed:
            raise ValueError("the file is closed")
        view = memoryview(data).cast("B")
        with self._translated():
            self._writer.write(view)
        self._position += len(view)
        return len(view)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        with self._translated():
            self._writer.close()

    def discard(self) -> None:
        """Discard the content: an upload that is not completed never becomes an object."""
        self._closed = True
        self._writer = None
