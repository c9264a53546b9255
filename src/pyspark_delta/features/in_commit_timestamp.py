"""inCommitTimestamp: the time of a commit is in the commit itself (In-Commit Timestamps; C355-C363)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import ENABLE_IN_COMMIT_TIMESTAMPS


class InCommitTimestamp(TableFeature):
    name = "inCommitTimestamp"
    preview_names = ("inCommitTimestamp-preview",)
    write_obstacle = "Each commit would have to hold its own timestamp. Write it with another engine for now."

    def is_active(self, configuration: TableConfiguration) -> bool:
        return ENABLE_IN_COMMIT_TIMESTAMPS.of(configuration.properties)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.is_active(configuration)


FEATURE = InCommitTimestamp()
