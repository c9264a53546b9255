"""Write the checkpoint of a version: classic, or V2 with sidecars (Checkpoints; CKN, V2C, LCP).

Before the last file is written, every other file is complete or invisible to readers. A crash leaves the log unchanged,
plus files without references. `_last_checkpoint` is written last.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias, get_args

import pyarrow as pa

from pyspark_delta import progress
from pyspark_delta.actions.encode import action_to_json, encode_actions
from pyspark_delta.actions.model import (
    Action,
    CheckpointMetadata,
    DomainMetadata,
    SetTransaction,
    Sidecar,
)
from pyspark_delta.errors import ChecksumMismatchError, CorruptLogError, InvalidOperationError, InvalidOptionError
from pyspark_delta.features import Feature, is_active, is_supported
from pyspark_delta.features.support import check_known
from pyspark_delta.log.action_file import ActionFile
from pyspark_delta.log.checkpoint_layout import CheckpointLayout
from pyspark_delta.log.checkpoint_rows import add_rows, live_rows, tombstone_rows
from pyspark_delta.log.file_totals import FileTotals
from pyspark_delta.log.last_checkpoint import LastCheckpoint, write_last_checkpoint
from pyspark_delta.log.listing import log_location
from pyspark_delta.log.names import SIDECAR_DIRECTORY, ClassicCheckpointName, CommitName, UuidCheckpointName, parse_name
from pyspark_delta.log.parquet_part import ParquetPart, missing_part
from pyspark_delta.log.recovery import is_missing, other_segment
from pyspark_delta.log.replay import FileSources, LogReplay
from pyspark_delta.log.segment import LogSegment
from pyspark_delta.log.sidecar_reuse import reusable_sidecars
from pyspark_delta.logs import logger
from pyspark_delta.parallel import map_ordered, prefetch
from pyspark_delta.protocol.clustering import clustering_paths
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.expiry import unexpired
from pyspark_delta.protocol.properties import (
    DELETED_FILE_RETENTION,
    PARQUET_COMPRESSION,
)
from pyspark_delta.protocol.statistics import physical_partition_schema
from pyspark_delta.storage import FileStatus
from pyspark_delta.storage.paths import file_name, join

_log = logger(__name__)

SIDECAR_ACTIONS = 50_000  # actions in a full sidecar
LARGEST_JSON = 1 << 20  # bytes; readers parse a JSON top level completely, but read only the needed parts of Parquet

TopLevelFormat: TypeAlias = Literal["json", "parquet"]


@dataclass(frozen=True, slots=True)
class WrittenCheckpoint:
    """A checkpoint that was written: `files` are locations, sidecars included; `totals` counts the live files."""

    version: int
    kind: str
    files: tuple[str, ...]
    num_actions: int
    size_in_bytes: int
    totals: FileTotals
    reused_sidecars: int = 0


def write_checkpoint(
    replay: LogReplay,
    configuration: TableConfiguration,
    *,
    top_level: TopLevelFormat | None = None,
    now_ms: int | None = None,
    files: Iterable[pa.RecordBatch] | None = None,
) -> WrittenCheckpoint:
    """Write the checkpoint of the version of `replay`, of the kind that the table requires.

    `top_level` is the format of the top level of a V2 checkpoint (C047); by default JSON, and Parquet if it is large.
    `files` are all files of a first version, with the columns of `FILE_FIELDS`; then they are not read from the log.
    Memory does not grow with the number of files.

    Raises InvalidOperationError if the version is not published, UnsupportedFeatureError for a table with unknown
    features, ChecksumMismatchError if the version checksum counts other files, InvalidOptionError, CorruptLogError,
    StorageError; after an error none of its files is visible.
    """
    if top_level is not None:
        check_top_level(top_level)
    check_published(replay.segment)
    check_known(configuration, replay.segment.table_location)
    now = int(time.time() * 1000) if now_ms is None else now_ms
    segment = replay.segment
    try:
        return _Writing(replay, configuration, now, files).write(top_level)
    except CorruptLogError as error:
        # Another process may clean up the log at the same time.
        other = other_segment(replay.store, segment, error) if is_missing(error) else None
        if other is None:
            raise
        return _Writing(LogReplay(replay.store, other), configuration, now).write(top_level)


def check_top_level(name: str) -> TopLevelFormat:
    """Return the format, 'json' or 'parquet'. Raises InvalidOptionError for another name."""
    for known in get_args(TopLevelFormat):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise InvalidOptionError(
        f"The top level of a V2 checkpoint must be 'json' or 'parquet', found {name!r}.",
        option="topLevelFormat",
        value=name,
    )


def check_published(segment: LogSegment) -> None:
    """Check that the commit file of the version is in the log, which a checkpoint requires (C021).

    Raises InvalidOperationError.
    """
    if not segment.commits:
        return  # the version already has a checkpoint, which is rewritten
    name = parse_name(file_name(segment.commits[-1].file.path))
    if not isinstance(name, CommitName) or name.uuid is not None:
        raise InvalidOperationError(
            f"Version {segment.end_version} of '{segment.table_location}' is not published yet, so it cannot have a "
            "checkpoint. Publish it first.",
            version=segment.end_version,
        )


class _Writing:
    """One checkpoint while it is written."""

    def __init__(
        self,
        replay: LogReplay,
        configuration: TableConfiguration,
        now_ms: int,
        files: Iterable[pa.RecordBatch] | None = None,
    ) -> None:
        self._replay = replay
        self._known = files
        self._store = replay.store
        self._configuration = configuration
        self._now = now_ms
        self._start = time.perf_counter()
        domains = self._domains() if is_supported(configuration, Feature.CLUSTERING) else {}
        self._layout = CheckpointLayout.of(configuration, clustering_paths(domains))
        self._partition_names = tuple(f.name for f in physical_partition_schema(configuration))
        self._log = log_location(replay.segment.table_location)
        self._version = replay.segment.end_version
        self._compression = _compression(configuration)
        self._totals = FileTotals()
        self._tombstones = 0

    def write(self, top_level: TopLevelFormat | None) -> WrittenCheckpoint:
        """Write the checkpoint of the kind that the table requires."""
        if is_active(self._configuration, Feature.V2_CHECKPOINT):
            return self.v2(top_level)
        return self.classic()

    # ------------------------------------------------------------------------------------------------- classic
    def classic(self) -> WrittenCheckpoint:
        """Write one file by specification V1 (C027, C076). Racing writers replace each other's equal content (C036)."""
        actions = self._small_actions()
        sources = self._sources()
        schema = self._layout.schema()
        with self._file(join(self._log, str(ClassicCheckpointName(self._version))), schema) as file:
            file.write_mixed([action_to_json(a) for a in actions])
            checkpoint = None if sources is None else sources.checkpoint
            with self._live_ahead(sources, () if checkpoint is None else tuple(checkpoint.parts())) as live:
                for rows in self._shown(live):
                    file.write("add", rows)
            for rows in self._dead():
                file.write("remove", rows)
            self._check_counts()
        return self._announce("classic", (file.path,), file.rows, file.size)

    # ------------------------------------------------------------------------------------------------------ V2
    def v2(self, top_level: TopLevelFormat | None) -> WrittenCheckpoint:
        """Write a top level with a unique name, and file actions in sidecars (C065-C072)."""
        actions = self._small_actions()
        sources = self._sources()
        kept, renewed = ([], ()) if sources is None else reusable_sidecars(sources, self._layout, SIDECAR_ACTIONS)
        sidecars = [sidecar for sidecar, _ in kept]
        for _, totals in kept:
            self._totals = self._totals.combined(totals)
        number = sum(totals.num_files for _, totals in kept)
        with self._live_ahead(sources, renewed) as live:
            for kind, stream in (("add", self._shown(live)), ("remove", self._dead())):
                for block in _blocks(stream, SIDECAR_ACTIONS):
                    sidecars.append(self._sidecar(kind, block))
                    number += sum(map(len, block))
        self._check_counts()
        size = sum(sidecar.size_in_bytes for sidecar in sidecars)
        tags = {
            "sidecarNumActions": str(number),
            "sidecarSizeInBytes": str(size),
            "numOfAddFiles": str(self._totals.num_files),
        }
        top = [CheckpointMetadata(version=self._version, tags=tags), *actions, *sidecars]
        self._check_reused(sidecar for sidecar, _ in kept)
        found = self._top_level(top, top_level)
        files = (found.path, *(join(self._log, SIDECAR_DIRECTORY, sidecar.path) for sidecar in sidecars))
        v2 = {"path": file_name(found.path), "sizeInBytes": found.size, "modificationTime": found.modification_time}
        return self._announce("v2", files, len(top) + number, size + found.size, v2, len(kept))

    def _check_reused(self, kept: Iterable[Sidecar]) -> None:
        """Check that log cleanup did not delete reused sidecars while the others were written."""
        wanted = {sidecar.path for sidecar in kept}
        if not wanted:
            return
        directory = join(self._log, SIDECAR_DIRECTORY)
        missing = wanted.difference(file_name(file.path) for file in self._store.list_from(f"{directory}/"))
        if missing:
            raise missing_part(join(directory, min(missing)))

    def _top_level(self, actions: list[Action], wanted: TopLevelFormat | None) -> FileStatus:
        """Write the file that makes the checkpoint visible."""
        content = b"" if wanted == "parquet" else encode_actions(actions)
        chosen: TopLevelFormat = wanted or ("json" if len(content) <= LARGEST_JSON else "parquet")
        path = join(self._log, str(UuidCheckpointName(self._version, str(uuid.uuid4()), chosen)))
        if chosen == "json":
            self._store.write_if_absent(path, content)
            return self._store.status(path)
        with self._file(path, self._layout.top_level_schema()) as file:
            file.write_mixed([action_to_json(action) for action in actions])
        return file.status()

    def _sidecar(self, kind: str, block: list[pa.StructArray]) -> Sidecar:
        name = f"{uuid.uuid4()}.parquet"
        with self._file(join(self._log, SIDECAR_DIRECTORY, name), self._layout.sidecar_schema()) as file:
            for rows in block:
                file.write(kind, rows)
        found = file.status()
        return Sidecar(path=name, size_in_bytes=found.size, modification_time=found.modification_time)

    # ------------------------------------------------------------------------------------------------- content
    def _small_actions(self) -> list[Action]:
        """Return everything but file actions; expired transactions are dropped."""
        return [
            self._configuration.protocol,
            self._configuration.metadata,
            *unexpired(self._transactions(), self._configuration.properties, self._now).values(),
            *self._domains().values(),
        ]

    def _transactions(self) -> dict[str, SetTransaction]:
        replay = self._replay
        return replay.replayed_transactions() if self._known is None else replay.transactions()

    def _domains(self) -> dict[str, DomainMetadata]:
        """Return the domains. With known files, the checksum may tell: the text of the commit is long."""
        replay = self._replay
        return replay.replayed_domains() if self._known is None else replay.domains()

    def _sources(self) -> FileSources | None:
        return self._replay.sources() if self._known is None else None

    def _live_ahead(
        self, sources: FileSources | None, parts: tuple[ParquetPart, ...]
    ) -> closing[Generator[pa.StructArray]]:
        """Yield the live files, read ahead while others are written."""
        return closing(prefetch(self._live(sources, parts)))

    def _shown(self, live: Iterator[pa.StructArray]) -> Iterator[pa.StructArray]:
        """Yield the live files, and show the progress of writing them."""
        known = self._replay.checksum
        step = progress.begin("Write checkpoint", None if known is None else known.num_files, "files")
        return step.shown(live, len)

    def _live(self, sources: FileSources | None, parts: tuple[ParquetPart, ...]) -> Iterator[pa.StructArray]:
        if sources is None:
            found = map_ordered(lambda batch: add_rows(batch, self._layout), self._known or ())
        else:
            found = live_rows(self._replay, sources, self._layout, self._partition_names, parts)
        for rows in found:
            vectors = rows.field(rows.type.get_field_index("deletionVector"))
            cardinalities = None if vectors.null_count == len(vectors) else vectors.flatten()[4]
            self._totals = self._totals.plus(rows.field(rows.type.get_field_index("size")), cardinalities)
            yield rows

    def _dead(self) -> Iterator[pa.StructArray]:
        if self._known is not None:
            return
        retention = DELETED_FILE_RETENTION.of(self._configuration.properties) // timedelta(milliseconds=1)
        yield from tombstone_rows(self._replay, self._partition_names, self._now - retention)

    def _check_counts(self) -> None:
        """Check that the written files equal the counts of the version checksum; otherwise one of the two is wrong
        (C121).
        """
        checksum, totals = self._replay.checksum, self._totals
        if checksum is None:
            return
        found, expected = (totals.num_files, totals.size), (checksum.num_files, checksum.table_size_bytes)
        if found != expected:
            raise ChecksumMismatchError(
                f"No checkpoint of version {self._version} in '{self._log}' was written: the log has {found[0]} files "
                f"of {found[1]} bytes, but the version checksum says {expected[0]} of {expected[1]}. One of the two is "
                "damaged; delete the checksum file if the log is right.",
                path=self._log,
                version=self._version,
            )

    def _file(self, path: str, schema: pa.Schema) -> ActionFile:
        return ActionFile(self._store, path, schema, self._compression)

    def _announce(
        self,
        kind: str,
        files: tuple[str, ...],
        actions: int,
        size: int,
        v2: Mapping[str, Any] | None = None,
        reused: int = 0,
    ) -> WrittenCheckpoint:
        hint = LastCheckpoint(
            version=self._version, size=actions, size_in_bytes=size, num_of_add_files=self._totals.num_files
        )
        location = self._replay.segment.table_location
        write_last_checkpoint(self._store, location, hint, v2)
        text = "Wrote the %s checkpoint of version %d of %s: %d actions, %d bytes, %.3f s"
        _log.debug(text, kind, self._version, location, actions, size, time.perf_counter() - self._start)
        return WrittenCheckpoint(self._version, kind, files, actions, size, self._totals, reused)


def _blocks(rows: Iterator[pa.StructArray], limit: int) -> Iterator[list[pa.StructArray]]:
    """Yield lists of arrays with `limit` rows each, the last one with the rest."""
    block: list[pa.StructArray] = []
    number = 0
    for array in rows:
        while number + len(array) >= limit:
            head = limit - number
            yield [*block, array.slice(0, head)]
            array, block, number = array.slice(head), [], 0
        if len(array):
            block.append(array)
            number += len(array)
    if block:
        yield block


def _compression(configuration: TableConfiguration) -> str:
    codec = (PARQUET_COMPRESSION.of(configuration.properties) or "zstd").lower()
    return {"uncompressed": "none", "lz4_raw": "lz4"}.get(codec, codec)
