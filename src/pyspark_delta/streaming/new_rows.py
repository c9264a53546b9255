"""Streams of new rows: commits that rewrite files return only the rows that they inserted, or inserted and updated.

Three things tell which rows are new: the change data files of a commit, row tracking, and deletion vectors, which
replace rows without copying others. Offsets are those of a stream of rows. A commit that changes rows is in one batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import DEFAULT_ROW_COMMIT_VERSION, PATH, SELECTS_ROWS, SIZE
from pyspark_delta.actions.model import CommitInfo
from pyspark_delta.changes.commits import FileActions
from pyspark_delta.changes.configuration_ranges import ConfigurationRange, Declared
from pyspark_delta.changes.feed_columns import CHANGE_TYPE, DELETE, INSERT, UPDATED
from pyspark_delta.changes.files import RANGE, change_sources, changed_files, with_constants
from pyspark_delta.errors import ChangedRowsError
from pyspark_delta.expressions.tree import Column, Expression, In, IsNull, Literal
from pyspark_delta.features import Feature, is_active
from pyspark_delta.log.commits import read_commits
from pyspark_delta.log.segment import CommitFile
from pyspark_delta.protocol.properties import MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID
from pyspark_delta.scan.file_source import file_source
from pyspark_delta.schema.types import LONG, STRING, StructField, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import ObjectStore
from pyspark_delta.streaming.admission import Sizes
from pyspark_delta.streaming.commits import StreamCommit
from pyspark_delta.streaming.configurations import Configurations
from pyspark_delta.streaming.contents import BatchFiles, InitialPiece, Piece, without_excluded
from pyspark_delta.streaming.feed_commits import load_changes
from pyspark_delta.streaming.options import NewRows, StreamOptions
from pyspark_delta.streaming.rows import RowContents

_COPIED = ("numCopiedRows", "numTargetRowsCopied")  # in the metrics of UPDATE and DELETE, and of MERGE
_KINDS = {NewRows.INSERTS: (INSERT,), NewRows.UPSERTS: (INSERT, UPDATED)}
_FRESH = {NewRows.INSERTS: MATERIALIZED_ROW_ID, NewRows.UPSERTS: MATERIALIZED_ROW_COMMIT_VERSION}


@dataclass(frozen=True, slots=True)
class NewRowsCommit:
    """One commit. `changes` are the actions that tell its changes, if it removes files.

    `found` keeps the files with new rows once they are known.
    """

    rows: StreamCommit
    changes: FileActions | None
    found: list[list[BatchFiles]] = field(default_factory=list, compare=False, repr=False)

    @property
    def version(self) -> int:
        """The version."""
        return self.rows.version

    @property
    def declared(self) -> Declared:
        """The protocol and the metadata that it changes."""
        return self.rows.declared


class NewRowContents:
    """The new rows of a table, with the schema of `start`."""

    def __init__(self, start: Snapshot, options: StreamOptions, kind: NewRows) -> None:
        """Raises InvalidPredicateError for a condition of the options."""
        self._start = start
        self._options = options
        self._kind = kind
        self._rows = RowContents(start, options)
        self._source = file_source(start)
        self._configurations = Configurations(start)

    @property
    def schema(self) -> StructType:
        """The logical schema of the rows."""
        return self._start.schema

    @property
    def where(self) -> Expression | None:
        """A condition on the rows by which files are skipped, except those that recorded changes."""
        return self._rows.where

    def load(self, store: ObjectStore, files: Sequence[CommitFile]) -> list[NewRowsCommit]:
        """Read some commits. Raises CorruptLogError."""
        texts = list(read_commits(store, files))
        commits = self._rows.parse(texts)
        changing = [number for number, commit in enumerate(commits) if commit.removes]
        loaded = load_changes(
            store, [files[n] for n in changing], [texts[n] for n in changing], self._start.partition_names
        )
        changes = {commit.version: commit.actions for commit in loaded}
        return [NewRowsCommit(commit, changes.get(commit.version)) for commit in commits]

    def sizes(self, commit: NewRowsCommit) -> Sizes:
        """Return the files of a commit. Raises the errors of `checks.check_configuration`, DeletionVectorError, and
        ChangedRowsError if the commit does not tell which rows are new.
        """
        self._configurations.of(commit.declared)  # it follows commits without opening the table for each
        if commit.changes is None:
            return self._rows.sizes(commit.rows)
        sizes = [part.files[SIZE.name].combine_chunks() for part in self._new_files(commit)]
        return Sizes(pa.concat_arrays(sizes) if sizes else pa.array([], pa.int64()), together=True)

    def batch(self, initial: InitialPiece | None, pieces: Sequence[Piece[NewRowsCommit]]) -> list[BatchFiles]:
        """Return the files of a batch: first those that are new as a whole. Raises the errors of `sizes`."""
        plain = [Piece(p.commit.rows, p.first, p.end) for p in pieces if p.commit.changes is None]
        [whole] = self._rows.batch(initial, plain)
        parts = [part for p in pieces if p.commit.changes is not None for part in self._new_files(p.commit)]
        exclude = self._options.exclude
        return [replace(one, files=without_excluded(one.files, exclude)) for one in _joined([whole, *parts])]

    def _new_files(self, commit: NewRowsCommit) -> list[BatchFiles]:
        if not commit.found:
            commit.found.append(list(self._read(commit)))
        return commit.found[0]

    def _read(self, commit: NewRowsCommit) -> Iterator[BatchFiles]:
        """Yield the files with new rows of a commit that changes rows."""
        actions = commit.changes
        if actions is None or self._rows.skips(commit.rows):
            return
        ranges = (ConfigurationRange(0, self._start.configuration),)  # the checks allow no other columns
        changed = changed_files(actions, ranges, self._start)
        kinds, selects = changed[CHANGE_TYPE.name], pc.fill_null(changed[SELECTS_ROWS.name], False)
        inserted = pc.fill_null(pc.equal(kinds, INSERT), False)
        added = changed.filter(pc.and_not(inserted, selects))
        if added.num_rows:
            removes = pc.any(pc.and_not(pc.equal(kinds, DELETE), selects)).as_py()
            copies = bool(removes) and not _says_no_copies(commit.rows.info)
            yield self._added(commit, added["path"].combine_chunks(), copies=copies)
        # Change data files, and files whose vectors lost marks, with rows that came back.
        recorded = changed.filter(pc.or_(kinds.is_null(), pc.and_(inserted, selects)))
        if recorded.num_rows:
            recorded = with_constants(recorded, ranges, {commit.version: 0}).drop_columns([RANGE])
            for source, of_kind in change_sources(self._source, recorded):
                yield BatchFiles(source, of_kind, self._recorded_kinds if source.stored_too else None)

    def _added(self, commit: NewRowsCommit, paths: pa.Array, *, copies: bool) -> BatchFiles:
        """Return the files that a commit added. `copies` is True if it may have copied rows from others to them."""
        files = self._rows.files_of(commit.rows)
        files = files.filter(pc.is_in(files[PATH.name], value_set=paths))
        configuration = self._configurations.of(commit.declared)
        if is_active(configuration, Feature.CHANGE_DATA_FEED):  # it would have recorded other changes
            return BatchFiles(self._source, files)
        if not copies and self._kind is NewRows.UPSERTS:
            return BatchFiles(self._source, files)
        versions = files[DEFAULT_ROW_COMMIT_VERSION.name]
        # A file that was restored is older than the commit, and its rows may have been in the table before.
        is_restored = not pc.all(pc.equal(versions, commit.version)).as_py()
        is_tracked = is_active(configuration, Feature.ROW_TRACKING) and not is_restored
        name = _FRESH[self._kind].of(configuration.properties) if is_tracked else None
        if name is None:
            raise _not_told(commit.rows, self._kind, configuration.location)
        stored = StructField(name, LONG)
        return BatchFiles(replace(self._source, sometimes_stored=(stored,)), files, IsNull(Column((name,), LONG)))

    @property
    def _recorded_kinds(self) -> Expression:
        kinds = tuple(Literal(kind, STRING) for kind in _KINDS[self._kind])
        return In(Column((CHANGE_TYPE.name,), STRING), kinds)


def _says_no_copies(info: CommitInfo | None) -> bool:
    """True if a commit removed files all of whose rows it changed, by its own metrics."""
    metrics = None if info is None else info.values.get("operationMetrics")
    return isinstance(metrics, Mapping) and any(metrics.get(name) == "0" for name in _COPIED)


def _joined(parts: Sequence[BatchFiles]) -> Iterator[BatchFiles]:
    """Yield the files of several commits that are read in the same way together."""
    alike: dict[object, list[BatchFiles]] = {}
    for part in parts:
        source = part.source
        alike.setdefault((source.in_files_too, source.constants, part.only), []).append(part)
    for same in alike.values():
        yield replace(same[0], files=pa.concat_tables([part.files for part in same]))


def _not_told(commit: StreamCommit, kind: NewRows, location: str) -> ChangedRowsError:
    shown = f" ({commit.operation})" if commit.operation else ""
    what = "new" if kind is NewRows.UPSERTS else "inserted, and which updated"
    return ChangedRowsError(
        f"Version {commit.version} of '{location}'{shown} rewrote rows, and does not tell which of them are {what}. To "
        "tell so in later versions, set the table property delta.enableRowTracking or delta.enableChangeDataFeed to "
        "true. To go on after this version, set the option skipCommitsWhere to "
        f'"version = {commit.version}", and its rows are not returned.',
        error_class="DELTA_SOURCE_TABLE_IGNORE_CHANGES",
        version=commit.version,
        operation=commit.operation,
        location=location,
    )
