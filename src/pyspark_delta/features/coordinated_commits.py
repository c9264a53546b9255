"""coordinatedCommits-preview: commits go through a coordinator, a proposal that catalogManaged has replaced."""

from __future__ import annotations

from pyspark_delta.protocol.feature import TableFeature


class CoordinatedCommits(TableFeature):
    name = "coordinatedCommits-preview"
    preview_names = ("managedCommits-dev", "coordinatedCommits", "managed-commits")
    requires = ("inCommitTimestamp",)
    listing_unsupported_reason = "It was a proposal that catalogManaged has replaced."
    write_unsupported_reason = (
        "Commits would have to go through its coordinator. Drop the feature with the engine that added it."
    )


FEATURE = CoordinatedCommits()
