"""Alternative files for the same version, if files of a log segment are missing or unreadable."""

from __future__ import annotations

import warnings

from pyspark_delta.errors import CorruptLogError, DeltaWarning, FileNotFoundInStoreError
from pyspark_delta.log.listing import first_gap, list_log, log_location
from pyspark_delta.log.segment import LogSegment, assemble, is_staged, load_segment
from pyspark_delta.storage import ObjectStore


def is_missing(error: CorruptLogError) -> bool:
    """True if a file of the log was not found, rather than damaged."""
    return error.error_class == "DELTA_MISSING_PART_FILES" or isinstance(error.__cause__, FileNotFoundInStoreError)


def other_segment(store: ObjectStore, segment: LogSegment, error: CorruptLogError) -> LogSegment | None:
    """Return another segment of the same version, after `error` was raised for a file of `segment`; None if there is
    none.

    Log cleanup may delete the files of a segment while a process keeps it, so for a missing file the log is listed
    again. Without an unreadable checkpoint, an older one or the first commit is used, with a DeltaWarning. Raises
    VersionNotFoundError if log cleanup has deleted files that the version needs.
    """
    if is_missing(error):
        return _listed_again(store, segment)
    checkpoint = segment.checkpoint
    if checkpoint is None or not (
        error.path in {file.path for file in checkpoint.files} or _is_sidecar(segment, error)
    ):
        return None
    older = _without_checkpoint(store, segment)
    if older is not None:
        warnings.warn(
            f"{error.message} Version {segment.end_version} was read without it, which takes longer.",
            DeltaWarning,
            stacklevel=2,
        )
    return older


def _listed_again(store: ObjectStore, segment: LogSegment) -> LogSegment | None:
    staged = [commit.file for commit in segment.commits if is_staged(commit.file)]
    try:
        found = load_segment(store, segment.table_location, segment.end_version, log_tail=staged)
    except CorruptLogError:
        return None  # the error of the missing file is more precise
    return None if found.checkpoint == segment.checkpoint and found.commits == segment.commits else found


def _is_sidecar(segment: LogSegment, error: CorruptLogError) -> bool:
    return error.path.startswith(f"{log_location(segment.table_location)}/_sidecars/")


def _without_checkpoint(store: ObjectStore, segment: LogSegment) -> LogSegment | None:
    """Return the same version from an older checkpoint, or from the first commit; None if the log does not allow it.

    Used if a checkpoint is unreadable.
    """
    if segment.checkpoint is None:
        return None
    broken = segment.checkpoint
    listing = list_log(store, segment.table_location, 0, segment.end_version)
    for commit in segment.commits:
        listing.commits[commit.version] = commit.file
    complete = listing.checkpoints()
    position = next((i for i, c in enumerate(complete) if c.files[0].path == broken.files[0].path), None)
    if position is None:
        return None
    rest = [c for c in complete[position + 1 :] if c.version <= segment.end_version]
    older = assemble(listing, segment.table_location, segment.end_version, rest[0] if rest else None, tuple(rest[1:]))
    first = 0 if older.checkpoint is None else older.checkpoint.version + 1
    have = {c.version for c in older.commits}
    return older if first_gap(have, first, segment.end_version) is None else None
