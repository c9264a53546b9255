"""Changes to what a table declares that become part of the commit of a transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark_delta.ddl.alter import Alteration
from pyspark_delta.ddl.change import TableChange, draft_change
from pyspark_delta.ddl.properties import set_properties
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
class StagedAlteration(Alteration):
    """Makes changes in a transaction, one after another.

    `open_snapshot` returns the table as the transaction would leave it now; `stage` adds a change for it. Existing rows
    are checked at once, and those that the transaction has written. The commit then depends on them.
    """

    stage: Callable[[CommitDraft], object]

    def set_properties(self, properties: Mapping[str, object]) -> None:
        """Set table properties, as `Alteration.set_properties`.

        Raises InvalidOperationError for row tracking of a table with files, which takes several commits.
        """
        self._change(lambda snapshot: set_properties(snapshot.configuration, properties))

    def _commit(self, change: TableChange, snapshot: Snapshot) -> None:
        if change.row_check is not None:
            self.check_rows(snapshot, change.row_check)
        # The files of the version are counted once for all changes.
        keeps_files = snapshot.as_committed.num_files() > 0 or snapshot.num_files() > 0
        self.stage(draft_change(change, snapshot.configuration, keeps_files=keeps_files))
