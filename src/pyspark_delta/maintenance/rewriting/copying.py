"""Rewriting a bin without decoding its large row groups: they are copied, and the rows of small files are encoded.

Rows keep their order. A file with a few deleted rows keeps them, and its deletion vector moves with its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.parts import delete_written
from pyspark_delta.data.row_group_columns import AddedColumns, CountedColumn
from pyspark_delta.data.row_group_copy import AssembledFile, CopySource, read_footer
from pyspark_delta.data.row_group_rules import LARGE, CopyRules, LargeRowGroups, copy_rules
from pyspark_delta.data.writer import FileLayout, WrittenFile, written_files
from pyspark_delta.deletion_vectors.bitmap import to_indexes
from pyspark_delta.errors import DataFileError, StorageError
from pyspark_delta.features import Feature, is_active
from pyspark_delta.logs import logger
from pyspark_delta.maintenance.rewriting.bins import Bin
from pyspark_delta.maintenance.rewriting.candidates import ALONE, RECORDS, STATS, deleted_rows
from pyspark_delta.maintenance.rewriting.origins import KeptOrder, Positions, read_vectors
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting, as_added, labelled, rewrite_in_order, stored_rows
from pyspark_delta.maintenance.rewriting.rewritten import RewrittenBin
from pyspark_delta.parquet.schema import meaning
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import (
    ENABLE_ICEBERG_COMPAT_V1,
    ENABLE_ICEBERG_COMPAT_V2,
    ENABLE_ICEBERG_COMPAT_V3,
    PARQUET_COMPRESSION,
)
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import resolve_file

_KEPT_SHARE = 0.05  # of deleted rows in a file that keeps its deletion vector

_log = logger(__name__)

Sources = Mapping[int, CopySource]
"""The files of a bin that are copied, by their numbers."""


@dataclass(frozen=True)
class RowGroupCopying:
    """A writer of bins that copies row groups from some size on, where encoding them would change nothing."""

    large: LargeRowGroups = LARGE

    def __call__(self, rewriting: Rewriting, source: Bin, check: Callable[[], None]) -> RewrittenBin:
        """Write the rows of a bin to new files. Raises as `rewrite_in_order`."""
        copied = _copied(rewriting, source, self.large)
        if copied:
            try:
                return _Assembly(rewriting, source, copied, check).run()
            except DataFileError as error:
                _log.debug("Encoding the rows of bin %d: %s", source.number, error.message)
        return rewrite_in_order(rewriting, source, check)


# ----------------------------------------------------------------------------------------------------- which files
def _copied(rewriting: Rewriting, source: Bin, large: LargeRowGroups) -> Sources:
    """Return the files of a bin whose row groups are copied."""
    files = source.files
    if STATS not in files.column_names:
        return {}
    numbers = np.flatnonzero(np.asarray(_may_be_copied(files, rewriting.configuration)))
    if not len(numbers):
        return {}
    rules, found = _Rules.of(rewriting, large), {}
    for number in numbers.tolist():
        one = _copy_source(rewriting, files.slice(number, 1), rules)
        if one is not None:
            found[number] = one
    return _alike(found, rules.usual, files.num_rows)


def _may_be_copied(files: pa.Table, configuration: TableConfiguration) -> pa.Array:
    """Return which files have statistics and no deleted rows, or so few that the vector is worth keeping."""
    known = pc.is_valid(files[STATS])
    whole = pc.is_null(files["deletion_vector"])
    if is_active(configuration, Feature.DELETION_VECTORS):
        few = pc.less_equal(pc.cast(deleted_rows(files), pa.float64()), pc.multiply(files[RECORDS], _KEPT_SHARE))
        whole = pc.or_(whole, pc.and_(few, pc.invert(files[ALONE])))
    return pc.and_(known, whole)


def _copy_source(rewriting: Rewriting, file: pa.Table, rules: _Rules) -> CopySource | None:
    """Return a file as a source, None if it is not copied."""
    snapshot = rewriting.snapshot
    location = resolve_file(snapshot.location, file["path"][0].as_py())
    try:
        footer = read_footer(location, file["size"][0].as_py(), snapshot.storage_options)
    except DataFileError as error:
        _log.debug("%s", error.message)  # Arrow decides if the file can be read
        return None
    source = CopySource(location, footer, file[STATS][0].as_py(), snapshot.storage_options)
    if footer.num_rows != file[RECORDS][0].as_py():
        reason: str | None = "its number of rows is not that in the log"
    elif (reason := rules.usual.reason(footer)) is None:
        return source
    elif rules.without_ids is not None and rules.without_ids.reason(footer) is None:
        added = _row_ids(rewriting, file)
        if added is not None:
            return replace(source, added=added)
    _log.debug("The row groups of %s are not copied: %s", location, reason)
    return None


def _row_ids(rewriting: Rewriting, file: pa.Table) -> AddedColumns | None:
    """Return the row ids and commit versions of a file without stored ones (C323, C326); None if it has none."""
    first = [file[name][0].as_py() for name in ("base_row_id", "default_row_commit_version")]
    known = list(zip(rewriting.row_id_columns, first, (True, False), strict=False))
    if any(value is None for _, value, _ in known):
        return None
    return AddedColumns.of(rewriting.write, [CountedColumn(*one) for one in known])


def _alike(sources: Sources, rules: CopyRules, files: int) -> Sources:
    """Return the sources that can be in one file: of the usual schema, or all files of a bin if they are alike."""
    meanings = {number: meaning(one.schema) for number, one in sources.items()}
    if len(sources) == files and len(set(meanings.values())) == 1:
        return sources
    return {number: one for number, one in sources.items() if meanings[number] == rules.schema}


@dataclass(frozen=True)
class _Rules:
    """The rules of files as they are written now, and of files that lack only the row ids; None without row ids."""

    usual: CopyRules
    without_ids: CopyRules | None

    @classmethod
    def of(cls, rewriting: Rewriting, large: LargeRowGroups) -> _Rules:
        properties = rewriting.configuration.properties
        is_iceberg = any(
            enabled.of(properties)
            for enabled in (ENABLE_ICEBERG_COMPAT_V1, ENABLE_ICEBERG_COMPAT_V2, ENABLE_ICEBERG_COMPAT_V3)
        )
        rules = partial(
            copy_rules,
            compression=rewriting.files.compression or PARQUET_COMPRESSION.of(properties),
            allows_int96=not is_iceberg,
            large=large,
        )
        ids = rewriting.row_id_columns
        return cls(rules(rewriting.write, never_null=ids), rules(rewriting.columns) if ids else None)


# --------------------------------------------------------------------------------------------------------- writing
@dataclass
class _Assembly:
    """The work on one bin: files are made of copied row groups and of encoded rows, in the order of the bin."""

    rewriting: Rewriting
    source: Bin
    copied: Sources
    check: Callable[[], None]
    written: list[WrittenFile] = field(default_factory=list)
    starts: dict[int, int] = field(default_factory=dict)  # where the rows of a source begin
    rows: int = 0

    def run(self) -> RewrittenBin:
        files = self._files()
        try:
            for file in files:
                file.end()
                self.written.append(file.publish())
            return self._result()
        except BaseException:
            files.close()
            delete_written(self.rewriting.write, self.written)
            raise

    def _files(self) -> Generator[AssembledFile]:
        """Yield the new files, each with all its rows. After an error, the last one is discarded."""
        context = self.rewriting.write_context(self.source)
        layout, file, target = FileLayout(context), None, context.target_file_size
        try:
            for add in self._pieces():
                if file is None:
                    file = AssembledFile(context, layout, self._partition(), self.source.number, len(self.written))
                add(file)
                if target is not None and file.size >= target:
                    yield file
                    file = None
            if file is not None:
                yield file
                file = None
        finally:
            if file is not None:
                file.discard()
                with suppress(StorageError):  # it may exist if publishing failed
                    store_for(file.location, context.storage_options).delete([file.location])

    def _pieces(self) -> Iterator[Callable[[AssembledFile], None]]:
        """Yield what adds the rows of the bin to a file, piece by piece."""
        for is_copied, run in groupby(range(self.source.files.num_rows), lambda number: number in self.copied):
            numbers = list(run)
            if not is_copied:
                yield from self._encoded(numbers)
                continue
            for number in numbers:
                self.check()
                self.starts[number] = self.rows
                self.rows += self.copied[number].footer.num_rows
                yield partial(AssembledFile.copy, source=self.copied[number])

    def _encoded(self, numbers: list[int]) -> Iterator[Callable[[AssembledFile], None]]:
        self.starts[numbers[0]] = self.rows
        some = replace(self.source, files=self.source.files.slice(numbers[0], len(numbers)))
        for batch in self.rewriting.batches(some, self.check):
            if batch.num_rows:
                self.rows += batch.num_rows
                yield partial(AssembledFile.add, batch=batch)

    def _partition(self) -> tuple[str | None, ...]:
        """Return the partition values of the bin, as its first file spells them."""
        values = dict(self.source.files["partition_values"][0].as_py() or ())
        return tuple(values.get(name) or None for name in self.rewriting.write.partition_names)

    # ------------------------------------------------------------------------------------------------------- result
    def _result(self) -> RewrittenBin:
        written = written_files(self.written)
        new_files = labelled(as_added(written, self.source, self.rewriting), self.source)
        rows = written["num_records"].to_numpy()
        result = RewrittenBin.of(self.source, new_files, rows, self._origins())
        places = self._deleted_places()
        if not len(places):
            return result
        kept = result.with_deletions(places, self.rewriting.state, 0.0)
        assert kept is not None
        return kept

    def _origins(self) -> KeptOrder | None:
        """Return where the rows went; None if the log contradicts the rows that were written."""
        snapshot, files = self.rewriting.snapshot, self.source.files
        counts = np.array(stored_rows(files, snapshot))
        encoded = np.array([number not in self.copied for number in range(files.num_rows)])
        counts[encoded] -= np.asarray(deleted_rows(files))[encoded]
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        if (counts < 0).any() or starts[-1] != self.rows or any(starts[n] != at for n, at in self.starts.items()):
            return None
        return KeptOrder(snapshot.location, snapshot.storage_options, files, starts, frozenset(self.copied))

    def _deleted_places(self) -> Positions:
        """Return the places of the deleted rows that copied files have."""
        snapshot = self.rewriting.snapshot
        numbers = [n for n in sorted(self.copied) if self.source.files["deletion_vector"][n].is_valid]
        vectors = read_vectors(
            snapshot.location, snapshot.storage_options, self.source.files.take(pa.array(numbers, pa.int64()))
        )
        places = [to_indexes(vector) + self.starts[n] for n, vector in zip(numbers, vectors, strict=True)]
        return np.concatenate([np.zeros(0, np.int64), *places]).astype(np.int64)
