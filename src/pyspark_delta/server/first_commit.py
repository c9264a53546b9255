"""The first commit of a new table, read from its log, because requests of the legacy API do not describe it."""

from __future__ import annotations

from typing import Any

from pyspark_delta.actions.model import CommitInfo, DomainMetadata, Metadata
from pyspark_delta.actions.model import Protocol as ProtocolAction
from pyspark_delta.catalog.contract import NewTable, StagingTable
from pyspark_delta.catalog.log_tail import published_path
from pyspark_delta.errors import DeltaError, FileNotFoundInStoreError, PermissionDeniedError
from pyspark_delta.log.commits import commit_text
from pyspark_delta.server.failures import invalid
from pyspark_delta.server.operation import Call


def first_commit(call: Call[Any], staging: StagingTable) -> NewTable:
    """Return version 0 of the table at a staging location.

    Raises Failure if it cannot be read, or lacks a protocol, metadata or an in-commit timestamp.
    """
    store = call.catalog.table_store(staging.location)
    path = published_path(staging.location, 0)
    try:
        if store.status(path).size > call.settings.max_body_bytes:
            raise invalid(f"The first commit of the table has more than {call.settings.max_body_bytes} bytes.")
        actions = list(commit_text(0, path, store.read(path)).actions())
    except FileNotFoundInStoreError:
        raise invalid("The first commit of the table has not been written.") from None
    except PermissionDeniedError as error:
        raise invalid(f"The first commit of the table cannot be read: {error.message}") from None
    except DeltaError:  # its message quotes the file, which may belong to another user
        raise invalid("The first commit of the table is not a valid commit of Delta Lake.") from None
    protocol = next((action for action in actions if isinstance(action, ProtocolAction)), None)
    metadata = next((action for action in actions if isinstance(action, Metadata)), None)
    info_action = next((action for action in actions if isinstance(action, CommitInfo)), None)
    timestamp = info_action.in_commit_timestamp if info_action is not None else None
    if protocol is None or metadata is None or timestamp is None:
        raise invalid("The first commit of a managed table must have protocol, metaData and an in-commit timestamp.")
    domains = tuple(action for action in actions if isinstance(action, DomainMetadata) and not action.removed)
    return NewTable(version=0, timestamp=timestamp, protocol=protocol, metadata=metadata, domains=domains)
