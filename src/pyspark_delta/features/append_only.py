"""appendOnly: rows may be added, never changed or removed (Append-only Tables; C375-C378)."""

from __future__ import annotations

from pyspark_delta.errors import AppendOnlyTableError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import APPEND_ONLY
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.protocol.state import TableState


class AppendOnly(TableFeature):
    name = "appendOnly"
    legacy_writer_version = 2
    rebase_safe_properties = (APPEND_ONLY.name,)

    def uses(self, configuration: TableConfiguration) -> bool:
        return APPEND_ONLY.of(configuration.properties)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def can_rebase(self, draft: CommitDraft) -> bool:
        return True  # `finish` checks it again

    def finish(self, commit: ReadyCommit, base: TableState) -> ReadyCommit:
        """Refuse to remove rows (C376). Rearranging them does not change data."""
        if commit.removes.num_rows and commit.data_change and self.is_active(commit.configuration):
            raise AppendOnlyTableError(
                f"This {commit.draft.operation.name} would remove rows, but the table property delta.appendOnly is "
                "true. Set it to false first, or only append rows."
            )
        return commit


FEATURE = AppendOnly()
