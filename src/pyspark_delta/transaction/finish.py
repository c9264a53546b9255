"""Turn a draft into the commit of one version: everything that depends on the base is completed in every attempt."""

from __future__ import annotations

import time
from dataclasses import replace

import pyarrow.compute as pc

from pyspark_delta.actions.encode import encode_action
from pyspark_delta.actions.encode_files import encode_adds, encode_changes, encode_removes
from pyspark_delta.actions.model import SetTransaction
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.features import Feature, finish_order, is_supported
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.protocol.state import TableState
from pyspark_delta.storage.path_hashes import may_repeat
from pyspark_delta.transaction.commit_info import commit_info


def finish(draft: CommitDraft, base: TableState) -> ReadyCommit:
    """Complete the draft for the version after `base`: every supported feature adds what it needs, or raises."""
    ready = unfinished(draft, base)
    for feature in finish_order(ready.configuration):
        ready = feature.finish(ready, base)
    _check_single(ready)
    return ready


def unfinished(draft: CommitDraft, base: TableState) -> ReadyCommit:
    """Return the commit of the version after `base` before the features of the table add what they need."""
    configuration, now = _configuration(draft, base), int(time.time() * 1000)
    return ReadyCommit(
        draft=draft,
        version=base.version + 1,
        timestamp=now,
        configuration=configuration,
        protocol=draft.protocol,
        metadata=draft.metadata,
        transactions=tuple(_dated(t, now) for t in draft.transactions),
        domains=draft.domains,
        adds=draft.adds,
        removes=draft.removes,
    )


def encode(ready: ReadyCommit) -> bytes:
    """Return the content of the commit file: one action per line, commitInfo first (C011, C193)."""
    single = (commit_info(ready), ready.protocol, ready.metadata, *ready.transactions, *ready.domains)
    lines = [encode_action(action) + b"\n" for action in single if action is not None]
    lines.extend(encode_removes(ready.removes, data_change=ready.data_change, deletion_timestamp=ready.timestamp))
    lines.extend(encode_adds(ready.adds, data_change=ready.data_change))
    lines.extend(encode_changes(ready.draft.changes))
    return b"".join(lines)


def _dated(transaction: SetTransaction, now: int) -> SetTransaction:
    """Return `txn` with its time; without one it never expires (`delta.setTransactionRetentionDuration`)."""
    return transaction if transaction.last_updated is not None else replace(transaction, last_updated=now)


def _check_single(ready: ReadyCommit) -> None:
    """Check that a commit has one action per application and metadata domain, and domains only if they are supported.

    A commit adds a file once, and removes it once, whatever its deletion vector (C145, C148).
    """
    for kind, files in (("add", ready.adds), ("remove", ready.removes)):
        if may_repeat(files["path"]) and pc.count_distinct(files["path"]).as_py() != files.num_rows:
            counts = pc.value_counts(files["path"])
            path = counts.field("values")[pc.index(pc.greater(counts.field("counts"), 1), True).as_py()].as_py()
            raise InvalidOperationError(
                f"One commit cannot {kind} the file '{path}' twice, even with two deletion vectors. Give it once.",
                path=path,
            )
    for kind, names in (
        ("application", [t.app_id for t in ready.transactions]),
        ("metadata domain", [d.domain for d in ready.domains]),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidOperationError(f"One commit cannot set the {kind} '{twice[0]}' twice; set it once (C181).")
    if ready.domains and not is_supported(ready.configuration, Feature.DOMAIN_METADATA):
        raise InvalidOperationError(
            f"The metadata domain '{ready.domains[0].domain}' cannot be written: the table does not support the "
            "feature domainMetadata. Set the table property delta.feature.domainMetadata to 'supported' first.",
            error_class="DELTA_DOMAIN_METADATA_NOT_SUPPORTED",
            domain=ready.domains[0].domain,
        )


def _configuration(draft: CommitDraft, base: TableState) -> TableConfiguration:
    before = base.configuration
    protocol = draft.protocol or (before.protocol if before else None)
    metadata = draft.metadata or (before.metadata if before else None)
    if protocol is None or metadata is None:
        raise ValueError("the first version of a table needs protocol and metadata")
    if before is not None and protocol is before.protocol and metadata is before.metadata:
        return before
    return TableConfiguration(protocol, metadata, before.location if before else "")
