"""Footers of existing Parquet files: their columns, and their statistics without reading a data page.

The footers of many files differ in nothing but their values: these are read together, the others one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson
import pyarrow.parquet as pq

from pyspark_delta.data.opened import check_chunks, opened_file, opened_footer, translated
from pyspark_delta.errors import DataFileError, DeltaError, FileNotFoundInStoreError, SchemaMismatchError, StorageError
from pyspark_delta.maintenance.convert.layout import FileLayout, MeasuredColumn, drops_nan
from pyspark_delta.maintenance.convert.like_files import LikeFiles
from pyspark_delta.maintenance.convert.schema import schema_of_file
from pyspark_delta.parquet.alike import Likeness
from pyspark_delta.parquet.footer import MAGIC, TRAILER
from pyspark_delta.schema.types import StructType
from pyspark_delta.stats.collect import put_at
from pyspark_delta.storage import store_for

_MOST_LAYOUTS = 32
_TAIL = 64 << 10  # bytes at the end of a file that hold most footers, as Arrow reads them
_MOST_BYTES = 4 << 20  # of footers that are read together: their values take some times as much memory

_Found: TypeAlias = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Footer:
    """The columns of a file, and its statistics as the log holds them; None if they were not asked for."""

    schema: StructType
    stats: str | None


class FooterReader:
    """Reads footers; thread-safe. Files with the same Parquet schema share what is computed from it.

    `partitioned` are columns without statistics.
    """

    def __init__(self, storage_options: Mapping[str, str], partitioned: StructType, *, statistics: bool) -> None:
        self._storage_options = storage_options
        self._partitioned = partitioned
        self._statistics = statistics
        self._layouts: list[FileLayout] = []
        self._alike: list[LikeFiles] = []
        self._learned = 0

    def read(self, files: Iterable[tuple[str, int]]) -> list[Footer | DeltaError]:
        """Return the footers of files, which are locations and sizes in bytes.

        For a file that cannot be read, that is a DataFileError; for one with a type that Delta lacks, a
        SchemaMismatchError.
        """
        return [footer for part in self._parts(files) for footer in self._read_part(part)]

    def read_as(self, location: str, table: StructType) -> str:
        """Return the statistics of a file with the column names of the table. Raises DataFileError."""
        with opened_file(location, self._storage_options) as file:
            return _statistics(file, location, FileLayout.of(file, table, self._partitioned).columns)

    def _parts(self, files: Iterable[tuple[str, int]]) -> Iterator[list[_Found]]:
        """Yield the locations of files and the bytes of their footers, which take a limited memory together."""
        part: list[_Found] = []
        taken = 0
        for location, size in files:
            footer = self._bytes(location, size)
            part.append((location, footer))
            taken += len(footer or b"")
            if taken >= _MOST_BYTES:
                yield part
                part, taken = [], 0
        yield part

    def _bytes(self, location: str, size: int) -> bytes | None:
        """Return the bytes of a footer; None if they are not where they should be. Reads twice if they are many."""
        store = store_for(location, self._storage_options)
        try:
            end = store.read(location, (max(size - _TAIL, 0), size))
            length = int.from_bytes(end[-TRAILER : -len(MAGIC)], "little")
            if not end.endswith(MAGIC) or not 0 < length <= size - TRAILER:
                return None
            if length > len(end) - TRAILER:
                end = store.read(location, (size - TRAILER - length, size))
        except (FileNotFoundInStoreError, StorageError):
            return None
        return end[-TRAILER - length : -TRAILER]

    def _read_part(self, part: Sequence[_Found]) -> list[Footer | DeltaError]:
        found: dict[int, Footer | DeltaError] = {}
        for known in tuple(self._alike):
            self._read_alike(known, part, found)
        for number, (location, footer) in enumerate(part):
            if number not in found:
                found[number], learned = self._read(location, footer)
                if learned is not None:
                    self._read_alike(learned, part, found)
        return [found[number] for number in range(len(part))]

    def _read_alike(self, known: LikeFiles, part: Sequence[_Found], found: dict[int, Footer | DeltaError]) -> None:
        """Find the footers of files that are not found yet and are like known ones."""
        like = {
            number: footer
            for number, (_, footer) in enumerate(part)
            if number not in found and footer is not None and known.likeness.is_of(footer)
        }
        for number, text in zip(like, known.statistics(list(like.values())), strict=True):
            if text is not None:
                found[number] = Footer(known.layout.schema, text if self._statistics else None)

    def _read(self, location: str, footer: bytes | None) -> tuple[Footer | DeltaError, LikeFiles | None]:
        """Return the footer of one file by Arrow, and how others that are like it can be read without Arrow."""
        learns = footer is not None and self._learned < _MOST_LAYOUTS
        opened = opened_file(location, self._storage_options) if footer is None else opened_footer(footer, location)
        try:
            with opened as file:
                layout = self._layout(file)
                stats = _statistics(file, location, layout.columns) if self._statistics or learns else None
                is_safe = learns and drops_nan(file.metadata.created_by)
        except (DataFileError, SchemaMismatchError) as error:
            return error, None
        learned = self._learn(footer, layout, is_safe, stats) if learns and footer is not None else None
        return Footer(layout.schema, stats if self._statistics else None), learned

    def _learn(self, footer: bytes, layout: FileLayout, is_safe: bool, stats: str | None) -> LikeFiles | None:
        """Return how files like one are read without Arrow, if that gives the same statistics of this one as Arrow."""
        self._learned += 1
        likeness = Likeness.of(footer)
        if likeness is None:
            return None
        known = LikeFiles(likeness, layout, is_safe)
        if known.statistics([footer]) != [stats]:
            return None
        self._alike.append(known)
        return known

    def _layout(self, file: pq.ParquetFile) -> FileLayout:
        layout = next((known for known in self._layouts if known.is_of(file.metadata)), None)
        if layout is None:
            layout = FileLayout.of(file, schema_of_file(file), self._partitioned)
            if len(self._layouts) < _MOST_LAYOUTS:
                self._layouts.append(layout)
        return layout


# ------------------------------------------------------------------------------------------------- statistics
def _statistics(file: pq.ParquetFile, location: str, columns: Sequence[MeasuredColumn]) -> str:
    """Return the statistics of a file (C404-C415). Raises DataFileError."""
    metadata = file.metadata
    check_chunks(file, location, (measured.leaf for measured in columns))
    minimum: dict[str, Any] = {}
    maximum: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    with translated(location):
        is_safe = drops_nan(metadata.created_by)
    for measured in columns:
        found = _of_chunks(groups, measured)
        if found is None:
            continue
        path = measured.column.path
        null_count, lows, highs = found
        put_at(nulls, path, null_count)
        if lows:
            lower, upper = measured.bounds(lows, highs, drops_nan=is_safe)
            put_at(minimum, path, lower)
            put_at(maximum, path, upper)
    stats = {
        "numRecords": metadata.num_rows,
        "minValues": minimum,
        "maxValues": maximum,
        "nullCount": nulls,
        "tightBounds": True,
    }
    return orjson.dumps(stats).decode()


def _of_chunks(
    groups: Sequence[pq.RowGroupMetaData], measured: MeasuredColumn
) -> tuple[int, list[Any], list[Any]] | None:
    """Return the number of nulls of a column, and its bounds in each row group; none if one lacks them.

    None if a row group lacks the number of nulls.
    """
    nulls, lows, highs, known = 0, [], [], measured.factor > 0
    for group in groups:
        chunk = group.column(measured.leaf)
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            return None
        nulls += statistics.null_count
        if known and statistics.has_min_max:
            lows.append(statistics.min_raw)
            highs.append(statistics.max_raw)
        else:
            known = known and statistics.null_count == chunk.num_values
    return (nulls, lows, highs) if known else (nulls, [], [])
