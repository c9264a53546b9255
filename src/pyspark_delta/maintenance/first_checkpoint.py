"""A checkpoint of a commit that adds all files of a table: readers need not parse its text."""

from __future__ import annotations

import warnings

from pyspark_delta.errors import DeltaError, DeltaWarning
from pyspark_delta.protocol.state import TableState
from pyspark_delta.snapshot import Snapshot


def write_first_checkpoint(state: TableState, files: int) -> None:
    """Write a checkpoint of a version that was just committed with some files. A failure is a warning.

    A catalog that manages the table has it written by a later commit, once the version is published (C476).
    """
    if not files or (state.configuration is not None and state.configuration.is_catalog_managed):
        return
    try:
        Snapshot.load(state.location, version=state.version, storage_options=state.storage_options).checkpoint()
    except DeltaError as error:
        warnings.warn(
            DeltaWarning(
                f"Version {state.version} of '{state.location}' is committed, but its checkpoint could not be written: "
                f"{error.message}"
            ),
            stacklevel=3,
        )
