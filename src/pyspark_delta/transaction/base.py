"""The state that the first attempt of a commit builds on."""

from __future__ import annotations

from pyspark_delta.protocol.state import TableState
from pyspark_delta.snapshot import Snapshot


def state_of(snapshot: Snapshot) -> TableState:
    """The state of the table at the version of a snapshot."""
    return TableState(
        location=snapshot.location,
        version=snapshot.version,
        configuration=snapshot.configuration,
        domains=snapshot.domains(),
        timestamp=snapshot.timestamp,
        storage_options=dict(snapshot.storage_options or {}),
    )
