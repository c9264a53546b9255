"""The state that the first attempt of a commit builds on."""

from __future__ import annotations

from pyspark_delta.features import Feature, is_supported
from pyspark_delta.protocol.state import TableState
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.access import require_catalog


def state_of(snapshot: Snapshot) -> TableState:
    """The state of the table at the version of a snapshot.

    The version checksum says all of it, where there is one; a checkpoint is read only for domains that it does not
    hold. Raises PathAccessError for a managed table that was opened for its published state.
    """
    require_catalog(snapshot.configuration, snapshot.location, snapshot.storage_options)
    configuration, checksum = snapshot.configuration, snapshot.checksum()
    timestamp = None if checksum is None else checksum.in_commit_timestamp
    return TableState(
        location=snapshot.location,
        version=snapshot.version,
        configuration=configuration,
        domains=snapshot.domains() if is_supported(configuration, Feature.DOMAIN_METADATA) else {},
        timestamp=snapshot.timestamp if timestamp is None else timestamp,
        storage_options=dict(snapshot.storage_options or {}),
    )
