"""deletionVectors: rows of a data file are deleted without rewriting the file (Deletion Vectors; C250-C282).

Appended files have none, whatever the other files have.
"""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.protocol.feature import FeatureKind, TableFeature
from pyspark_delta.protocol.properties import ENABLE_DELETION_VECTORS
from pyspark_delta.protocol.removal import FileTraces, Removal


class DeletionVectors(TableFeature):
    name = "deletionVectors"
    kind = FeatureKind.READER_WRITER
    rebase_safe_properties = (ENABLE_DELETION_VECTORS.name,)
    removal = Removal(disabling={ENABLE_DELETION_VECTORS.name: None}, files=FileTraces.VECTORS, protects_history=True)

    def uses(self, configuration: TableConfiguration) -> bool:
        return ENABLE_DELETION_VECTORS.of(configuration.properties)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def has_traces(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def can_rebase(self, draft: CommitDraft) -> bool:
        return True


FEATURE = DeletionVectors()
