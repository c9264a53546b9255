"""The state that the first attempt of a commit builds on."""

from __future__ import annotations

from contextlib import suppress

from pyspark_delta.errors import FileNotFoundInStoreError
from pyspark_delta.features import Feature, is_supported
from pyspark_delta.log.commits import commit_text, malformed
from pyspark_delta.protocol.state import TableState
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.access import require_catalog

_LONG = 1 << 20  # bytes read from the end of a commit: a truncated commit has no complete last line
_END = 1 << 10


def state_of(snapshot: Snapshot) -> TableState:
    """Return the state of the table at the version of a snapshot.

    The version checksum contains all of it, if there is one; a checkpoint is read only for domains that the checksum
    lacks. Raises PathAccessError for a managed table that was opened for its published state, and CorruptLogError if
    the newest commit is damaged: the checksum hides the damage, and no reader could read versions after it.
    """
    require_catalog(snapshot.configuration, snapshot.location, snapshot.catalog_table)
    configuration, checksum = snapshot.configuration, snapshot.checksum()
    if checksum is not None:
        _check_newest_commit(snapshot)
    timestamp = None if checksum is None else checksum.in_commit_timestamp
    return TableState(
        location=snapshot.location,
        version=snapshot.version,
        configuration=configuration,
        domains=snapshot.domains() if is_supported(configuration, Feature.DOMAIN_METADATA) else {},
        timestamp=snapshot.timestamp if timestamp is None else timestamp,
        storage_options=dict(snapshot.storage_options or {}),
        catalog_table=snapshot.catalog_table,
    )


def _check_newest_commit(snapshot: Snapshot) -> None:
    commits = snapshot.segment.commits
    if not commits or commits[-1].version != snapshot.version:
        return  # a checkpoint of this version replaces it
    file, is_long = commits[-1].file, commits[-1].file.size > _LONG
    with suppress(FileNotFoundInStoreError):  # deleted by log cleanup after a newer checkpoint
        if not is_long:
            commit_text(snapshot.version, file.path, snapshot.store.read(file.path))
        elif not snapshot.store.read(file.path, (file.size - _END, file.size)).rstrip().endswith(b"}"):
            raise malformed(file.path, "its last line is not a complete JSON object")
