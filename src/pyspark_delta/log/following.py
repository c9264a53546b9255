"""Follow a log: the commits after a known version, for readers that keep nothing of what came before."""

from __future__ import annotations

from pyspark_delta.log.listing import LogListing, extend, list_log
from pyspark_delta.log.named_files import commit_status, later_commits, lists_everything
from pyspark_delta.log.segment import CommitFile, was_replaced
from pyspark_delta.storage import FileStatus, ObjectStore


def commits_after(
    store: ObjectStore,
    table_location: str,
    last: CommitFile,
    *,
    log_tail: tuple[FileStatus, ...] = (),
    max_version: int | None = None,
) -> list[CommitFile] | None:
    """Return the commits after `last`, in order. Makes at most one listing, and none if a catalog names them all.

    `log_tail` and `max_version` come from a catalog, as in `load_segment`. Returns None if the table must be opened
    again: the last commit is missing or was replaced, or its successors are not contiguous.
    """
    version = last.version
    if max_version is not None and max_version < version:
        return None  # the catalog has fewer versions than before: it was restored from a backup
    listing = LogListing()
    extend(listing, log_tail, max_version)
    named = max_version is not None and all(v in listing.commits for v in range(version + 1, max_version + 1))
    if not named:
        found = None
        if lists_everything(table_location):
            found = later_commits(store, table_location, version, max_version, known=listing.commits)
        if found is None:
            found = list_log(store, table_location, version, max_version).commits
        listing.commits = {**found, **listing.commits}
        if was_replaced(last.file, listing.commits.get(version)):
            return None
    later = sorted(v for v in listing.commits if v > version)
    if later and later[-1] - version != len(later):
        return None
    return [CommitFile(v, listing.commits[v]) for v in later]


def find_commits(store: ObjectStore, table_location: str, first: int, last: int, few: int) -> dict[int, FileStatus]:
    """Return the published commits from `first` to `last`; from a local directory only the next `few`.

    A local directory can only be listed completely, so its commits are looked up by name, until one is missing.
    """
    if not lists_everything(table_location):
        return list_log(store, table_location, first, last).commits
    found: dict[int, FileStatus] = {}
    for version in range(first, min(last, first + few - 1) + 1):
        file = commit_status(store, table_location, version)
        if file is None:
            break
        found[version] = file
    return found
