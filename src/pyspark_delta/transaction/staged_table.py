"""The table as a transaction shows it before its commit: its definition, and snapshots with what is staged."""

from __future__ import annotations

from dataclasses import replace

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.protocol.state import TableState
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.finish import encode, finish, unfinished


class StagedTable:
    """A table with the changes of a draft. Without a snapshot, it only has a definition."""

    def __init__(self, base: TableState, snapshot: Snapshot | None, draft: CommitDraft) -> None:
        self._base, self._snapshot, self._draft = base, snapshot, draft
        self._rows: tuple[CommitDraft, Snapshot] | None = None  # the row snapshot of a draft

    @property
    def configuration(self) -> TableConfiguration:
        """The table configuration, with the changes of the transaction."""
        before, draft = self._base.configuration, self._draft
        protocol = draft.protocol or (before.protocol if before else None)
        metadata = draft.metadata or (before.metadata if before else None)
        assert protocol is not None
        assert metadata is not None
        if before is not None and draft.protocol is None and draft.metadata is None:
            return before
        return TableConfiguration(protocol, metadata, self._base.location)

    @property
    def changed_snapshot(self) -> Snapshot:
        """The version that the transaction is based on, with its changes of protocol, metadata and domains.

        The files are those of the version. Raises InvalidOperationError without a snapshot.
        """
        snapshot, draft = self._required_snapshot("read"), self._draft
        if not (draft.protocol or draft.metadata or draft.domains):
            return snapshot
        domains = {**snapshot.domains(), **{domain.domain: domain for domain in draft.domains}}
        live = {name: domain for name, domain in domains.items() if not domain.removed}
        return snapshot.with_configuration(self.configuration, live)

    @property
    def staged_snapshot(self) -> Snapshot:
        """The table as the commit would leave it now. Raises InvalidOperationError without a snapshot."""
        if not self._draft.has_files:
            return self.changed_snapshot
        return self._after(finish(self._draft, self._base))

    @property
    def row_snapshot(self) -> Snapshot:
        """The table as the commit would leave it now, for operations that change or remove its rows.

        It lacks what only the commit decides, such as the row ids of new files: an operation that copies rows would
        store them, and another commit may get the same ids. Raises InvalidOperationError without a snapshot.
        """
        draft = self._draft
        if not draft.has_files:
            return self.changed_snapshot
        if self._rows is None or self._rows[0] is not draft:
            self._rows = draft, self._after(unfinished(draft, self._base))
        return self._rows[1]

    def preview(self, draft: CommitDraft) -> Snapshot:
        """Return the table as one part of the transaction would leave it, to read the changes of this part.

        Raises InvalidOperationError without a snapshot.
        """
        own = self._draft
        alone = replace(
            draft,
            protocol=draft.protocol or own.protocol,
            metadata=draft.metadata or own.metadata,
            domains=tuple({domain.domain: domain for domain in (*own.domains, *draft.domains)}.values()),
        )
        return self._after(finish(alone, self._base))

    def _after(self, commit: ReadyCommit) -> Snapshot:
        return self._required_snapshot("read").with_commit(encode(commit), commit.configuration)

    def _required_snapshot(self, what: str) -> Snapshot:
        if self._snapshot is None:
            raise InvalidOperationError(f"The transaction began without a snapshot, so there is nothing to {what}.")
        return self._snapshot
