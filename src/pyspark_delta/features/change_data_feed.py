"""changeDataFeed: commits tell which rows changed (Change Data Feed; C162-C176).

A commit that only adds files is its own change feed, so appending needs no change files.
"""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import ENABLE_CHANGE_DATA_FEED


class ChangeDataFeed(TableFeature):
    name = "changeDataFeed"
    legacy_writer_version = 4
    harmless_properties = (ENABLE_CHANGE_DATA_FEED.name,)

    def is_active(self, configuration: TableConfiguration) -> bool:
        return ENABLE_CHANGE_DATA_FEED.of(configuration.properties)

    def may_follow(self, draft: CommitDraft) -> bool:
        return draft.is_blind_append


FEATURE = ChangeDataFeed()
