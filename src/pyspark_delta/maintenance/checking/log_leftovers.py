"""Files in a log that no reader needs, as checks report them and repairs delete them (L08, K05, K10, K13)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from pyspark_delta.log.cleanup import orphaned_sidecars
from pyspark_delta.log.listing import Checkpoint
from pyspark_delta.log.names import CheckpointName, CompactionName, MultiPartCheckpointName
from pyspark_delta.maintenance.checking.table_log import TableLog
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.storage import FileStatus
from pyspark_delta.storage.paths import file_name

DAY = 86_400_000  # ms


def unknown_files(log: TableLog) -> Iterator[FileStatus]:
    """Yield the files with names that the protocol does not define, and compactions that cover no range (L08)."""
    yield from log.unknown
    yield from (file for name, file in log.listing.compactions.items() if _covers_nothing(name))


def _covers_nothing(name: CompactionName) -> bool:
    return name.end <= name.start


def incomplete_parts(log: TableLog) -> Iterator[tuple[CheckpointName, FileStatus]]:
    """Yield the files of checkpoints that are empty, or parts of a checkpoint without the others (K05)."""
    complete = {name for checkpoint in log.checkpoints for name in _names(checkpoint)}
    for name, file in sorted(log.listing.checkpoint_files.items(), key=lambda item: item[1].path):
        if not file.size or (isinstance(name, MultiPartCheckpointName) and name not in complete):
            yield name, file


def _names(checkpoint: Checkpoint) -> Iterator[object]:
    name = checkpoint.name
    if not isinstance(name, MultiPartCheckpointName):
        yield name
        return
    for part in range(1, len(checkpoint.files) + 1):
        yield MultiPartCheckpointName(name.version, part, name.parts)


def unpublished_files(log: TableLog) -> Iterator[tuple[int, FileStatus]]:
    """Yield checkpoints and compactions of versions that a catalog has not published, with their versions (K13)."""
    if log.tail is None:
        return
    published = -1 if log.published is None else log.published
    for checkpoint in log.checkpoints:
        if checkpoint.version > published:
            yield from ((checkpoint.version, file) for file in checkpoint.files)
    for name, file in log.listing.compactions.items():
        if name.end > published:
            yield name.end, file


def temporary_files(log: TableLog, now: int) -> Iterator[FileStatus]:
    """Yield the temporary files of writers that ended more than a day ago (K10)."""
    for file in log.hidden:
        if file_name(file.path).endswith(".tmp") and file.modification_time < now - DAY:
            yield file


def loose_files(log: TableLog, now: int) -> Iterator[FileStatus]:
    """Yield temporary files and sidecars without a checkpoint, older than a day (K10).

    Raises CorruptLogError if some checkpoint cannot be read, before a sidecar is returned.
    """
    yield from orphaned_sidecars(log.store, log.location, now - DAY)
    yield from temporary_files(log, now)


def delete_found(log: TableLog, files: Iterable[FileStatus], before: int | None = None) -> frozenset[str]:
    """Delete files of a log that was listed just now, and return their paths.

    With `before`, in milliseconds since the epoch, younger files stay: a writer may not have finished them.
    """
    paths = [file.path for file in files if before is None or file.modification_time < before]
    if paths:
        log.store.delete(paths)
        clear_cache(log.location)
    return frozenset(paths)


Found = Callable[[TableLog, int], Iterable[FileStatus]]

FOUND: Mapping[str, Found] = {
    "L08": lambda log, _: unknown_files(log),
    "K05": lambda log, _: (file for _, file in incomplete_parts(log)),
    "K10": loose_files,
    "K13": lambda log, _: (file for _, file in unpublished_files(log)),
}
"""The files that the repair of a finding deletes, by its id."""
