"""Rewriting the files that have traces of a feature: without deletion vectors, old types, or physical names."""

from __future__ import annotations

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.removal import FileTraces
from pyspark_delta.snapshot import Snapshot


def rewrite_files(snapshot: Snapshot, kind: FileTraces, engine_info: str) -> Snapshot:
    """Rewrite the files with traces of a kind; return the newest version."""
    raise InvalidOperationError(f"Files of '{snapshot.location}' have {kind.value} and must be rewritten first.")
