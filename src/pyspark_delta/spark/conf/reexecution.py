"""Running an operation again after a conflict: how often, and what becomes of the files of the attempt that lost."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark_delta.errors import InvalidOptionError, StorageError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import resolve_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REEXECUTIONS = "spark.pyspark_delta.reexecution.maxAttempts"
"""The session setting for how often an operation is run again after a conflict; 0 switches it off."""

_DEFAULT = 3


def reexecutions(spark: SparkSession) -> int:
    """How often the session lets an operation run again. Raises InvalidOptionError for no number."""
    text = spark.conf.get(REEXECUTIONS, None)
    if text is None:
        return _DEFAULT
    if not text.strip().isdecimal():
        raise InvalidOptionError(f"The session setting {REEXECUTIONS} is a number of times, or 0; found '{text}'.")
    return int(text)


def discard(snapshot: Snapshot, written: Sequence[str]) -> None:
    """Delete new files, by their paths in the log, that no commit names. What cannot be deleted, vacuum finds."""
    if not written:
        return
    with suppress(StorageError):
        store = store_for(snapshot.location, snapshot.storage_options)
        store.delete([resolve_file(snapshot.location, path) for path in written])
