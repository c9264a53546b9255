"""Repairs of files that repeat what the commits say: checkpoints, their hint, compactions, checksums."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from pyspark_delta.errors import CorruptLogError, DeltaError
from pyspark_delta.log.checkpoint_writer import write_checkpoint
from pyspark_delta.log.checkpoints import CheckpointReader
from pyspark_delta.log.last_checkpoint import LastCheckpoint, last_checkpoint_location, write_last_checkpoint
from pyspark_delta.log.listing import Checkpoint, first_gap, list_log, log_location
from pyspark_delta.log.names import MultiPartCheckpointName
from pyspark_delta.log.replay import LogReplay
from pyspark_delta.log.segment import assemble
from pyspark_delta.maintenance.checking.findings import Finding
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.storage import ObjectStore, store_for


def delete_files(location: str, files: Sequence[str], storage_options: Mapping[str, str]) -> bool:
    """Delete derived files of a log."""
    store_for(location, storage_options).delete(files)
    clear_cache(location)
    return bool(files)


def wrong_checkpoints(findings: Iterable[Finding]) -> frozenset[str]:
    """Return the files of checkpoints that must not be the beginning of a new one."""
    return frozenset(finding.file for finding in findings if finding.file is not None)


def write_sound_checkpoint(location: str, wrong: Collection[str], storage_options: Mapping[str, str]) -> bool:
    """Write a checkpoint of the newest version from the commits after the newest checkpoint that is not wrong.

    Raises CorruptLogError if the commits do not reach back to one.
    """
    store = store_for(location, storage_options)
    listing = list_log(store, location)
    newest = max(listing.commits, default=None)
    if newest is None:
        raise CorruptLogError(f"The log of '{location}' has no commits.", path=log_location(location))
    base = _base(store, location, [c for c in listing.checkpoints() if c.files[0].path not in wrong], newest)
    first = 0 if base is None else base.version + 1
    missing = first_gap(listing.commits, first, newest)
    if missing is not None:
        raise CorruptLogError(
            f"No checkpoint of '{location}' can be written, because version {missing} is missing. Restore it.",
            path=log_location(location),
            version=missing,
        )
    listing.compactions.clear()
    listing.checksums.clear()
    replay = LogReplay(store, assemble(listing, location, newest, base, ()))
    configuration = TableConfiguration(*replay.replayed_protocol_and_metadata(), location)
    write_checkpoint(replay, configuration)
    clear_cache(location)
    return True


def _base(store: ObjectStore, location: str, sound: Sequence[Checkpoint], newest: int) -> Checkpoint | None:
    """Return the newest checkpoint before a version that can be read."""
    for checkpoint in sound:
        if checkpoint.version < newest:
            try:
                CheckpointReader(store, location, checkpoint).open()
            except DeltaError:
                continue
            return checkpoint
    return None


def rewrite_hint(location: str, storage_options: Mapping[str, str]) -> bool:
    """Write the hint for the newest complete checkpoint; without one, only delete it."""
    store = store_for(location, storage_options)
    store.delete([last_checkpoint_location(location)])
    checkpoints = list_log(store, location).checkpoints()
    if checkpoints:
        newest = checkpoints[0]
        write_last_checkpoint(store, location, _hint(store, location, newest))
    clear_cache(location)
    return True


def _hint(store: ObjectStore, location: str, checkpoint: Checkpoint) -> LastCheckpoint:
    reader = CheckpointReader(store, location, checkpoint)
    reader.open()
    actions = sum(part.metadata.num_rows for part in reader.parts())
    if reader.text is not None:
        actions += sum(1 for line in reader.text.lines() if line.strip())
    parts = len(checkpoint.files) if isinstance(checkpoint.name, MultiPartCheckpointName) else None
    size = sum(part.file.size for part in reader.parts())
    return LastCheckpoint(checkpoint.version, size=actions, parts=parts, size_in_bytes=size)
