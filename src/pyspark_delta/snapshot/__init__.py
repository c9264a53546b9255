"""Snapshots: the state of a table at a version, immutable and lazy."""

from pyspark_delta.snapshot.snapshot import Snapshot, validate_checksum

__all__ = ["Snapshot", "validate_checksum"]
