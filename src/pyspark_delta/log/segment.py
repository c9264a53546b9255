"""The log segment of a version: the checkpoint, compactions and commits that together make its state.

It consists of the newest complete checkpoint not after the version and every later commit (C017, C023, C024); a gap is
an error. A log compaction may replace the commits that it covers (C098).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pyspark_delta.errors import CorruptLogError, TableNotFoundError, VersionNotFoundError
from pyspark_delta.log.last_checkpoint import read_last_checkpoint
from pyspark_delta.log.listing import Checkpoint, LogListing, extend, first_gap, list_back, list_log, log_location
from pyspark_delta.log.named_files import checkpoint_to, later_commits, lists_everything, take_checksum
from pyspark_delta.log.names import CommitName, parse_name
from pyspark_delta.storage import FileStatus, ObjectStore
from pyspark_delta.storage.paths import file_name

_LONGEST_TAIL = 200  # commits that an updated segment may have before it switches to a newer checkpoint


class CommitFile(NamedTuple):
    """One commit of a segment; a tuple for speed, like `FileStatus`."""

    version: int
    file: FileStatus


@dataclass(frozen=True, slots=True)
class Compaction:
    """A log compaction that covers the commits `start` to `end`."""

    start: int
    end: int
    file: FileStatus


@dataclass(frozen=True, slots=True)
class LogSegment:
    """The files one version is read from; commits in ascending order, gapless from the checkpoint to `end_version`.

    `last_commit` is the file of the commit of `end_version`, also with a checkpoint of this version; None if unknown.
    """

    table_location: str
    end_version: int
    checkpoint: Checkpoint | None
    commits: tuple[CommitFile, ...]
    compactions: tuple[Compaction, ...] = ()
    checksum: FileStatus | None = None
    older_checkpoints: tuple[Checkpoint, ...] = ()
    last_commit: FileStatus | None = None

    @property
    def checkpoint_version(self) -> int | None:
        """The version of the checkpoint, None without one."""
        return None if self.checkpoint is None else self.checkpoint.version

    def replay_files(self) -> tuple[CommitFile | Compaction, ...]:
        """The files to replay after the checkpoint, ascending: each commit once, compacted if that saves files."""
        if not self.compactions:
            return self.commits
        widest: dict[int, Compaction] = {}
        for compaction in self.compactions:
            best = widest.get(compaction.start)
            if best is None or compaction.end > best.end:
                widest[compaction.start] = compaction
        files: list[CommitFile | Compaction] = []
        covered = -1
        for commit in self.commits:
            if commit.version <= covered:
                continue
            compaction_here = widest.get(commit.version)
            files.append(compaction_here or commit)
            covered = compaction_here.end if compaction_here else commit.version
        return tuple(files)


def load_segment(
    store: ObjectStore,
    table_location: str,
    version: int | None = None,
    *,
    log_tail: Iterable[FileStatus] = (),
    max_version: int | None = None,
) -> LogSegment:
    """Return the segment of `version`, or of the latest version.

    `log_tail` and `max_version` come from a catalog: commits that are not published yet, and the newest version that it
    has ratified. Raises TableNotFoundError, VersionNotFoundError, CorruptLogError.
    """
    if version is not None and max_version is not None and version > max_version:
        raise VersionNotFoundError(version, earliest_version(store, table_location), max_version, table_location)
    last = version if version is not None else max_version
    tail = tuple(log_tail)

    def assembled(listing: LogListing) -> LogSegment:
        _check_ratified(listing, table_location, None if version is not None else max_version)
        return segment_of(listing, store, table_location, version)

    hint = read_last_checkpoint(store, table_location)
    if hint is not None and (last is None or hint.version <= last):
        listing = list_log(store, table_location, hint.version, last)
        extend(listing, tail, last)
        if any(c.version >= hint.version for c in listing.checkpoints()):
            return assembled(listing)
    listing = list_log(store, table_location, 0, last) if last is None else list_back(store, table_location, last)
    extend(listing, tail, last)
    return assembled(listing)


def published_segment(store: ObjectStore, table_location: str, version: int) -> LogSegment:
    """Return the segment of a published version, from the checkpoint of the hint if that is faster than a listing.

    Raises the errors of `load_segment`.
    """
    hint = read_last_checkpoint(store, table_location) if lists_everything(table_location) else None
    listing = None if hint is None else checkpoint_to(store, table_location, hint, version)
    if listing is None:
        return load_segment(store, table_location, version)
    return segment_of(listing, store, table_location, version)


def list_whole(
    store: ObjectStore, table_location: str, *, log_tail: Iterable[FileStatus] = (), max_version: int | None = None
) -> LogListing:
    """List the complete log, from which `segment_of` makes the segments of any number of versions.

    `log_tail` and `max_version` as in `load_segment`. Raises CorruptLogError.
    """
    listing = list_log(store, table_location, 0, max_version)
    extend(listing, log_tail, max_version)
    _check_ratified(listing, table_location, max_version)
    return listing


def _check_ratified(listing: LogListing, table_location: str, ratified: int | None) -> None:
    """Check that the log leads to the newest version that a catalog has ratified."""
    latest = listing.latest_version
    if ratified is not None and latest is not None and latest < ratified:
        missing = f"{log_location(table_location)}/{CommitName(latest + 1)}"
        raise CorruptLogError(
            f"The catalog says that version {ratified} of '{table_location}' is the latest, but only versions up to "
            f"{latest} exist: '{missing}' is missing. Restore the file.",
            path=missing,
            error_class="DELTA_VERSIONS_NOT_CONTIGUOUS",
            version=latest + 1,
        )


def segment_of(listing: LogListing, store: ObjectStore, table_location: str, version: int | None = None) -> LogSegment:
    """Return the segment of `version` (None: the latest); the listing includes a checkpoint or the first commit."""
    latest = listing.latest_version
    if latest is None:
        # The listing may have stopped before the first remaining version.
        everything = list_log(store, table_location) if version is not None else listing
        newest = everything.latest_version
        if newest is None or version is None:
            raise _nothing_found(store, table_location, everything)
        raise VersionNotFoundError(version, earliest_version(store, table_location), newest, table_location)
    if version is not None and version > latest:
        raise VersionNotFoundError(version, earliest_version(store, table_location), latest, table_location)
    end = latest if version is None else version
    checkpoints = [c for c in listing.checkpoints() if c.version <= end]
    checkpoint = checkpoints[0] if checkpoints else None
    segment = assemble(listing, table_location, end, checkpoint, tuple(checkpoints[1:]))
    _check_contiguous(segment, listing, store, version)
    return segment


def assemble(
    listing: LogListing, table_location: str, end: int, checkpoint: Checkpoint | None, older: tuple[Checkpoint, ...]
) -> LogSegment:
    """Return the segment of version `end` from a checkpoint, or the first commit, and the listed files after it."""
    start = 0 if checkpoint is None else checkpoint.version + 1
    return LogSegment(
        table_location=table_location,
        end_version=end,
        checkpoint=checkpoint,
        commits=tuple(CommitFile(v, listing.commits[v]) for v in sorted(listing.commits) if start <= v <= end),
        compactions=tuple(
            Compaction(name.start, name.end, file)
            for name, file in sorted(listing.compactions.items(), key=lambda item: (item[0].start, item[0].end))
            if start <= name.start and name.end <= end
        ),
        checksum=listing.checksums.get(end),
        older_checkpoints=older,
        last_commit=listing.commits.get(end),
    )


def later_segment(
    store: ObjectStore, segment: LogSegment, *, log_tail: tuple[FileStatus, ...] = (), max_version: int | None = None
) -> LogSegment | None:
    """Return the segment of the latest version, from a listing that begins at the version of `segment`.

    Returns `segment` itself if nothing is newer. Returns None if the table must be reopened: the version is missing,
    was written again, or its successors are incomplete.
    """
    if max_version is not None and max_version < segment.end_version:
        return None  # the catalog has fewer versions than before: it was restored from a backup
    listing = _listed_since(store, segment, log_tail, max_version)
    latest = listing.latest_version
    if latest is None or latest < segment.end_version or _rewritten(segment, listing):
        return None
    if latest == segment.end_version:
        return segment
    checkpoint, commits = segment.checkpoint, listing.commits
    newer = [c for c in listing.checkpoints() if c.version > _before(segment)]
    if newer and _is_long(segment, latest):
        checkpoint = newer[0]
    start = -1 if checkpoint is None else checkpoint.version
    if not all(version in commits for version in range(max(start, segment.end_version) + 1, latest + 1)):
        return None
    known = (commit for commit in segment.commits if commit.version > start and commit.version not in commits)
    found = (Compaction(name.start, name.end, file) for name, file in listing.compactions.items() if name.end <= latest)
    return LogSegment(
        table_location=segment.table_location,
        end_version=latest,
        checkpoint=checkpoint,
        commits=(*known, *(CommitFile(v, commits[v]) for v in sorted(commits) if start < v <= latest)),
        compactions=tuple(c for c in (*segment.compactions, *found) if c.start > start),
        checksum=listing.checksums.get(latest),
        last_commit=commits.get(latest),
    )


def _listed_since(
    store: ObjectStore, segment: LogSegment, log_tail: tuple[FileStatus, ...], max_version: int | None
) -> LogListing:
    """Return the files from the version of a segment on, or from a newer checkpoint that it should switch to."""
    first = segment.end_version
    listing = _enough(segment, log_tail, max_version)
    if listing is None and lists_everything(segment.table_location):
        if _is_long(segment, first) and (newer := _newer_checkpoint(store, segment)) is not None:
            first = min(first, newer)
        else:
            listing = _named_since(store, segment, log_tail, max_version)
    if listing is None:
        listing = list_log(store, segment.table_location, first, max_version)
        extend(listing, log_tail, max_version)
    return listing


def _named_since(
    store: ObjectStore, segment: LogSegment, log_tail: tuple[FileStatus, ...], max_version: int | None
) -> LogListing | None:
    """Return the same without a listing, if the latest version is close; compactions are left out."""
    location, listing = segment.table_location, LogListing()
    extend(listing, log_tail, max_version)
    later = later_commits(store, location, segment.end_version, max_version, known=listing.commits)
    if later is None:
        return None
    listing.commits.update(later)
    take_checksum(listing, store, location, max(listing.commits))
    return listing


def _newer_checkpoint(store: ObjectStore, segment: LogSegment) -> int | None:
    hint = read_last_checkpoint(store, segment.table_location)
    return hint.version if hint is not None and hint.version > _before(segment) else None


def _before(segment: LogSegment) -> int:
    """Return the version of the checkpoint, -1 without one."""
    return -1 if segment.checkpoint is None else segment.checkpoint.version


def _is_long(segment: LogSegment, latest: int) -> bool:
    """True if many commits follow the checkpoint, so that a newer one is preferred."""
    return latest - max(_before(segment), 0) > _LONGEST_TAIL


def _enough(segment: LogSegment, log_tail: tuple[FileStatus, ...], max_version: int | None) -> LogListing | None:
    """Return the result of a listing from the answer of a catalog, if it is sufficient (C463); None if not."""
    if max_version is None or not segment.commits or _is_long(segment, max_version):
        return None
    listing = LogListing(commits={segment.end_version: segment.commits[-1].file})
    extend(listing, log_tail, max_version)
    new = range(segment.end_version + 1, max_version + 1)
    return listing if all(version in listing.commits for version in new) else None


def _rewritten(segment: LogSegment, listing: LogListing) -> bool:
    """True if the commit file of the segment's version was replaced: the table was recreated."""
    known = segment.last_commit
    return known is not None and was_replaced(known, listing.commits.get(segment.end_version))


def was_replaced(known: FileStatus, found: FileStatus | None) -> bool:
    """True if the file of a commit is missing or was written again, so that the table was perhaps created again. A
    staged commit that was published since is the same commit.
    """
    if is_staged(known):
        return found is None
    return found is None or (found != known and not is_staged(found))


def is_staged(file: FileStatus) -> bool:
    """True for the file of a commit that is in the directory of staged commits."""
    name = parse_name(file_name(file.path))
    return isinstance(name, CommitName) and name.uuid is not None


def earliest_version(store: ObjectStore, table_location: str) -> int:
    """Return the oldest version that can be read: 0, or the oldest with a checkpoint and all commits after it.

    Returns 0 for a log in which nothing can be read.
    """
    listing = list_log(store, table_location)
    if 0 in listing.commits:
        return 0
    checkpoints = listing.checkpoints()
    return checkpoints[-1].version if checkpoints else min(listing.commits, default=0)


def _check_contiguous(segment: LogSegment, listing: LogListing, store: ObjectStore, requested: int | None) -> None:
    versions = [c.version for c in segment.commits]
    first = 0 if segment.checkpoint is None else segment.checkpoint.version + 1
    missing = first_gap(frozenset(versions), first, segment.end_version)
    if missing is None:
        return
    location = log_location(segment.table_location)
    if segment.checkpoint is None and (not versions or versions[0] > 0):
        if requested is not None and (later := list_log(store, segment.table_location).checkpoints()):
            newest = list_log(store, segment.table_location).latest_version or requested
            raise VersionNotFoundError(requested, later[-1].version, newest, segment.table_location)
        start = versions[0] if versions else segment.end_version
        raise CorruptLogError(
            f"The log '{location}' begins at version {start}, and no complete checkpoint covers the versions before: "
            "its oldest files were deleted. Restore them, or a checkpoint.",
            path=f"{location}/{CommitName(0)}",
            error_class="DELTA_TRUNCATED_TRANSACTION_LOG",
            version=0,
        )
    present = {*versions, segment.end_version}
    after = min((v for v in present if v > missing), default=missing)
    raise CorruptLogError(
        f"The versions in '{location}' are not contiguous: version {missing} is missing before version {after}. "
        f"The file {CommitName(missing)} is missing. Restore it.",
        path=f"{location}/{CommitName(missing)}",
        error_class="DELTA_VERSIONS_NOT_CONTIGUOUS",
        version=missing,
    )


def _nothing_found(store: ObjectStore, table_location: str, listing: LogListing) -> Exception:
    if listing.checkpoint_files:
        name, file = next(iter(listing.checkpoint_files.items()))
        return CorruptLogError(
            f"The log '{log_location(table_location)}' has only an incomplete checkpoint of version {name.version}: "
            "parts are missing. Restore them.",
            path=file.path,
            error_class="DELTA_MISSING_PART_FILES",
        )
    return TableNotFoundError(table_location)
