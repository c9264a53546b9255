"""Repair a catalog that lacks published commits of a table, for example after a restore from a backup.

Only ratified commits are published, so published commits after the catalog's latest version were ratified once and then
lost. They are proposed to the catalog again, version by version, with all its usual checks. An interrupted repair can
be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_delta.catalog.contract import LogTail
from pyspark_delta.catalog.log_tail import published_path, staged_path
from pyspark_delta.catalog.managed_table import ManagedTable
from pyspark_delta.commit.catalog import CatalogCommitter
from pyspark_delta.commit.contents import CommitContents
from pyspark_delta.commit.contract import CommitRequest, Committed, Rejected, Transient, Unknown, VersionTaken
from pyspark_delta.errors import PublishedMismatchError
from pyspark_delta.log.history import in_commit_timestamp
from pyspark_delta.log.listing import list_log
from pyspark_delta.log.names import CommitName, parse_name
from pyspark_delta.log.provenance import commit_info, transaction_id
from pyspark_delta.protocol.configuration import managed_names
from pyspark_delta.storage import ObjectStore
from pyspark_delta.storage.paths import file_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """The findings of a repair, and whether anything was changed.

    `catalog_version` is the latest version in the catalog before the repair, `published_version` the newest published
    one. `undecided` are the names of staged commits of versions after both: it is unknown whether one of them was
    ratified.
    """

    catalog_version: int
    published_version: int
    undecided: tuple[str, ...] = ()
    applied: bool = False

    @property
    def forgotten(self) -> range:
        """The published versions that the catalog lacked."""
        return range(self.catalog_version + 1, self.published_version + 1)


def repair_table(table: ManagedTable, store: ObjectStore, *, apply: bool = False) -> Repair:
    """Compare the catalog's versions of a table with the published ones; with `apply`, restore the missing ones.

    Raises PublishedMismatchError, before anything is changed, if the two contradict each other: if another commit is
    published in place of a ratified one, if published versions have a gap, or if one of them is not a commit of a
    managed table; and if another writer commits at the same time. CatalogError, StorageError.
    """
    tail = table.log_tail()
    published = _published(table, store, tail)
    _check_ratified(table, store, tail, published)
    newest = max([tail.latest_version, *published])
    _check_forgotten(table, store, tail.latest_version, newest, published)
    found = Repair(
        catalog_version=tail.latest_version,
        published_version=max(published, default=tail.latest_version),
        undecided=_staged_after(table, store, newest),
        applied=apply and newest > tail.latest_version,
    )
    if found.applied:
        _take_in(table, store, found.forgotten)
    return found


def _published(table: ManagedTable, store: ObjectStore, tail: LogTail) -> frozenset[int]:
    """Return the published versions, from the first unpublished or the latest version of the catalog on."""
    first = min([tail.latest_version, *(commit.version for commit in tail.commits)])
    return frozenset(list_log(store, table.location, first).commits)


def _check_ratified(table: ManagedTable, store: ObjectStore, tail: LogTail, published: frozenset[int]) -> None:
    """Check that ratified commits equal the published ones, as far as they are published."""
    for commit in tail.commits:
        path = published_path(table.location, commit.version)
        if commit.version not in published:
            if max(published, default=-1) > commit.version:
                raise _contradiction(
                    table,
                    commit.version,
                    f"version {commit.version}, which the catalog has ratified, is not published, but a later version "
                    f"is. Publish the ratified commit as '{path}', unless the log was cleaned up, and repair again.",
                )
        elif store.read(path) != table.read(store, commit):
            raise _contradiction(
                table,
                commit.version,
                f"'{path}' is not the commit that the catalog has ratified as version {commit.version}: both may have "
                "been reported to their writers as committed. Decide which one to keep, replace the other with it, and "
                "repair again.",
            )


def _check_forgotten(
    table: ManagedTable, store: ObjectStore, latest: int, newest: int, published: frozenset[int]
) -> None:
    """Check that the lost commits are consecutive commits of a managed table."""
    before = _timestamp(table, store, latest) if latest in published else -1
    for version in range(latest + 1, newest + 1):
        path = published_path(table.location, version)
        if version not in published:
            raise _contradiction(
                table,
                version,
                f"version {newest} is published, but '{path}' is missing: the log was cleaned up, or the file was "
                "removed. Restore the file, or a newer backup of the catalog, and repair again.",
            )
        contents = CommitContents.parse(version, store.read(path))
        if contents.timestamp <= before:
            raise _contradiction(
                table,
                version,
                f"the in-commit timestamp {contents.timestamp} of '{path}' is not after {before}, that of the previous "
                "version. The file was written without the catalog: move it away, and repair again.",
            )
        if contents.protocol is not None and not managed_names(contents.protocol):
            raise _contradiction(
                table,
                version,
                f"from '{path}' on the table is no longer managed by a catalog. Drop it from the catalog and "
                "register it.",
            )
        before = contents.timestamp


def _timestamp(table: ManagedTable, store: ObjectStore, version: int) -> int:
    path = published_path(table.location, version)
    return in_commit_timestamp(commit_info(store.read(path)), path)


def _staged_after(table: ManagedTable, store: ObjectStore, newest: int) -> tuple[str, ...]:
    """Return the staged commits of versions that are not known to be ratified."""
    first = staged_path(table.location, str(CommitName(newest + 1)).removesuffix(".json"))
    names = (parse_name(file_name(file.path)) for file in store.list_from(first))
    return tuple(str(name) for name in names if isinstance(name, CommitName) and name.uuid is not None)


def _take_in(table: ManagedTable, store: ObjectStore, versions: range) -> None:
    """Propose published commits again, unchanged; publishing then finds their files."""
    for version in versions:
        content = store.read(published_path(table.location, version))
        request = CommitRequest(
            table_location=table.location,
            version=version,
            content=content,
            transaction_id=transaction_id(content) or "",
        )
        match CatalogCommitter(table, store).commit(request):
            case Committed(_, other) if other is None:
                pass
            case Committed() | VersionTaken():
                raise _contradiction(
                    table,
                    version,
                    f"the catalog has ratified another commit as version {version} during the repair. Stop the "
                    "writers, and compare both commits.",
                )
            case Rejected(error) | Transient(error) | Unknown(error):
                raise error
    table.publish(store)


def _contradiction(table: ManagedTable, version: int, reason: str) -> PublishedMismatchError:
    return PublishedMismatchError(
        f"The catalog cannot be repaired from the published commits of {table.info.name}: {reason}",
        version=version,
        table=str(table.info.name),
    )
