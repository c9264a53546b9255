"""inCommitTimestamp: a commit contains its own time (In-Commit Timestamps; C355-C363)."""

from __future__ import annotations

from dataclasses import replace

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import (
    ENABLE_IN_COMMIT_TIMESTAMPS,
    IN_COMMIT_TIMESTAMP_TIME,
    IN_COMMIT_TIMESTAMP_VERSION,
)
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.protocol.removal import Removal
from pyspark_delta.protocol.state import TableState

_ENABLEMENT = (IN_COMMIT_TIMESTAMP_VERSION.name, IN_COMMIT_TIMESTAMP_TIME.name)


class InCommitTimestamp(TableFeature):
    name = "inCommitTimestamp"
    preview_names = ("inCommitTimestamp-preview",)
    rebase_safe_properties = (ENABLE_IN_COMMIT_TIMESTAMPS.name, *_ENABLEMENT)
    removal = Removal(
        disabling={ENABLE_IN_COMMIT_TIMESTAMPS.name: "false", **dict.fromkeys(_ENABLEMENT)},
        leaves="times in commits, which are no longer read: versions have the modification times of their files",
    )

    def uses(self, configuration: TableConfiguration) -> bool:
        return ENABLE_IN_COMMIT_TIMESTAMPS.of(configuration.properties)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def can_rebase(self, draft: CommitDraft) -> bool:
        return True

    def finish(self, commit: ReadyCommit, base: TableState) -> ReadyCommit:
        """Set the time of a commit after that of the base (C357, C359, C363), and record when this began (C358)."""
        if not self.is_active(commit.configuration):
            return commit
        time = max(commit.timestamp, base.timestamp + 1)
        commit = replace(commit, in_commit_timestamp=time)
        before = base.configuration
        if before is None:
            return commit
        if not self.is_active(before):
            return _with_enablement(commit, dict(zip(_ENABLEMENT, (str(commit.version), str(time)), strict=True)))
        if commit.metadata is not None:  # new metadata, as of a replaced table, still have the same history
            known = {name: before.properties[name] for name in _ENABLEMENT if name in before.properties}
            return _with_enablement(commit, known)
        return commit


def _with_enablement(commit: ReadyCommit, values: dict[str, str]) -> ReadyCommit:
    metadata = commit.configuration.metadata
    if all(metadata.configuration.get(name) == value for name, value in values.items()):
        return commit
    return commit.with_metadata(replace(metadata, configuration={**metadata.configuration, **values}))


FEATURE = InCommitTimestamp()
