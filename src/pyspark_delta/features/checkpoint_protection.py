"""checkpointProtection: checkpoints before a version must stay (Checkpoint Protection).

It restricts log cleanup; commits are not affected.
"""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import CHECKPOINT_PROTECTION_VERSION
from pyspark_delta.protocol.removal import Removal


class CheckpointProtection(TableFeature):
    name = "checkpointProtection"
    removal = Removal(properties=(CHECKPOINT_PROTECTION_VERSION.name,), needs_truncation=True)

    def uses(self, configuration: TableConfiguration) -> bool:
        return CHECKPOINT_PROTECTION_VERSION.of(configuration.properties) > 0

    def can_rebase(self, draft: CommitDraft) -> bool:
        return True


FEATURE = CheckpointProtection()
