"""Decoding of data files by Polars, for top-level columns whose values are the same as those that PyArrow decodes.

Polars gets the exact type of every column, so it refuses a file with another one. The residual predicate is evaluated
as in `DataFileReader`, never by Polars. This module imports Polars; see `decoder_choice`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pyspark_delta.data.decoders import CannotDecode, DataFile, Decoded, OpenedFile
from pyspark_delta.data.polars_columns import Constant, Nulls, Source, Stored, source_in, source_unopened
from pyspark_delta.data.raw_rows import Indexes, Mask, RowSelection, without_columns
from pyspark_delta.deletion_vectors import check_rows
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.scan.plan import ReadContext, ScanTask
from pyspark_delta.storage.paths import resolve_file

_UNOPENED_BYTES = 1 << 20  # files up to this size are always decoded together, without a look at their footers
_UNIT_BYTES = 64 << 20  # of files that are decoded at once; each call of Polars takes about a millisecond
_UNIT_FILES = 512
_TEXT_UNIT_BYTES = 16 << 20
_FEWEST_BYTES = 128 << 10  # of columns, uncompressed: PyArrow decodes fewer bytes as fast
_MOST_BYTES = 128 << 20  # of columns, uncompressed, that are decoded at once; PyArrow decodes row groups in parts
_CHUNK_ROWS = 16_384  # smaller chunks are joined: each becomes a batch
_BATCH_ROWS = 262_144
_BATCH_BYTES = 8 << 20
_PATH = "\0path"  # no column of a file has this name
_REFUSALS = 2  # of groups of files after which files are opened first


class _Declined(Exception):
    """The rows are not decoded, for this reason."""


# A panic of Polars is no Exception.
_FAILURES = (_Declined, pl.exceptions.PolarsError, pl.exceptions.PanicException, pa.ArrowException, OSError)


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of some decoded rows: their constants, and for each row the number of its file; None for one file."""

    constants: Sequence[Mapping[str, pa.Scalar]]
    numbers: Indexes | None = None

    def where(self, passed: Mask) -> _Files:
        """Return the files of the rows of a mask."""
        return self if self.numbers is None else _Files(self.constants, self.numbers[passed])

    def values(self, name: str, start: int, rows: int) -> pa.Array:
        """Return the constants of some rows."""
        if self.numbers is None:
            return pa.repeat(self.constants[0][name], rows)
        distinct = pa.concat_arrays([pa.repeat(constants[name], 1) for constants in self.constants])
        return distinct.take(pa.array(self.numbers[start : start + rows]))


class PolarsDecoder:
    """Decodes data files with Polars. With `views`, texts and binaries stay views; else none can be decoded."""

    def __init__(self, context: ReadContext, schema: pa.Schema, *, views: bool) -> None:
        self._context = context
        self._schema = None if views else schema
        self._views = views
        self._names = [column.field.name for column in context.columns]
        places = {name: i for i, name in reversed([*enumerate(self._names)])}
        self._output = [places[name] for name in context.output]
        asked = {column.path[0] for column in columns_of(context.residual)} if context.residual is not None else ()
        self._asked = [i for i, name in enumerate(self._names) if name in asked]
        unopened = [source_unopened(plan, views=views) for plan in context.columns]
        self._unopened = [source for source in unopened if source is not None]
        stored = [source for source in self._unopened if isinstance(source, Stored)]
        self._needs_footers = len(self._unopened) < len(unopened) or not stored
        self._has_texts = any(source.is_text for source in stored)
        self._most_rows = _MOST_BYTES // (8 * max(1, len(stored)))
        self._refusals = 0

    @property
    def has_views(self) -> bool:
        """True if texts and binaries are views."""
        return self._views

    @property
    def unit(self) -> tuple[int, int]:
        """The most bytes and the number of files that are read at once."""
        return (_TEXT_UNIT_BYTES if self._has_texts or self._needs_footers else _UNIT_BYTES), _UNIT_FILES

    def takes_unopened(self, task: ScanTask) -> bool:
        """Return True for a file whose footer is not needed: for types, to skip row groups, or to count its rows."""
        if self._refusals >= _REFUSALS or self._needs_footers or task.share is not None:
            return False
        reads_all = self._context.residual is None and task.deletion_vector is None
        return 0 < task.size <= (self.unit[0] if reads_all else _UNOPENED_BYTES)

    def decode_files(self, files: Sequence[DataFile]) -> Decoded | CannotDecode:
        """Decode whole files together. Polars opens them."""
        try:
            return self._decode_whole(files)
        except _FAILURES as error:
            self._refusals += 1
            return CannotDecode(_reason(error))

    def decode_row_groups(
        self, file: OpenedFile, groups: Sequence[int], first: int, selection: RowSelection, *, late: bool
    ) -> Decoded | CannotDecode:
        """Decode adjacent row groups of an opened file. With `late`, see `Decoder`."""
        metadata = file.parquet.metadata
        chunks = (metadata.row_group(g).column(leaf) for g in groups for leaf in file.layout.every)
        if not _FEWEST_BYTES <= sum(chunk.total_uncompressed_size for chunk in chunks) <= _MOST_BYTES:
            return CannotDecode(f"too few or too many bytes of '{file.path}' are read at once")
        sources = [source_in(file, i, plan, views=self._views) for i, plan in enumerate(self._context.columns)]
        known = [source for source in sources if source is not None]
        if len(known) < len(sources):
            return CannotDecode(f"'{file.path}' has columns whose values may differ in Polars")
        found: Decoded = []
        try:
            for rows in [[g] for g in groups] if late else [groups]:
                count = sum(metadata.row_group(g).num_rows for g in rows)
                found += self._decode_part(known, file, first, count, selection, late=late)
                first += count
        except _FAILURES as error:
            return CannotDecode(_reason(error))
        return found

    # ------------------------------------------------------------------------------------------------ whole files
    def _decode_whole(self, files: Sequence[DataFile]) -> Decoded:
        sources = self._unopened
        paths = [resolve_file(self._context.table_location, task.path) for task, _, _ in files]
        constants = [constants for _, constants, _ in files]
        selections = [selection for _, _, selection in files]
        is_uniform = all(selection.rows is None for selection in selections) and (
            not any(isinstance(source, Constant) for source in sources) or all(c == constants[0] for c in constants)
        )
        scan = _scan(paths, sources, with_path=not is_uniform)
        frame = scan.head(self._most_rows + 1).collect()
        if frame.height > self._most_rows:
            if len(files) == 1:
                raise _Declined(f"'{paths[0]}' has more rows than are decoded at once")
            half = len(files) // 2
            return [*self._decode_whole(files[:half]), *self._decode_whole(files[half:])]
        if frame.height < _CHUNK_ROWS * frame.n_chunks():
            frame = frame.rechunk()  # there is a chunk for each file
        if is_uniform:
            return self._batches(sources, frame, _Files(constants[:1]))
        lengths = _lengths(frame.drop_in_place(_PATH), paths)
        selected = _selected(selections, paths, lengths)
        numbers = np.repeat(np.arange(len(paths)), lengths)[selected]
        return self._batches(sources, _filtered(frame, selected), _Files(constants, numbers))

    # --------------------------------------------------------------------------------------- parts of opened files
    def _decode_part(
        self, sources: Sequence[Source], file: OpenedFile, first: int, rows: int, selection: RowSelection, *, late: bool
    ) -> Decoded:
        mask, files = selection.mask(first, rows), _Files([file.constants])

        def decode(some: Sequence[Source]) -> pl.DataFrame:
            scan = _scan([file.path], some)
            frame = (scan if rows == file.parquet.metadata.num_rows else scan.slice(first, rows)).collect()
            if frame.height != rows:
                raise _Declined(f"{frame.height} of {rows} rows of '{file.path}' were decoded")
            return frame if mask is None else _filtered(frame, mask)

        if not late:
            return self._batches(sources, decode(sources), files)
        asked = [sources[i] for i in self._asked]
        frame = decode(asked)
        passed = self._passed(sources, frame, files)
        if not passed.any():
            return []
        others = [source for source in sources if source not in asked]
        frame = pl.concat([_filtered(f, passed) for f in (frame, decode(others))], how="horizontal")
        return list(self._output_of(sources, frame, files))

    # ------------------------------------------------------------------------------------------- frames to batches
    def _batches(self, sources: Sequence[Source], frame: pl.DataFrame, files: _Files) -> Decoded:
        """Return the output of the rows for which the residual is true."""
        if self._context.residual is not None and frame.height:
            passed = self._passed(sources, frame, files)
            frame, files = _filtered(frame, passed), files.where(passed)
        return list(self._output_of(sources, frame, files))

    def _passed(self, sources: Sequence[Source], frame: pl.DataFrame, files: _Files) -> Mask:
        """Return for each row whether the residual is true."""
        assert self._context.residual is not None
        if not frame.height:
            return np.empty(0, np.bool_)
        names = [self._names[i] for i in self._asked]
        parts = []
        for start, batch in _arrow_batches(frame, [sources[i] for i in self._asked], views=False):
            arrays = [_array(sources[i], batch, files, start) for i in self._asked]
            known = pa.RecordBatch.from_arrays(arrays, names) if names else without_columns(batch.num_rows)
            parts.append(pc.fill_null(evaluate(self._context.residual, known), False))
        return np.concatenate([part.to_numpy(zero_copy_only=False) for part in parts])

    def _output_of(self, sources: Sequence[Source], frame: pl.DataFrame, files: _Files) -> Iterator[pa.RecordBatch]:
        chosen = [sources[i] for i in self._output]
        for start, batch in _arrow_batches(frame, chosen, views=self._views):
            arrays = [_array(source, batch, files, start) for source in chosen]
            if not arrays:
                yield without_columns(batch.num_rows)
            elif self._schema is None:
                yield pa.RecordBatch.from_arrays(arrays, names=list(self._context.output))
            else:
                yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _scan(paths: list[str], sources: Iterable[Source], *, with_path: bool = False) -> pl.LazyFrame:
    """Return the columns of files of exactly these types; Polars refuses others, and files that lack a column."""
    if not all(path.startswith("/") for path in paths):
        raise _Declined("files are not local")
    return pl.scan_parquet(
        paths,
        schema={source.name: source.polars_type for source in sources if isinstance(source, Stored)},
        missing_columns="raise",
        extra_columns="ignore",
        include_file_paths=_PATH if with_path else None,
        hive_partitioning=False,
        glob=False,
        credential_provider=None,
        cache=False,
    )


def _lengths(found: pl.Series, paths: Sequence[str]) -> list[int]:
    """Return the number of rows of each file, by the path of each row."""
    lengths = [0] * len(paths)
    numbers = {path: i for i, path in enumerate(paths)}
    at = -1
    for rows, path in found.rle().struct.unnest().iter_rows():
        number = numbers.get(path, -1)
        if number <= at or len(numbers) < len(paths):
            raise _Declined(f"rows of '{path}' are not where they belong")
        lengths[number], at = rows, number
    return lengths


def _selected(selections: Sequence[RowSelection], paths: Sequence[str], lengths: Sequence[int]) -> Mask:
    """Return for each row of some files whether to read it."""
    masks = []
    for selection, path, rows in zip(selections, paths, lengths, strict=True):
        if selection.rows is not None:
            check_rows(selection.rows, rows, path)
        mask = selection.mask(0, rows)
        masks.append(np.ones(rows, np.bool_) if mask is None else mask)
    return np.concatenate(masks)


def _filtered(frame: pl.DataFrame, mask: Mask) -> pl.DataFrame:
    if mask.all():
        return frame
    chosen = pl.Series(mask)
    return pl.DataFrame(
        [column.filter(chosen) for column in frame.get_columns()]
    )  # without a query, which takes longer


def _arrow_batches(
    frame: pl.DataFrame, sources: Iterable[Source], *, views: bool
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the decoded columns among some sources as batches, with the number of their first row."""
    names = list(dict.fromkeys(source.name for source in sources if isinstance(source, Stored)))
    if not names:
        yield 0, without_columns(frame.height)
        return
    level = pl.CompatLevel.newest() if views else pl.CompatLevel.oldest()
    chosen = frame if frame.columns == names else pl.DataFrame([frame.get_column(name) for name in names])
    table = chosen.to_arrow(compat_level=level)
    most = max(1, min(_BATCH_ROWS, _BATCH_BYTES * table.num_rows // max(1, table.nbytes)))
    start = 0
    for batch in table.to_batches(max_chunksize=None if views else most):
        yield start, batch
        start += batch.num_rows


def _array(source: Source, batch: pa.RecordBatch, files: _Files, start: int) -> pa.Array:
    """Return a column of the table. Raises pa.ArrowInvalid for a value that does not fit."""
    match source:
        case Nulls(data_type):
            return pa.nulls(batch.num_rows, data_type)
        case Constant(physical_name):
            return files.values(physical_name, start, batch.num_rows)
        case Stored(name, file_type, _, convert):
            array = batch.column(name)
            if pt.is_large_string(array.type) or pt.is_large_binary(array.type):
                return array.cast(file_type)
            if array.type != file_type and not pt.is_string_view(array.type) and not pt.is_binary_view(array.type):
                raise pa.ArrowTypeError(f"Polars gave {array.type} instead of {file_type}")
            return convert(array)


def _reason(error: BaseException) -> str:
    return f"Polars cannot: {str(error).partition(chr(10))[0]}"
