"""One Parquet file of a checkpoint, read by leaves and row groups: only requested parts are decoded."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyspark_delta.errors import CorruptLogError, FileNotFoundInStoreError, StorageError
from pyspark_delta.log.footer_head import first_row_group
from pyspark_delta.parquet.bounds import check_statistics
from pyspark_delta.parquet.footer import TRAILER
from pyspark_delta.schema.legacy_calendar import LegacyCalendar, legacy_calendar
from pyspark_delta.storage import FileStatus, ObjectStore

_ROWS_PER_BYTE, _FREE_ROWS = 64, 1 << 16  # real checkpoints have a row for every ten bytes or more
BATCH_ROWS = 8192  # large reads of long strings are dominated by page faults; small batches reuse memory


class ParquetPart:
    """A classic checkpoint, one part of it, the top level of a V2 checkpoint, or a sidecar.

    The footer is read at the first use and kept.
    """

    def __init__(self, store: ObjectStore, file: FileStatus) -> None:
        self.file = file
        self.store = store
        self._metadata: pq.FileMetaData | None = None
        self._schema: pa.Schema | None = None
        self._leaves: dict[str, int] = {}
        self._key_values: dict[bytes, bytes] | None = None
        self._footer = b""
        self._checked: set[int] = set()  # leaves whose statistics can be read

    @property
    def path(self) -> str:
        """The location of the file."""
        return self.file.path

    def open(self) -> None:
        """Read the footer. Raises CorruptLogError if the file is missing or unreadable."""
        if self._metadata is None:
            with self.reading():
                pass  # opening reads it

    def open_again(self) -> None:
        """Like `open`; if the footer was read before, check that the file is still in the store."""
        if self._metadata is None:
            self.open()
        else:
            with self._translated():
                self.store.status(self.path)

    def _take_footer(self, file: pq.ParquetFile) -> None:
        metadata = file.metadata
        self._schema = metadata.schema.to_arrow_schema()
        self._leaves = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
        self._metadata, self._key_values = metadata, metadata.metadata

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the file."""
        self.open()
        assert self._schema is not None
        return self._schema

    @property
    def metadata(self) -> pq.FileMetaData:
        """The footer."""
        self.open()
        assert self._metadata is not None
        return self._metadata

    def leaf(self, path: str) -> int | None:
        """Return the index of a leaf column, None if the file has no such path."""
        self.open()
        return self._leaves.get(path)

    def has_other_calendar(self, leaf: str, data_type: pa.DataType) -> bool:
        """True if values of a leaf, and of that type, may be in the calendar of Spark 2."""
        calendar = self.calendar([leaf])
        return calendar is not None and calendar.concerns(data_type)

    def calendar(self, leaves: Sequence[str]) -> LegacyCalendar | None:
        """Return which values of some leaves may be in the calendar of Spark 2; None if none are."""
        indexes = [index for leaf in leaves if (index := self.leaf(leaf)) is not None]
        schema = self.metadata.schema
        return legacy_calendar(self._key_values, (schema.column(index).physical_type for index in indexes))

    def leaves_below(self, path: str) -> list[str]:
        """Return the leaf columns of a nested column."""
        self.open()
        return [leaf for leaf in self._leaves if leaf.startswith(path + ".")]

    def all_null(self, row_group: int, leaf: str) -> bool:
        """True if a leaf is absent, or null in every row of the row group by its statistics."""
        return self.values_in(row_group, leaf) == 0

    def values_in(self, row_group: int, leaf: str) -> int | None:
        """Return how many values a leaf has in a row group by its statistics; None if they lack the count."""
        index = self.leaf(leaf)
        if index is None:
            return 0
        statistics = self.statistics(row_group, index)
        if statistics is None or not statistics.has_null_count:
            return None
        return int(self.metadata.row_group(row_group).column(index).num_values - statistics.null_count)

    def statistics(self, row_group: int, leaf: int) -> pq.Statistics | None:
        """Return the statistics of a leaf, by its index, in a row group. Raises CorruptLogError for damaged ones."""
        metadata = self.metadata
        if leaf not in self._checked:
            with self._translated():
                check_statistics(self._footer, metadata, leaf)
            self._checked.add(leaf)
        return metadata.row_group(row_group).column(leaf).statistics

    def row_groups_with(self, leaf: str, *, until_found: bool = False) -> list[int]:
        """Return the row groups that may hold a value of a leaf; `until_found` ends at the first certain one."""
        found: list[int] = []
        if self.leaf(leaf) is None:
            return found
        for group in range(self.metadata.num_row_groups):
            values = self.values_in(group, leaf)
            if values != 0:
                found.append(group)
            if values and until_found:
                break
        return found

    def read_present(self, leaves: Mapping[str, str], *, once: Container[str] = ()) -> pa.Table | None:
        """Return the rows with values of some columns, by the leaf of each that is never null, with their row groups.

        For columns that occur `once`, nothing after their row is read. None if there are none. Raises CorruptLogError.
        """

        def groups_of(column: str) -> list[int]:
            return self.row_groups_with(leaves[column], until_found=column in once)

        if self._metadata is not None and not any(map(groups_of, leaves)):
            return None
        with self._translated():  # opened once for the footer and for the rows
            source = self.store.open_input(self.path)
            if self._metadata is None and self._is_local and all(column in once for column in leaves):
                first = _first_rows(source, leaves)
                if first is not None:
                    return first
        with self.reading(source=source) as file:
            groups = {column: groups_of(column) for column in leaves}
            present = [column for column in leaves if groups[column]]
            if not present:
                return None
            table = file.read_row_groups(sorted({*chain(*groups.values())}), columns=present, use_threads=False)
            table.validate(full=True)  # Parquet readers do not validate UTF-8
            return table

    @contextmanager
    def reading(self, coded: Sequence[str] = (), source: Any = None) -> Iterator[pq.ParquetFile]:
        """Open the file for several reads in a row; the leaves `coded` are read as dictionary columns.

        Errors inside become CorruptLogError. `source` is the file, if it is already open.
        """
        with self._translated(), self._file(coded, source) as file:
            if self._metadata is None:
                self._take_footer(file)
            yield file

    @contextmanager
    def _file(self, coded: Sequence[str], source: Any) -> Iterator[pq.ParquetFile]:
        source = self.store.open_input(self.path) if source is None else source
        remote = not self._is_local
        with pq.ParquetFile(source, metadata=self._metadata, pre_buffer=remote, read_dictionary=list(coded)) as file:
            if self._metadata is None:
                _check_size(file.metadata, source)
                self._footer = _footer_of(file.metadata, source)
            yield file

    @property
    def _is_local(self) -> bool:
        return self.path.startswith("/")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundInStoreError as error:
            raise missing_part(self.path) from error
        except StorageError:
            raise
        except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
            raise CorruptLogError(
                f"The checkpoint file '{self.path}' is not readable: {_first_line(error)}. "
                "It was damaged or truncated; restore or delete it.",
                path=self.path,
            ) from error


def missing_part(path: str) -> CorruptLogError:
    """Return the error for a file of a checkpoint that is not in the store."""
    return CorruptLogError(
        f"The file '{path}' of a checkpoint is missing. Restore it; the checkpoint cannot be read without it.",
        path=path,
        error_class="DELTA_MISSING_PART_FILES",
    )


def _check_size(metadata: pq.FileMetaData, source: Any) -> None:
    """Refuse a file that claims more rows than its bytes can hold: each action has a path or a name of its own.

    Equal rows take nearly no space in Parquet, and any memory once they are read. Raises ValueError.
    """
    size = source.seek(0, os.SEEK_END)
    if metadata.num_rows > _FREE_ROWS + _ROWS_PER_BYTE * size:
        raise ValueError(f"it declares {metadata.num_rows} rows in {size} bytes")


def _footer_of(metadata: pq.FileMetaData, source: Any) -> bytes:
    """Return the bytes of the footer."""
    source.seek(source.seek(0, os.SEEK_END) - TRAILER - metadata.serialized_size)
    return bytes(source.read(metadata.serialized_size))


def _first_rows(source: Any, leaves: Mapping[str, str]) -> pa.Table | None:
    """Return the first row group of some columns, if the footer is long and each column has a value there."""
    metadata = first_row_group(source)
    if metadata is None:
        return None
    _check_size(metadata, source)
    with pq.ParquetFile(source, metadata=metadata) as file:
        table = file.read_row_group(0, columns=list(leaves), use_threads=False)
    for column, leaf in leaves.items():
        if column not in table.column_names:
            return None
        values = table.column(column).combine_chunks()
        required = pc.struct_field(values, leaf.split(".")[1:]) if pa.types.is_struct(values.type) else None
        if required is None or required.null_count == len(required):
            return None
    table.validate(full=True)
    return table


def _first_line(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    return text.splitlines()[0].rstrip(".")[:200]


def json_value(value: Any, data_type: pa.DataType) -> Any:
    """Return a value of `to_pylist` in the form of JSON: maps, which Arrow returns as lists of pairs, become dicts."""
    if value is None:
        return None
    if pa.types.is_struct(data_type):
        fields = [data_type.field(i) for i in range(data_type.num_fields)]
        return {f.name: json_value(value[f.name], f.type) for f in fields}
    if pa.types.is_map(data_type):
        return dict(value)
    return value
