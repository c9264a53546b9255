"""Opening data files as Parquet, and conversion of the errors of Arrow and the store."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_delta.errors import DataFileError, FileNotFoundInStoreError, UnsupportedDataFileError
from pyspark_delta.parquet.bounds import check_codecs, check_statistics
from pyspark_delta.parquet.footer import MAGIC, TRAILER
from pyspark_delta.storage import store_for
from pyspark_delta.storage.local import LocalStore

_OPTIONS: dict[str, Any] = {"coerce_int96_timestamp_unit": "us"}
if "arrow_extensions_enabled" in inspect.signature(pq.ParquetFile.__init__).parameters:
    _OPTIONS["arrow_extensions_enabled"] = False

_LISTS_IN_LISTS = "LIST-annotated groups must not be repeated"  # files of old writers, without a level for elements


def is_local(location: str, storage_options: Mapping[str, str] | None) -> bool:
    """Return True if files are read from the local store itself, so other libraries may open them by their paths."""
    return type(store_for(location, storage_options)) is LocalStore


def rows_in_file(path: str, storage_options: Mapping[str, str] | None) -> int:
    """Return the number of rows of a data file, deleted ones included, from its footer. Raises DataFileError."""
    with opened_file(path, storage_options) as file:
        rows: int = file.metadata.num_rows
        return rows


@contextmanager
def opened_file(path: str, storage_options: Mapping[str, str] | None) -> Iterator[pq.ParquetFile]:
    """Open the data file at a location while the block runs.

    Raises DataFileError, and UnsupportedDataFileError if only Spark can read it. Errors inside the block are not
    converted; reads in it use `translated`.
    """
    with translated(path):
        source = store_for(path, storage_options).open_input(path)
        try:
            file = pq.ParquetFile(source, pre_buffer=not path.startswith("/"), **_OPTIONS)
        except BaseException:
            source.close()
            raise
    try:
        yield file
    finally:
        file.close()
        source.close()


@contextmanager
def opened_footer(footer: bytes, path: str) -> Iterator[pq.ParquetFile]:
    """Open the footer of a data file that was read already, for its metadata. Raises as `opened_file`."""
    end = len(footer).to_bytes(4, "little") + MAGIC
    with translated(path):
        file = pq.ParquetFile(pa.BufferReader(MAGIC + footer + end), **_OPTIONS)
    try:
        yield file
    finally:
        file.close()


def check_chunks(file: pq.ParquetFile, path: str, leaves: Iterable[int], *, codecs: bool = False) -> None:
    """Raise DataFileError unless Arrow can describe the chunks of some leaves: their sizes, and their statistics.

    With `codecs`, it can also name their codecs.

    It has to be called before `RowGroupMetaData.column`: there, Arrow ends the process for damaged statistics. Arrow
    writes the footer that it has parsed, so nothing is read again.
    """
    metadata = file.metadata
    if not metadata.num_row_groups:
        return
    sink = pa.BufferOutputStream()
    try:
        metadata.write_metadata_file(sink)
        footer = sink.getvalue().to_pybytes()[len(MAGIC) : -TRAILER]
        for leaf in leaves:
            check_statistics(footer, metadata, leaf)
        if codecs:
            check_codecs(footer)
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        raise _data_file_error(path, error) from None


class translated:  # noqa: N801 - a context manager; as a generator it would cost more, for each file
    """Convert errors in the block to DataFileError, or UnsupportedDataFileError if only Spark can read the file."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, FileNotFoundInStoreError | pa.ArrowException | OSError | UnicodeError):
            raise _data_file_error(self._path, error) from None


def _data_file_error(path: str, error: Exception) -> DataFileError:
    if isinstance(error, FileNotFoundInStoreError):
        return DataFileError(
            f"Data file '{path}' does not exist, though the log says it is part of the table. It may have been "
            "vacuumed, or removed by hand: read a newer version, or restore the file.",
            error_class="DELTA_FILE_NOT_FOUND_DETAILED",
            path=path,
        )
    if isinstance(error, pa.ArrowNotImplementedError) or _LISTS_IN_LISTS in str(error):
        return UnsupportedDataFileError(
            f"Data file '{path}' uses a feature of Parquet that Arrow cannot read: {str(error).rstrip('.')}. Spark "
            "can: read the table in a session with pyspark_delta.enable(spark), or write its rows to a new table "
            "there.",
            path=path,
        )
    return DataFileError(
        f"Data file '{path}' cannot be read as Parquet: {error}. It is damaged or incomplete; restore it.",
        path=path,
    )
