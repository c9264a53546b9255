"""changeDataFeed: commits record which rows changed (Change Data Feed; C162-C176).

A commit that only adds files is its own change feed, so appending needs no change files.
"""

from __future__ import annotations

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import ENABLE_CHANGE_DATA_FEED

RESERVED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")


class ChangeDataFeed(TableFeature):
    name = "changeDataFeed"
    legacy_writer_version = 4
    rebase_safe_properties = (ENABLE_CHANGE_DATA_FEED.name,)

    def uses(self, configuration: TableConfiguration) -> bool:
        return ENABLE_CHANGE_DATA_FEED.of(configuration.properties)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def validate(self, configuration: TableConfiguration) -> None:
        """Check that no column has the name of a column of the change feed."""
        if not self.is_active(configuration):
            return
        for name in RESERVED_COLUMNS:
            field = configuration.schema.find(name)
            if field is not None:
                raise InvalidOperationError(
                    f"The column '{field.name}' has a name that is reserved for the change data feed, as are "
                    f"{', '.join(RESERVED_COLUMNS)}. Rename it, or leave delta.enableChangeDataFeed off.",
                    error_class="DELTA_RESERVED_COLUMN_NAMES",
                    column=field.name,
                )

    def can_rebase(self, draft: CommitDraft) -> bool:
        return draft.is_blind_append


FEATURE = ChangeDataFeed()
