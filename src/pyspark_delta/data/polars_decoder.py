"""Decoding of data files by Polars, for top-level columns whose values are the same as those that PyArrow decodes.

Polars gets the exact type of every column, so it refuses a file with another one. The residual predicate is evaluated
as in `DataFileReader`, never by Polars. This module imports Polars; see `decoder_choice`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pyspark_delta.data.decoders import CannotDecode, DataFile, Decoded, OpenedFile
from pyspark_delta.data.polars_columns import Constant, Nulls, Source, Stored, source_in, source_unopened
from pyspark_delta.data.raw_rows import Mask, RowSelection, without_columns
from pyspark_delta.deletion_vectors import check_rows
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.scan.plan import ReadContext, ScanTask
from pyspark_delta.storage.paths import resolve_file

_UNOPENED_BYTES = 1 << 20  # files up to this size are always decoded together, without a look at their footers
_UNIT_BYTES = 64 << 20  # of files that are decoded at once; each call of Polars takes about a millisecond
_UNIT_FILES = 512
_SMALL_UNIT_BYTES = 16 << 20  # if files are opened one by one, or have texts
_FEWEST_BYTES = 128 << 10  # of columns, uncompressed: PyArrow decodes fewer bytes as fast
_MOST_BYTES = 128 << 20  # of columns, uncompressed, that are decoded at once; PyArrow decodes row groups in parts
_FEW_ROWS = 16_384
_BATCH_ROWS = 262_144
_BATCH_BYTES = 8 << 20
_REFUSALS = 2  # of groups of files after which files are opened first


class _Declined(Exception):
    """The rows are not decoded, for this reason."""


# A panic of Polars is no Exception.
_FAILURES = (_Declined, pl.exceptions.PolarsError, pl.exceptions.PanicException, pa.ArrowException, OSError)

Constants: TypeAlias = Mapping[str, pa.Scalar]


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
        reads_whole = self._context.residual is None and not self._needs_footers
        return (_UNIT_BYTES if reads_whole and not self._has_texts else _SMALL_UNIT_BYTES), _UNIT_FILES

    def takes_unopened(self, task: ScanTask) -> bool:
        """Return True for a file whose footer is not needed, for types or to skip row groups of large files."""
        if self._refusals >= _REFUSALS or self._needs_footers or task.share is not None:
            return False
        return 0 < task.size <= (self.unit[0] if self._context.residual is None else _UNOPENED_BYTES)

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
        runs = list(_runs(files, any(isinstance(source, Constant) for source in self._unopened)))
        limits = self._limits(runs)
        scans = []
        for run, limit in zip(runs, limits, strict=True):
            paths = [resolve_file(self._context.table_location, task.path) for task, _, _ in run]
            scans.append(_scan(paths, self._unopened).head(limit + 1))
        frames = pl.collect_all(scans)
        if any(frame.height > limit for frame, limit in zip(frames, limits, strict=True)):
            if len(files) == 1:
                raise _Declined(f"'{files[0][0].path}' has more rows than are decoded at once")
            half = len(files) // 2
            return [*self._decode_whole(files[:half]), *self._decode_whole(files[half:])]
        found: Decoded = []
        for run, frame in zip(runs, frames, strict=True):
            found += self._batches(self._unopened, self._selected(frame, run[0]), run[0][1])
        return found

    def _limits(self, runs: Sequence[Sequence[DataFile]]) -> list[int]:
        """Return the most rows of each run, by its share in the bytes of all, so that their sum is limited too."""
        sizes = [sum(task.size for task, _, _ in run) for run in runs]
        return [min(self._most_rows, _FEW_ROWS + 4 * self._most_rows * size // sum(sizes)) for size in sizes]

    def _selected(self, frame: pl.DataFrame, first: DataFile) -> pl.DataFrame:
        """Return the rows to read of a run, which is one file if that has a deletion vector."""
        task, _, selection = first
        if selection.rows is not None:
            check_rows(selection.rows, frame.height, resolve_file(self._context.table_location, task.path))
            mask = selection.mask(0, frame.height)
            return frame if mask is None else _filtered(frame, mask)
        return frame.rechunk() if frame.height < _FEW_ROWS * frame.n_chunks() else frame  # a chunk for each file

    # --------------------------------------------------------------------------------------- parts of opened files
    def _decode_part(
        self, sources: Sequence[Source], file: OpenedFile, first: int, rows: int, selection: RowSelection, *, late: bool
    ) -> Decoded:
        mask = selection.mask(first, rows)

        def decode(some: Sequence[Source]) -> pl.DataFrame:
            scan = _scan([file.path], some)
            frame = (scan if rows == file.parquet.metadata.num_rows else scan.slice(first, rows)).collect()
            if frame.height != rows:
                raise _Declined(f"{frame.height} of {rows} rows of '{file.path}' were decoded")
            return frame if mask is None else _filtered(frame, mask)

        if not late:
            return self._batches(sources, decode(sources), file.constants)
        asked = [sources[i] for i in self._asked]
        frame = decode(asked)
        passed = self._passed(sources, frame, file.constants)
        if not passed.any():
            return []
        others = [source for source in sources if source not in asked]
        frame = pl.concat([_filtered(f, passed) for f in (frame, decode(others))], how="horizontal")
        return list(self._output_of(sources, frame, file.constants))

    # ------------------------------------------------------------------------------------------- frames to batches
    def _batches(self, sources: Sequence[Source], frame: pl.DataFrame, constants: Constants) -> Decoded:
        """Return the output of the rows for which the residual is true."""
        if self._context.residual is not None and frame.height:
            frame = _filtered(frame, self._passed(sources, frame, constants))
        return list(self._output_of(sources, frame, constants))

    def _passed(self, sources: Sequence[Source], frame: pl.DataFrame, constants: Constants) -> Mask:
        """Return for each row whether the residual is true."""
        assert self._context.residual is not None
        if not frame.height:
            return np.empty(0, np.bool_)
        names = [self._names[i] for i in self._asked]
        parts = []
        for batch in _arrow_batches(frame, [sources[i] for i in self._asked], views=False):
            arrays = [_array(sources[i], batch, constants) for i in self._asked]
            known = pa.RecordBatch.from_arrays(arrays, names) if names else without_columns(batch.num_rows)
            parts.append(pc.fill_null(evaluate(self._context.residual, known), False))
        return np.concatenate([part.to_numpy(zero_copy_only=False) for part in parts])

    def _output_of(
        self, sources: Sequence[Source], frame: pl.DataFrame, constants: Constants
    ) -> Iterator[pa.RecordBatch]:
        if not frame.height:
            return
        chosen = [sources[i] for i in self._output]
        for batch in _arrow_batches(frame, chosen, views=self._views):
            arrays = [_array(source, batch, constants) for source in chosen]
            if not arrays:
                yield without_columns(batch.num_rows)
            elif self._schema is None:
                yield pa.RecordBatch.from_arrays(arrays, names=list(self._context.output))
            else:
                yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _scan(paths: list[str], sources: Iterable[Source]) -> pl.LazyFrame:
    """Return the columns of files of exactly these types; Polars refuses others, and files that lack a column."""
    if not all(path.startswith("/") for path in paths):
        raise _Declined("files are not local")
    return pl.scan_parquet(
        paths,
        schema={source.name: source.polars_type for source in sources if isinstance(source, Stored)},
        missing_columns="raise",
        extra_columns="ignore",
        hive_partitioning=False,
        glob=False,
        credential_provider=None,
        cache=False,
    )


def _runs(files: Sequence[DataFile], has_constants: bool) -> Iterator[list[DataFile]]:
    """Yield adjacent files that are decoded as one: with equal constants, and none with a deletion vector."""
    run: list[DataFile] = []
    for file in files:
        _, constants, selection = file
        if run and (
            selection.rows is not None or run[-1][2].rows is not None or (has_constants and constants != run[-1][1])
        ):
            yield run
            run = []
        run.append(file)
    yield run


def _filtered(frame: pl.DataFrame, mask: Mask) -> pl.DataFrame:
    if mask.all():
        return frame
    chosen = pl.Series(mask)
    return pl.DataFrame(
        [column.filter(chosen) for column in frame.get_columns()]
    )  # without a query, which takes longer


def _arrow_batches(frame: pl.DataFrame, sources: Iterable[Source], *, views: bool) -> Iterator[pa.RecordBatch]:
    """Yield the decoded columns among some sources as batches."""
    names = list(dict.fromkeys(source.name for source in sources if isinstance(source, Stored)))
    if not names:
        yield without_columns(frame.height)
        return
    level = pl.CompatLevel.newest() if views else pl.CompatLevel.oldest()
    chosen = frame if frame.columns == names else pl.DataFrame([frame.get_column(name) for name in names])
    table = chosen.to_arrow(compat_level=level)
    most = max(1, min(_BATCH_ROWS, _BATCH_BYTES * table.num_rows // max(1, table.nbytes)))
    yield from table.to_batches(max_chunksize=None if views else most)


def _array(source: Source, batch: pa.RecordBatch, constants: Constants) -> pa.Array:
    """Return a column of the table. Raises pa.ArrowInvalid for a value that does not fit."""
    match source:
        case Nulls(data_type):
            return pa.nulls(batch.num_rows, data_type)
        case Constant(physical_name):
            return pa.repeat(constants[physical_name], batch.num_rows)
        case Stored(name, file_type, _, convert):
            array = batch.column(name)
            if pt.is_large_string(array.type) or pt.is_large_binary(array.type):
                return array.cast(file_type)
            if array.type != file_type and not pt.is_string_view(array.type) and not pt.is_binary_view(array.type):
                raise pa.ArrowTypeError(f"Polars gave {array.type} instead of {file_type}")
            return convert(array)


def _reason(error: BaseException) -> str:
    return f"Polars cannot: {str(error).partition(chr(10))[0]}"
