"""vacuumProtocolCheck: vacuum checks the write protocol first (VACUUM Protocol Check; C343-C346)."""

from __future__ import annotations

from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.protocol.feature import FeatureKind, TableFeature
from pyspark_delta.protocol.removal import Removal


class VacuumProtocolCheck(TableFeature):
    name = "vacuumProtocolCheck"
    kind = FeatureKind.READER_WRITER
    removal = Removal(protects_history=True)

    def can_rebase(self, draft: CommitDraft) -> bool:
        return True


FEATURE = VacuumProtocolCheck()
