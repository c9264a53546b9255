"""What follows a commit: best effort, since the version exists whatever happens here."""

from __future__ import annotations

import warnings

from pyspark_delta.errors import DeltaError, DeltaWarning
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.storage import ObjectStore
from pyspark_delta.transaction.version_checksum import write_version_checksum


def post_commit(ready: ReadyCommit, location: str, store: ObjectStore) -> None:
    """Write the version checksum. A failure becomes a DeltaWarning: readers do without it (C123)."""
    try:
        write_version_checksum(ready, location, store)
    except DeltaError as error:
        warnings.warn(
            DeltaWarning(
                f"Version {ready.version} of '{location}' is committed, but its version checksum could not be written: "
                f"{error.message}"
            ),
            stacklevel=4,
        )
