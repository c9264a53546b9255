"""The state of a table that a commit builds on: as much of a snapshot as commits need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """One version of a table; version -1, without a configuration, where there is no table yet."""

    location: str
    version: int = -1
    configuration: TableConfiguration | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, snapshot: Snapshot) -> TableState:
        """The state at the version of a snapshot."""
        return cls(
            location=snapshot.location,
            version=snapshot.version,
            configuration=snapshot.configuration,
            storage_options=dict(snapshot.storage_options or {}),
        )
