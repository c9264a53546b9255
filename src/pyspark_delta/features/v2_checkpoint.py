"""v2Checkpoint: checkpoints with sidecar files (V2 Spec; C071-C086)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import FeatureKind, TableFeature
from pyspark_delta.protocol.properties import CHECKPOINT_POLICY


class V2Checkpoint(TableFeature):
    name = "v2Checkpoint"
    kind = FeatureKind.READER_WRITER
    write_obstacle = "Its checkpoints have to be written with sidecar files. Write it with another engine for now."

    def is_active(self, configuration: TableConfiguration) -> bool:
        return CHECKPOINT_POLICY.of(configuration.properties) == "v2"

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.is_active(configuration)


FEATURE = V2Checkpoint()
