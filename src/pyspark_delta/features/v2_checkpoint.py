"""v2Checkpoint: checkpoints with sidecar files (V2 Spec; C071-C086)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.protocol.feature import FeatureKind, TableFeature
from pyspark_delta.protocol.properties import CHECKPOINT_POLICY
from pyspark_delta.protocol.removal import Removal


class V2Checkpoint(TableFeature):
    name = "v2Checkpoint"
    kind = FeatureKind.READER_WRITER
    rebase_safe_properties = (CHECKPOINT_POLICY.name,)
    removal = Removal(disabling={CHECKPOINT_POLICY.name: "classic"}, protects_history=True)

    def uses(self, configuration: TableConfiguration) -> bool:
        return CHECKPOINT_POLICY.of(configuration.properties) == "v2"

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def has_traces(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def can_rebase(self, draft: CommitDraft) -> bool:
        return True


FEATURE = V2Checkpoint()
