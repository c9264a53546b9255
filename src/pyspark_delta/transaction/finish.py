"""A draft becomes the commit of one version: what depends on the base is completed here, in every attempt."""

from __future__ import annotations

import time

from pyspark_delta.actions.encode import encode_action
from pyspark_delta.actions.encode_files import encode_adds, encode_removes
from pyspark_delta.features import finish_order
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.protocol.state import TableState
from pyspark_delta.transaction.commit_info import commit_info


def finish(draft: CommitDraft, base: TableState) -> ReadyCommit:
    """Complete the draft for the version after `base`: every supported feature adds what it needs, or refuses."""
    configuration = _configuration(draft, base)
    ready = ReadyCommit(
        draft=draft,
        version=base.version + 1,
        timestamp=int(time.time() * 1000),
        configuration=configuration,
        protocol=draft.protocol,
        metadata=draft.metadata,
        transactions=draft.transactions,
        domains=draft.domains,
        adds=draft.adds,
        removes=draft.removes,
    )
    for feature in finish_order(configuration):
        ready = feature.finish(ready, base)
    return ready


def encode(ready: ReadyCommit) -> bytes:
    """The content of the commit file: one action per line, commitInfo first (C011, C193)."""
    single = (commit_info(ready), ready.protocol, ready.metadata, *ready.transactions, *ready.domains)
    lines = [encode_action(action) + b"\n" for action in single if action is not None]
    lines.extend(encode_removes(ready.removes, data_change=ready.data_change, deletion_timestamp=ready.timestamp))
    lines.extend(encode_adds(ready.adds, data_change=ready.data_change))
    return b"".join(lines)


def _configuration(draft: CommitDraft, base: TableState) -> TableConfiguration:
    before = base.configuration
    protocol = draft.protocol or (before.protocol if before else None)
    metadata = draft.metadata or (before.metadata if before else None)
    if protocol is None or metadata is None:
        raise ValueError("the first version of a table needs protocol and metadata")
    if before is not None and protocol is before.protocol and metadata is before.metadata:
        return before
    return TableConfiguration(protocol, metadata, before.location if before else "")
