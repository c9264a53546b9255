"""A catalog's log tail as commit files for reading. The catalog itself holds the inline commits (C444, C464)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark_delta.catalog.contract import CommitKind, LogTail, RatifiedCommit
from pyspark_delta.errors import CatalogError
from pyspark_delta.log.names import LOG_DIRECTORY, STAGED_DIRECTORY, CommitName, parse_name
from pyspark_delta.storage import FileStatus
from pyspark_delta.storage.paths import join

_INLINE = uuid.UUID("6f6e6c69-6e65-5f63-8f6d-6d6974000000")  # the UUID namespace for the names of inline commits


@dataclass(frozen=True, slots=True)
class TailFiles:
    """The newest ratified version, and the commit files to read in place of published ones.

    `contents` holds the inline commits by their paths in `files`; these files do not exist.
    """

    latest_version: int
    files: tuple[FileStatus, ...] = ()
    contents: Mapping[str, bytes] = field(default_factory=dict, hash=False, repr=False)


def tail_files(location: str, tail: LogTail) -> TailFiles:
    """Return the log tail of the table at a location.

    Raises CatalogError for an inconsistent response: a gap, an end before the latest version, or a file name that leads
    to another directory.
    """
    check_tail(location, tail)
    files, contents = [], {}
    for commit in tail.commits:
        if commit.kind is CommitKind.PUBLISHED:
            continue  # a listing finds it
        path = commit_path(location, commit)
        size = commit.size
        if commit.content is not None:
            contents[path], size = commit.content, len(commit.content)
        files.append(FileStatus(path, size, commit.modification_time or commit.timestamp))
    return TailFiles(tail.latest_version, tuple(files), contents)


def check_tail(location: str, tail: LogTail) -> None:
    """Check that the commits of a whole tail follow one another up to the latest version. Raises CatalogError."""
    versions = [commit.version for commit in tail.commits]
    if versions and not leads_to(versions, tail.latest_version):
        raise CatalogError(
            f"The catalog's response for '{location}' is inconsistent: the latest version is {tail.latest_version}, "
            f"but the commits {_spelled(versions)} do not lead to it without a gap. Check the catalog.",
            location=location,
        )


def leads_to(versions: Sequence[int], latest: int) -> bool:
    """Return True if versions are consecutive up to the latest one; the time depends on their count alone."""
    return versions[-1] == latest and list(versions) == list(range(versions[0], versions[0] + len(versions)))


def commit_path(location: str, commit: RatifiedCommit) -> str:
    """Return the path of a ratified commit. Raises CatalogError if its file name is not valid for its version."""
    match commit.kind:
        case CommitKind.PUBLISHED:
            return published_path(location, commit.version)
        case CommitKind.INLINE:
            return staged_path(location, str(CommitName(commit.version, _inline_uuid(commit))))
        case CommitKind.STAGED:
            name = parse_name(commit.file_name or "")
            if not isinstance(name, CommitName) or name.uuid is None or name.version != commit.version:
                raise CatalogError(
                    f"The catalog names '{commit.file_name}' as the commit file of version {commit.version} of "
                    f"'{location}', which is not the name of a staged commit of the table. Nothing is read.",
                    location=location,
                )
            return staged_path(location, commit.file_name or "")


def staged_path(location: str, name: str) -> str:
    """Return the path of a file among the staged commits of a table."""
    return join(location, LOG_DIRECTORY, STAGED_DIRECTORY, name)


def published_path(location: str, version: int) -> str:
    """Return the path of the published commit of a version."""
    return join(location, LOG_DIRECTORY, str(CommitName(version)))


def _inline_uuid(commit: RatifiedCommit) -> str:
    return str(uuid.uuid5(_INLINE, f"{commit.version} {commit.timestamp} {commit.transaction_id}"))


def _spelled(versions: Iterable[int]) -> str:
    return ", ".join(map(str, versions))
