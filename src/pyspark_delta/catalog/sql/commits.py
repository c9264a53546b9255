"""Ratification of commits in a database: versions are consecutive, and each is ratified once (C469).

The row of a table holds its latest version. One transaction advances this version, if it is still the previous one, and
inserts the row of the commit. The comparison makes versions consecutive; the primary key of the commits ensures that
each is ratified once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, case, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from pyspark_delta.catalog.contract import (
    CommitKind,
    LogTail,
    MetadataChange,
    Proposal,
    Ratification,
    RatifiedCommit,
    TableInfo,
)
from pyspark_delta.catalog.failures import storage_failures
from pyspark_delta.catalog.log_tail import published_path
from pyspark_delta.catalog.proposals import (
    INLINE_LIMIT,
    check_proposal,
    check_staged_file,
    is_same,
    refused,
)
from pyspark_delta.catalog.sql.part import CatalogPart
from pyspark_delta.catalog.sql.rows import (
    change_values,
    commit_of,
    commit_values,
    etag_of,
    metadata_number_of,
    select_tables,
    tail_of,
    unpublished,
)
from pyspark_delta.catalog.sql.tables import ACTIVE, commits, tables
from pyspark_delta.errors import (
    CatalogUnavailableError,
    FileNotFoundInStoreError,
    InvalidProposalError,
    RatificationConflictError,
    StaleMetadataError,
    TableReplacedError,
    TooManyUnpublishedError,
)
from pyspark_delta.log.provenance import transaction_id

_UNNOTED_DOMAINS = frozenset({"delta.rowTracking"})  # most commits change it; the etag ignores it
_LOOKS = 100


class Commits(CatalogPart):
    """The commits of tables that the catalog manages."""

    def ratify(self, table: TableInfo, proposal: Proposal) -> Ratification:
        """Make a proposal the commit of its version. Versions are consecutive, and each is ratified once (C469).

        The same proposal again (same file name or transaction id) is a replay, and changes nothing. Raises
        RatificationConflictError with the log tail if the version has another commit, StaleMetadataError if the etag
        has changed, TooManyUnpublishedError, TableReplacedError, InvalidProposalError, and CatalogUnavailableError if
        the outcome is unknown.
        """
        check_proposal(table, proposal)
        if proposal.content is not None and len(proposal.content) > INLINE_LIMIT:
            raise refused(
                table, proposal.version, f"an inline commit has at most {INLINE_LIMIT} bytes; stage a larger one"
            )
        with storage_failures():
            known = self._check_files(table, proposal)
        if isinstance(known, Ratification):
            return known
        commit = _commit_of(proposal)
        for _ in range(_LOOKS):
            done = self._database.change(partial(self._try, table=table, proposal=proposal, commit=commit, known=known))
            if done is not None:
                return done
            with storage_failures():
                known = self._check_all_published(table, proposal)
        raise CatalogUnavailableError(
            f"The catalog did not ratify version {proposal.version} of {table.name}: the table changed too often.",
            table=str(table.name),
        )

    def log_tail(self, table: TableInfo, start: int | None = None, end: int | None = None) -> LogTail:
        """Return the latest version, and the unpublished commits of a range (both ends included).

        Raises TableReplacedError if the table no longer exists.
        """
        return self._database.read(lambda connection: _tail(connection, table, start, end))

    def report_published(self, table: TableInfo, version: int) -> None:
        """Record that commits up to a version are published; forget the content of inline ones, and old commits.

        Raises InvalidProposalError if a commit is not ratified, or if its published file does not exist.
        """
        tail = self._database.read(lambda connection: _tail(connection, table, version, version))
        known = tail.published_version or 0
        if version > tail.latest_version:
            raise InvalidProposalError(
                f"Version {version} of {table.name} cannot be published: the catalog has ratified versions up to "
                f"{tail.latest_version}.",
                table=str(table.name),
                version=version,
            )
        if version <= known:
            return
        with storage_failures():
            self._check_published(table, known, version)

        def report(connection: Connection) -> None:
            further = and_(_is(table), tables.c.published_version < version, tables.c.latest_version >= version)
            connection.execute(update(tables).where(further).values(published_version=version))
            self._forget(connection, table, known, version)

        self._database.change(report)

    # ----------------------------------------------------------------------------------------------- one attempt
    def _try(
        self, connection: Connection, table: TableInfo, proposal: Proposal, commit: RatifiedCommit, known: int
    ) -> Ratification | None:
        """Try to ratify a proposal; return None if the comparison failed, but the table fits the proposal now."""
        if connection.execute(self._compare_and_set(table, proposal, known)).rowcount != 1:
            return self._explain(connection, table, proposal)
        values = commit_values(table.table_id, commit, self._settings.principal, self._settings.clock())
        try:
            connection.execute(insert(commits).values(**values))
        except IntegrityError:
            raise refused(
                table, proposal.version, "its file or its transaction id belongs to the commit of another version"
            ) from None
        if proposal.change is not None:
            self._mirror(connection, table, proposal.change)
        if proposal.published_version is not None and proposal.published_version > known:
            self._forget(connection, table, known, proposal.published_version)
        return Ratification(commit)

    def _compare_and_set(self, table: TableInfo, proposal: Proposal, known: int) -> Any:
        published = _published(proposal)
        conditions = [
            _is(table),
            tables.c.latest_version == proposal.version - 1,
            tables.c.latest_timestamp < proposal.timestamp,
            proposal.version - published <= self._settings.max_unpublished,
        ]
        if proposal.published_version is not None:
            conditions.append(tables.c.published_version >= known)
        if proposal.expected_etag is not None:
            conditions.append(tables.c.metadata_number == metadata_number_of(proposal.expected_etag))
        return (
            update(tables)
            .where(*conditions)
            .values(latest_version=proposal.version, latest_timestamp=proposal.timestamp, published_version=published)
        )

    def _explain(self, connection: Connection, table: TableInfo, proposal: Proposal) -> Ratification | None:
        """Return the replay of a proposal that did not fit, raise its error, or return None if it fits now."""
        row = _look(connection, table, proposal.version)
        if proposal.version <= row.latest_version:
            with storage_failures():
                replay = self._replay(table, proposal, row)
            if replay is not None:
                return replay
            raise RatificationConflictError(
                f"The catalog has ratified another commit as version {proposal.version} of {table.name}; the latest "
                f"version is {row.latest_version}.",
                version=proposal.version,
                tail=_tail(connection, table, None, None),
                table=str(table.name),
            )
        _raise_unfit(table, proposal, row, self._settings.max_unpublished)
        return None

    def _replay(self, table: TableInfo, proposal: Proposal, row: Row[Any]) -> Ratification | None:
        """Return the replay if the proposal is the commit of the version.

        If the commit is forgotten, its published file decides.
        """
        if row.commit_version is not None:
            commit = commit_of(row)
            return Ratification(commit, replayed=True) if is_same(commit, proposal) else None
        path = published_path(table.location, proposal.version)
        try:
            found = transaction_id(self.table_store(table.location).read(path))
        except FileNotFoundInStoreError:
            return None
        if not proposal.transaction_id or found != proposal.transaction_id:
            return None
        commit = RatifiedCommit(
            version=proposal.version,
            kind=CommitKind.PUBLISHED,
            timestamp=proposal.timestamp,
            transaction_id=found,
        )
        return Ratification(commit, replayed=True)

    def _mirror(self, connection: Connection, table: TableInfo, change: MetadataChange) -> None:
        """Store a commit's changes of protocol, metadata and domains. The caller has locked the row by its update."""
        known = connection.execute(select(tables.c.domains).where(_is(table))).scalar() if change.domains else None
        values = change_values(known, change)
        declared = change.protocol is not None or change.metadata is not None
        if declared or any(domain.domain not in _UNNOTED_DOMAINS for domain in change.domains):
            values |= {"metadata_number": tables.c.metadata_number + 1, "updated_ms": self._settings.clock()}
        if values:
            connection.execute(update(tables).where(_is(table)).values(**values))

    def _forget(self, connection: Connection, table: TableInfo, known: int, published: int) -> None:
        """Delete the content of newly published inline commits, and the rows of commits far behind."""
        newly = and_(
            commits.c.version > known, commits.c.version <= published, commits.c.kind == CommitKind.INLINE.value
        )
        mine = commits.c.table_id == table.table_id
        connection.execute(update(commits).where(mine, newly).values(kind=CommitKind.PUBLISHED.value, content=None))
        connection.execute(delete(commits).where(mine, commits.c.version < published - self._settings.kept_commits))

    # -------------------------------------------------------------------------------------------- looking at files
    def _check_files(self, table: TableInfo, proposal: Proposal) -> Ratification | int:
        """Check the files of a proposal; return the version up to which commits are assumed to be published.

        This is the version before the one that the proposal reports as published, because publishers report every
        version. If the assumption is wrong, the comparison fails, and then all files are checked. If the staged file
        is missing because the commit was already published, its replay is returned.
        """
        known = max((proposal.published_version or 0) - 1, 0)
        if proposal.published_version is not None:
            try:
                self._check_published(table, known, proposal.published_version)
            except InvalidProposalError:
                known = self._check_all_published(table, proposal)
        if proposal.file is not None and self._settings.verify_files:
            try:
                check_staged_file(table, self.table_store(table.location), proposal.version, proposal.file)
            except InvalidProposalError:
                replay = self._database.read(lambda connection: self._find_replay(connection, table, proposal))
                if replay is None:
                    raise
                return replay
        return known

    def _check_all_published(self, table: TableInfo, proposal: Proposal) -> int:
        """Check all files that a proposal reports as published; return the published version that the catalog knows."""
        known = self.log_tail(table, proposal.version, proposal.version).published_version or 0
        self._check_published(table, known, proposal.published_version or 0)
        return known

    def _find_replay(self, connection: Connection, table: TableInfo, proposal: Proposal) -> Ratification | None:
        row = _look(connection, table, proposal.version)
        return self._replay(table, proposal, row) if proposal.version <= row.latest_version else None

    def _check_published(self, table: TableInfo, known: int, version: int) -> None:
        if not self._settings.verify_files:
            return
        store = self.table_store(table.location)
        for number in range(known + 1, version + 1):
            path = published_path(table.location, number)
            try:
                store.status(path)
            except FileNotFoundInStoreError:
                raise InvalidProposalError(
                    f"Version {number} of {table.name} is not published: there is no '{path}'.",
                    table=str(table.name),
                    version=number,
                ) from None


def _published(proposal: Proposal) -> ColumnElement[int]:
    """Return the newest published version: the catalog's, or the proposal's if it is newer."""
    said = proposal.published_version
    column: ColumnElement[int] = tables.c.published_version
    return column if said is None else case((column < said, said), else_=column)


def _raise_unfit(table: TableInfo, proposal: Proposal, row: Row[Any], limit: int) -> None:
    """Raise the error of a proposal for a later version that does not fit the table; return if it fits."""
    if proposal.version > row.latest_version + 1:
        raise refused(
            table, proposal.version, f"the latest version is {row.latest_version}, and versions must be consecutive"
        )
    if proposal.expected_etag not in (None, etag_of(row.metadata_number)):
        raise StaleMetadataError(
            f"The metadata of {table.name} have changed since they were read. Read the table again.",
            table=str(table.name),
            found=etag_of(row.metadata_number),
        )
    if proposal.timestamp <= row.latest_timestamp:
        raise refused(
            table,
            proposal.version,
            f"its in-commit timestamp {proposal.timestamp} is not after {row.latest_timestamp}, that of the previous "
            "version",
        )
    published = max(row.published_version, proposal.published_version or 0)
    if proposal.version - published > limit:
        raise TooManyUnpublishedError(
            f"{proposal.version - published - 1} commits of {table.name} are not published, and the catalog keeps at "
            f"most {limit}. Publish them first.",
            table=str(table.name),
        )


def _tail(connection: Connection, table: TableInfo, start: int | None, end: int | None) -> LogTail:
    """Return the latest version, and the unpublished commits of a range."""
    return tail_of(_rows(connection, table, unpublished(start, end)))


def _look(connection: Connection, table: TableInfo, version: int) -> Row[Any]:
    """Return the row of a table with its commit of a version, if the catalog remembers the commit."""
    joined = and_(commits.c.table_id == tables.c.table_id, commits.c.version == version)
    return _rows(connection, table, joined)[0]


def _rows(connection: Connection, table: TableInfo, joined: ColumnElement[bool]) -> Sequence[Row[Any]]:
    managed = and_(tables.c.table_id == table.table_id, tables.c.managed)
    rows = connection.execute(select_tables(managed, joined)).all()
    if not rows:
        raise _replaced(table)
    return rows


def _is(table: TableInfo) -> ColumnElement[bool]:
    return and_(tables.c.table_id == table.table_id, tables.c.state == ACTIVE)


def _replaced(table: TableInfo) -> TableReplacedError:
    return TableReplacedError(
        f"The catalog no longer has the table {table.name} that was opened: it was dropped.", table=str(table.name)
    )


def _commit_of(proposal: Proposal) -> RatifiedCommit:
    identity = proposal.transaction_id or None
    if proposal.file is None:
        return RatifiedCommit(
            version=proposal.version,
            kind=CommitKind.INLINE,
            timestamp=proposal.timestamp,
            size=len(proposal.content or b""),
            content=proposal.content,
            transaction_id=identity,
        )
    return RatifiedCommit(
        version=proposal.version,
        kind=CommitKind.STAGED,
        timestamp=proposal.timestamp,
        file_name=proposal.file.name,
        size=proposal.file.size,
        modification_time=proposal.file.modification_time,
        transaction_id=identity,
    )
