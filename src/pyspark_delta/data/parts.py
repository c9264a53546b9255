"""Writing batches of rows to data files: in the given order, or in any order with several files at a time."""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import chain, islice

import pyarrow as pa

from pyspark_delta.data.not_null import check_not_null
from pyspark_delta.data.partitions import Partition, Piece, as_readers_get, pieces, runs
from pyspark_delta.data.writer import DataFile, FileLayout, WriteContext, WrittenFile
from pyspark_delta.errors import StorageError
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import resolve_file

_MOST_BEGUN = 128  # incomplete files of one task, with all its threads, that have been opened in the store
_PUBLISHING = 8  # files of one task that are published at the same time
_MAX_THREADS = 8
_POLL_SECONDS = 0.2

ROWS_AT_ONCE = 512 << 20
"""Bytes of rows that threads sort by partition together."""


def write_files(context: WriteContext, batches: Iterable[pa.RecordBatch], part: int = 0) -> Iterator[WrittenFile]:
    """Write the rows to data files, and yield each file once it is complete and durable.

    Rows of the same partition should be adjacent: a file is closed when the partition changes. `part` is the number in
    the file names. Raises ConstraintViolationError for null in a NOT NULL column, StorageError; after an error, files
    that were not yielded do not exist.
    """
    writer = RollingFileWriter(context, part)
    try:
        for batch in batches:
            if batch.num_rows:
                yield from writer.add(batch)
        yield from writer.finish()
    except BaseException:
        writer.abandon()
        raise


def write_all(context: WriteContext, batches: Iterable[pa.RecordBatch], part: int = 0) -> list[WrittenFile]:
    """Write rows like `write_files` and return all files. After an error, the files are deleted."""
    written: list[WrittenFile] = []
    try:
        written += write_files(context, batches, part)
    except BaseException:
        delete_written(context, written)
        raise
    return written


def write_each(context: WriteContext, sources: Sequence[Iterable[pa.RecordBatch]], threads: int) -> list[WrittenFile]:
    """Write the rows of each source to files of its own, like `write_all`; return the files in order of the sources.

    `threads` write at the same time. After an error, all files are deleted; the first error is raised.
    """
    if threads <= 1 or len(sources) <= 1:
        return write_all(context, chain.from_iterable(sources))
    stop = threading.Event()

    def write(part: int, rows: Iterable[pa.RecordBatch]) -> list[WrittenFile]:
        try:
            return write_all(context, _until(stop, rows), part)
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(min(threads, len(sources)), thread_name_prefix="pyspark-delta-write") as pool:
        writers = [pool.submit(write, part, rows) for part, rows in enumerate(sources)]
        try:
            wait(writers)
        except BaseException:
            stop.set()
            raise
        finally:
            if stop.is_set():
                wait(writers)
                done = (writer.result() for writer in writers if writer.exception() is None)
                delete_written(context, chain.from_iterable(done))
    failures = [error for writer in writers if (error := writer.exception()) is not None]
    for error in failures:
        if not isinstance(error, _StoppedError):
            raise error
    return [file for writer in writers for file in writer.result()]


class _StoppedError(Exception):
    """Another thread has failed."""


def _until(stop: threading.Event, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        if stop.is_set():
            raise _StoppedError
        yield batch


def write_in_any_order(
    context: WriteContext,
    batches: Iterable[pa.RecordBatch],
    part: int = 0,
    threads: int | None = None,
    at_once: int = ROWS_AT_ONCE,
) -> list[WrittenFile]:
    """Write rows to data files, in any order. Each thread writes one file at a time.

    `threads` defaults to the number of cores, at most 8. If the table has partitions, `at_once` bytes of rows are
    sorted by partition together. Raises the errors of `write_files`, and then deletes the files.
    """
    source = pieces(context, batches, at_once)
    first = list(islice(source, 2))
    crew = _Crew(context, part, _threads(threads, first))
    return crew.write(chain(first, source))


def write_side_by_side(
    context: WriteContext,
    batches: Iterable[pa.RecordBatch],
    part: int = 0,
    threads: int | None = 1,
    at_once: int | None = None,
) -> list[WrittenFile]:
    """Write rows, in any order, to one data file for each partition, or more if sizes require it.

    All files are open at the same time; the rows that wait take the memory of at most one row group for each thread.
    With several `threads`, a partition that has more than a row group is shared by them. None is the number of cores,
    at most 8. `at_once` is as for `write_in_any_order`; half a row group by default. Raises the errors of
    `write_files`, and then deletes the files.
    """
    source = pieces(context, batches, at_once or context.row_group_bytes // 2)
    first = list(islice(source, 2))
    crew = _Crew(context, part, _threads(threads, first), side_by_side=True)
    return crew.write(chain(first, source))


def _threads(wanted: int | None, first: list[Piece]) -> int:
    """Return the number of threads to use; 1 if more would only make files smaller."""
    if len(first) < 2:
        return 1
    one, two = first
    if one.partition == two.partition and 2 * two.num_rows < one.num_rows:
        return 1
    return wanted or min(os.cpu_count() or 1, _MAX_THREADS)


class RollingFileWriter:
    """Writes the batches of one task, one file at a time: `write_files` as an object, for callers that push batches.

    `add`, `append`, `end_file` and `finish` yield each file once it is complete and durable; `abandon` deletes all
    others. Threads publish the files: while one file is made durable, the next one is written. With `side_by_side`, the
    files of all partitions stay open until the end; `writers` of them may do so at the same time.
    """

    def __init__(self, context: WriteContext, part: int, *, side_by_side: bool = False, writers: int = 1) -> None:
        self._context = context
        self._layout = FileLayout(context)
        self._part = part
        self._files = 0
        self._open: dict[Partition, DataFile] = {}
        self._side_by_side = side_by_side
        self._most_begun = max(1, _MOST_BEGUN // writers)
        self._limit = context.max_records_per_file or 0
        self._pool: ThreadPoolExecutor | None = None
        self._publishing: deque[tuple[DataFile, Future[WrittenFile]]] = deque()

    def add(self, batch: pa.RecordBatch) -> Iterator[WrittenFile]:
        """Write rows; adjacent rows of the same partition go to the same file."""
        batch = self._checked(batch)
        for partition, rows in runs(self._context, batch):
            yield from self._append(rows, partition)

    def append(self, piece: Piece) -> Iterator[WrittenFile]:
        """Write rows of one partition."""
        for batch in piece.rows():
            yield from self._append(self._checked(batch), piece.partition)

    @property
    def files_begun(self) -> int:
        """The number of files that were begun."""
        return self._files

    def end_file(self) -> Iterator[WrittenFile]:
        """Close the open files: rows that follow go to others. Yield the files that have been published."""
        while self._open:
            self._publish(self._end_file(next(iter(self._open))))
        yield from self._done()

    def finish(self) -> Iterator[WrittenFile]:
        """Write the remaining rows and publish all files."""
        while self._open:
            file = self._end_file(next(iter(self._open)))
            if not self._open and self._pool is None:
                yield self._published_here(file)
                return
            self._publish(file)
            yield from self._done()
        while self._publishing:
            yield self._published()
        self._shut_down()

    def abandon(self) -> None:
        """Delete the files that were not yielded."""
        while self._open:
            self._open.popitem()[1].discard()
        self._shut_down()
        _delete(self._context, [file.location for file, _ in self._publishing])
        self._publishing.clear()

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows as readers get them. Raises ConstraintViolationError for null in a NOT NULL column."""
        batch = as_readers_get(self._context, batch)
        check_not_null(batch, self._context.schema)
        return batch

    def _append(self, batch: pa.RecordBatch, partition: Partition) -> Iterator[WrittenFile]:
        if not self._side_by_side and partition not in self._open:
            yield from self._next_file()
        while batch.num_rows:
            file = self._open.get(partition)
            if file is None:
                file = DataFile(self._context, self._layout, partition, self._part, self._files)
                self._open[partition] = file
                self._files += 1
            room = self._limit - file.num_records if self._limit else batch.num_rows
            file.add(batch.slice(0, room))
            batch = batch.slice(room)
            if self._is_full(file):
                yield from self._next_file(partition)
        if self._side_by_side:
            yield from self._relieve()

    def _relieve(self) -> Iterator[WrittenFile]:
        """Write row groups until the waiting rows take at most the memory of one row group."""
        excess = sum(file.gathered_bytes for file in self._open.values()) - self._context.row_group_bytes
        while excess > 0:
            partition, largest = max(self._open.items(), key=lambda item: item[1].gathered_bytes)
            excess -= largest.gathered_bytes
            if largest.is_begun or sum(file.is_begun for file in self._open.values()) < self._most_begun:
                largest.flush()
            else:
                yield from self._next_file(partition)

    def _next_file(self, partition: Partition | None = None) -> Iterator[WrittenFile]:
        """Close the file of a partition, or the first open one; yield the files that have been published."""
        if partition is None:
            partition = next(iter(self._open), None)
        if partition is not None:
            self._publish(self._end_file(partition))
        yield from self._done()

    def _done(self) -> Iterator[WrittenFile]:
        while self._publishing and (self._publishing[0][1].done() or len(self._publishing) > _PUBLISHING):
            yield self._published()

    def _published(self) -> WrittenFile:
        """Wait until the first file is published, and return it. It stays in the queue if that fails."""
        written = self._publishing[0][1].result()
        self._publishing.popleft()
        return written

    def _published_here(self, file: DataFile) -> WrittenFile:
        """Publish the only file in this thread."""
        try:
            return file.publish()
        except BaseException:  # the file may exist despite the error
            _delete(self._context, [file.location])
            raise

    def _end_file(self, partition: Partition) -> DataFile:
        file = self._open[partition]
        file.end()
        del self._open[partition]
        return file

    def _publish(self, file: DataFile) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_PUBLISHING, thread_name_prefix="pyspark-delta-publish")
        self._publishing.append((file, self._pool.submit(file.publish)))

    def _shut_down(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _is_full(self, file: DataFile) -> bool:
        target = self._context.target_file_size
        return bool(self._limit and file.num_records >= self._limit) or bool(target and file.size >= target)


class _Crew:
    """Threads that write pieces as they arrive, each to a file of its own.

    With `side_by_side`, the pieces of a partition go to one thread, until they make a row group; then to the next one.
    """

    def __init__(self, context: WriteContext, part: int, threads: int, *, side_by_side: bool = False) -> None:
        self._context = context
        self._side_by_side = side_by_side
        self._part = part
        self._threads = threads
        self._queues: list[queue.Queue[Piece | None]] = (
            [queue.Queue(1) for _ in range(threads)] if side_by_side else [queue.Queue(threads)]
        )
        self._turns: dict[Partition, tuple[int, int]] = {}  # the thread of a partition, and the bytes that it got
        self._stop = threading.Event()
        self._written: list[list[WrittenFile]] = [[] for _ in range(threads)]

    def write(self, source: Iterable[Piece]) -> list[WrittenFile]:
        """Write all pieces and return their files. After an error, the files are deleted."""
        try:
            if self._threads == 1:
                self._work(0, iter(source))
            else:
                self._share(source)
        except BaseException:
            delete_written(self._context, chain.from_iterable(self._written))
            raise
        return list(chain.from_iterable(self._written))

    def _share(self, source: Iterable[Piece]) -> None:
        workers: dict[int, Future[None]] = {}
        with ThreadPoolExecutor(self._threads, thread_name_prefix="pyspark-delta-write") as pool:
            try:
                for piece in source:
                    number = self._turn(piece) if self._side_by_side else min(len(workers), self._threads - 1)
                    if number not in workers:
                        workers[number] = pool.submit(self._work, number, self._handed_out(self._queue(number)))
                    self._put(piece, self._queue(number))
                for number in workers:
                    self._put(None, self._queue(number))
            except BaseException:
                self._stop.set()
                raise
        for worker in workers.values():
            worker.result()

    def _turn(self, piece: Piece) -> int:
        """Return the thread for a piece."""
        number, size = self._turns.get(piece.partition, (len(self._turns) % self._threads, 0))
        if size >= self._context.row_group_bytes:
            number, size = (number + 1) % self._threads, 0
        self._turns[piece.partition] = number, size + piece.num_bytes
        return number

    def _queue(self, number: int) -> queue.Queue[Piece | None]:
        return self._queues[number % len(self._queues)]

    def _work(self, number: int, source: Iterator[Piece]) -> None:
        part, written = self._part + number, self._written[number]
        writer = RollingFileWriter(self._context, part, side_by_side=self._side_by_side, writers=self._threads)
        try:
            for piece in source:
                written += writer.append(piece)
            if self._stop.is_set():
                writer.abandon()
            written += writer.finish()
        except BaseException:
            self._stop.set()
            writer.abandon()
            raise

    def _put(self, piece: Piece | None, waiting: queue.Queue[Piece | None]) -> None:
        """Pass a piece to the threads, unless one of them has failed."""
        while not self._stop.is_set():
            with suppress(queue.Full):
                waiting.put(piece, timeout=_POLL_SECONDS)
                return

    def _handed_out(self, waiting: queue.Queue[Piece | None]) -> Iterator[Piece]:
        """Yield pieces for one thread; stop after a failure."""
        while not self._stop.is_set():
            with suppress(queue.Empty):
                piece = waiting.get(timeout=_POLL_SECONDS)
                if piece is None:
                    return
                yield piece


def delete_written(context: WriteContext, files: Iterable[WrittenFile]) -> None:
    """Delete complete files that no commit will name. If the store fails, vacuum deletes them later."""
    _delete(context, [resolve_file(context.table_location, file.path) for file in files])


def _delete(context: WriteContext, locations: list[str]) -> None:
    """Delete files that no commit will name. Errors of the store are ignored."""
    with suppress(StorageError):
        store_for(context.table_location, context.storage_options).delete(locations)
