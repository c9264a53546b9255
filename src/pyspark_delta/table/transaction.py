"""`pyspark_delta.Transaction`: a transaction whose commit is followed by the auto compaction of the table."""

from __future__ import annotations

from pyspark_delta.maintenance.auto_compaction import compact_after
from pyspark_delta.protocol.state import TableState
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import latest_snapshot
from pyspark_delta.transaction.transaction import Transaction as CommittedTransaction


class Transaction(CommittedTransaction):
    __doc__ = CommittedTransaction.__doc__

    def commit(self) -> TableState:
        """Commit everything as one version and return the state of the table at it. If nothing changes, commit nothing.

        If the transaction added rows, the auto compaction of the table follows, if it is enabled. Raises the errors of
        `commit_draft`.
        """
        before, draft = self.version, self.draft
        state = super().commit()
        if draft.adds.num_rows and draft.data_change and state.version > before:

            def latest() -> Snapshot:
                return latest_snapshot(state.location, state.storage_options, catalog_table=state.catalog_table)

            compact_after(latest, state.version, state.configuration, engine_info=draft.engine_info)
        return state
