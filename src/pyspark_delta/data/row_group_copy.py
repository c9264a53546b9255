"""Data files of row groups that are copied from other files without being decoded, and of rows that are encoded.

The bytes of the pages pass through this process unchanged; only their places in the footer differ. Copying takes about
a tenth of the CPU time of decoding and encoding the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from pyspark_delta.data.row_group_columns import AddedColumns
from pyspark_delta.data.row_group_rules import template
from pyspark_delta.data.writer import DataFile, FileLayout, WriteContext
from pyspark_delta.errors import DataFileError, FileNotFoundInStoreError
from pyspark_delta.parallel import map_requests
from pyspark_delta.parquet.footer import (
    ENCRYPTED_MAGIC,
    MAGIC,
    TRAILER,
    Chunk,
    Footer,
    FooterError,
    RowGroup,
    encode_footer,
    moved,
    parse_footer,
)
from pyspark_delta.parquet.pages import PageCheck, is_second_version
from pyspark_delta.parquet.thrift import EndsEarlyError, Struct, ThriftError
from pyspark_delta.stats.merge import merged_stats
from pyspark_delta.storage import ObjectStore, store_for

_TAIL = 64 << 10  # bytes; most footers fit
_MOST_FOOTER = 256 << 20
_HEADER = 4096  # bytes; most page headers fit
_PART = 8 << 20  # bytes of a request
_GAP = 64 << 10  # bytes between two columns that are read rather than left out by a request more
_AT_ONCE = 4  # requests


@dataclass(frozen=True, slots=True)
class CopySource:
    """A file whose row groups can be copied: its location, its footer, and its statistics as in the log.

    `storage_options` are those of its store, by default those of the file being written. `added` are columns that it
    lacks and the new file has.
    """

    location: str
    footer: Footer
    stats: str
    storage_options: Mapping[str, str] | None = field(default=None, repr=False, compare=False)
    added: AddedColumns | None = None

    @property
    def schema(self) -> tuple[Struct, ...]:
        """The Parquet schema of its row groups in the new file."""
        return self.footer.schema if self.added is None else self.added.schema(self.footer.schema)


def read_footer(location: str, size: int, storage_options: Mapping[str, str] | None) -> Footer:
    """Return the footer of the data file of `size` bytes at a location.

    Raises DataFileError if the file is missing, damaged, encrypted, or not of that size.
    """
    store = store_for(location, storage_options)
    try:
        return _read_footer(store, location, size)
    except (FooterError, ThriftError) as error:
        raise _damaged(location, error) from None
    except FileNotFoundInStoreError as error:
        raise DataFileError(f"Data file '{location}' does not exist.", path=location) from error


def _read_footer(store: ObjectStore, location: str, size: int) -> Footer:
    begin = max(0, size - _TAIL)
    tail = store.read(location, (begin, size))
    if tail[-4:] == ENCRYPTED_MAGIC:
        raise FooterError("it is encrypted")
    if len(tail) != size - begin or size < 2 * TRAILER or tail[-4:] != MAGIC:
        raise FooterError("it does not end as a Parquet file does, or its size is not that in the log")
    end = size - TRAILER
    start = end - int.from_bytes(tail[-TRAILER:-4], "little")
    if start < len(MAGIC) or end - start > _MOST_FOOTER:
        raise FooterError("its footer is longer than the file")
    data = tail[start - begin : -TRAILER] if start >= begin else store.read(location, (start, end))
    footer = parse_footer(data, start)
    return replace(footer, has_second_pages=_has_second_pages(store, location, footer))


def _has_second_pages(store: ObjectStore, location: str, footer: Footer) -> bool | None:
    """Return True if the first data page is of version 2; None if there is none."""
    for chunk in (chunk for group in footer.row_groups for chunk in group.chunks if chunk.num_values):
        begin, end = chunk.data_start, chunk.start + chunk.size
        for length in (_HEADER, end - begin):
            with suppress(EndsEarlyError):
                return is_second_version(store.read(location, (begin, min(end, begin + length))))
        raise FooterError("its first page ends within a header")
    return None


def _damaged(location: str, error: Exception) -> DataFileError:
    return DataFileError(
        f"Data file '{location}' cannot be read as Parquet: {error}. It is damaged or incomplete; restore it.",
        path=location,
    )


# --------------------------------------------------------------------------------------------------------- writing
class AssembledFile(DataFile):
    """A data file being written of copied row groups and of encoded rows, in the order in which they are added."""

    def __init__(
        self, context: WriteContext, layout: FileLayout, partition: tuple[str | None, ...], part: int, number: int
    ) -> None:
        super().__init__(context, layout, partition, part, number)
        self._places: _Places | None = None
        self._groups: list[Struct | _Encoded] = []
        self._copied: list[CopySource] = []

    def copy(self, source: CopySource) -> None:
        """Add all rows of a file, after those that were added before.

        All sources of a file must have schemas of the same meaning. Raises DataFileError if its pages are not where its
        footer says, and StorageError; the file must be discarded then.
        """
        if self._gathered:
            self.flush()
        sink, row = self._opened(), 0
        try:
            for group in source.footer.row_groups:
                if not group.num_rows:
                    continue
                starts = self._copy_group(sink, source, group)
                if source.added is not None:
                    group, starts = source.added.append(sink, group, starts, row)
                self._groups.append(moved(group, starts))
                row += group.num_rows
        except FooterError as error:
            raise _damaged(source.location, error) from None
        self._copied.append(source)
        self.num_records += source.footer.num_rows

    def flush(self) -> None:
        begin = self._opened().tell()
        super().flush()
        self._groups.append(_Encoded(begin, self.size))

    def end(self) -> None:
        if self._gathered:
            self.flush()
        sink = self._opened()
        encoded: Iterator[RowGroup] = iter(())
        if self._writer is not None:
            content_end = sink.tell()
            with sink.keeping() as kept:
                self._writer.close()
            encoded = iter(parse_footer(bytes(kept[:-TRAILER]), content_end).row_groups)
        groups = [group.placed(next(encoded)) if isinstance(group, _Encoded) else group for group in self._groups]
        usual = template(self._context)
        schema = self._copied[0].schema if self._writer is None and self._copied else usual.schema
        sink.write(encode_footer(schema, groups, usual.version))

    def discard(self) -> None:
        if self._places is not None and self._writer is not None:
            with suppress(Exception), self._places.keeping():
                self._writer.close()
        super().discard()

    def _opened(self) -> Any:
        if self._places is None:
            self._sink = self._places = _Places(super()._opened())
        return self._places

    def _copy_group(self, sink: Any, source: CopySource, group: RowGroup) -> list[int]:
        """Copy the pages of a row group; return where those of each column begin."""
        starts: dict[int, int] = {}
        check: PageCheck | None = None
        second = not self._context.format_version.startswith("1.")
        options = self._context.storage_options if source.storage_options is None else source.storage_options
        for chunk, data in _pages(store_for(source.location, options), source.location, group):
            if chunk.start not in starts:
                _finish(check)
                check = PageCheck(chunk.size, chunk.num_values, second_version=second)
                starts[chunk.start] = sink.tell()
            assert check is not None
            check.feed(data)
            sink.write(data)
        _finish(check)
        return [starts[chunk.start] for chunk in group.chunks]

    def _stats(self) -> str:
        texts = [*(source.stats for source in self._copied), *([super()._stats()] if self._writer is not None else ())]
        if len(texts) == 1:
            return str(texts[0])
        found = merged_stats(texts, self._context.stats_columns, string_prefix=self._context.string_prefix)
        assert found is not None  # callers copy files with statistics only
        return found


def _finish(check: PageCheck | None) -> None:
    if check is not None:
        check.finish()


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A row group that Arrow has written, and where it is in the file. Arrow does not count the bytes of others."""

    begin: int
    end: int

    def placed(self, group: RowGroup) -> Struct:
        first = min(chunk.start for chunk in group.chunks)
        if max(chunk.start + chunk.size for chunk in group.chunks) - first != self.end - self.begin:
            raise FooterError("Arrow has written a row group in an unexpected form")
        return moved(group, [chunk.start - first + self.begin for chunk in group.chunks])


# --------------------------------------------------------------------------------------------------------- reading
def _pages(store: ObjectStore, location: str, group: RowGroup) -> Iterator[tuple[Chunk, memoryview]]:
    """Yield the bytes of a row group in the order of the file, each piece with its column."""
    chunks = sorted(group.chunks, key=lambda chunk: chunk.start)
    parts = [part for span in _spans(chunks) for part in _cut(span)]
    at_once = 1 if location.startswith("/") else _AT_ONCE
    remaining = iter(chunks)
    chunk = next(remaining)
    for (start, end), data in zip(
        parts, map_requests(lambda part: store.read(location, part), parts, at_once), strict=True
    ):
        if len(data) != end - start:
            raise FooterError("it ends early")
        view = memoryview(data)
        while chunk.start < end:
            first, last = max(chunk.start, start), min(chunk.start + chunk.size, end)
            yield chunk, view[first - start : last - start]
            if last < chunk.start + chunk.size:
                break
            following = next(remaining, None)
            if following is None:
                return
            chunk = following


def _spans(chunks: Sequence[Chunk]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of bytes that hold some columns, without large gaps."""
    start = chunks[0].start
    for one, following in pairwise(chunks):
        if following.start - one.start - one.size > _GAP:
            yield start, one.start + one.size
            start = following.start
    yield start, chunks[-1].start + chunks[-1].size


def _cut(span: tuple[int, int]) -> Iterator[tuple[int, int]]:
    start, end = span
    while start < end:
        yield start, min(end, start + _PART)
        start += _PART


# ------------------------------------------------------------------------------------------------------------ sink
class _Places:
    """The sink of a file, for copied bytes and for Arrow's writer.

    Arrow begins a file with a magic number, and ends it with a footer of its own row groups: both are kept back.
    """

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._kept: bytearray | None = None
        self._is_begun = False
        sink.write(MAGIC)

    @property
    def closed(self) -> bool:
        return bool(self._sink.closed)

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        return int(self._sink.tell()) + len(self._kept or b"")

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        if self._kept is not None:
            self._kept += data
        elif not self._is_begun and size == len(MAGIC) and bytes(data) == MAGIC:
            self._is_begun = True
        else:
            self._sink.write(data)
        return size

    def flush(self) -> None:
        if self._kept is None:
            self._sink.flush()

    def keeping(self) -> _Kept:
        """Return a context in which what is written is kept back; its value is what was written."""
        return _Kept(self)


class _Kept:
    def __init__(self, places: _Places) -> None:
        self._places = places

    def __enter__(self) -> bytearray:
        self._places._kept = bytearray()
        return self._places._kept

    def __exit__(self, *_: object) -> None:
        self._places._kept = None
