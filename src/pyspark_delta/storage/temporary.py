"""Temporary files beside those that a store publishes by a rename or a link. Listings do not show them."""

from __future__ import annotations

import re
import uuid
from typing import Protocol, runtime_checkable

TEMPORARY_PREFIX = ".pyspark-delta-"
_NAME = re.compile(re.escape(TEMPORARY_PREFIX) + r"[0-9a-f]{32}\.tmp")
LEFTOVER_AGE = 7 * 86_400_000
"""Milliseconds since its last write after which a temporary file counts as left by a killed writer."""


def temporary_name() -> str:
    """Return a new name for a temporary file."""
    return f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}.tmp"


def is_temporary(name: str) -> bool:
    """Return True for the name of a temporary file."""
    return _NAME.fullmatch(name) is not None


@runtime_checkable
class LeavesTemporaryFiles(Protocol):
    """A store in which a killed writer may leave temporary files; others publish in one request."""

    def remove_leftovers(self, directory: str, before_ms: int, *, recursive: bool = False) -> int:
        """Remove the temporary files in a directory that were last written before a time; return their number.

        The time is in milliseconds since the epoch. With `recursive`, sub-directories are searched too; links are not
        followed. Files that cannot be removed stay.
        """
        ...
