"""A checkpoint of a commit that adds all files of a table: readers need not parse its text."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pyarrow as pa

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.errors import DeltaError, DeltaWarning
from pyspark_delta.features import Feature, is_supported
from pyspark_delta.log.checkpoint_writer import write_checkpoint
from pyspark_delta.log.replay import LogReplay
from pyspark_delta.log.segment import load_segment
from pyspark_delta.protocol.state import TableState
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import store_for

_BATCH_ROWS = 65_536


def write_first_checkpoint(state: TableState, files: pa.Table) -> None:
    """Write a checkpoint of a version that was just committed with some files. A failure is a warning.

    `files` have some of the columns of `FILE_FIELDS`. A catalog that manages the table has the checkpoint written by a
    later commit, once the version is published (C476).
    """
    known = state.configuration
    if not files.num_rows or (known is not None and known.is_catalog_managed):
        return
    try:
        # The version may have other files, or files have ids that the commit gave them.
        if known is None or state.version or is_supported(known, Feature.ROW_TRACKING):
            Snapshot.load(state.location, version=state.version, storage_options=state.storage_options).checkpoint()
            return
        store = store_for(state.location, state.storage_options)
        replay = LogReplay(store, load_segment(store, state.location, state.version))
        write_checkpoint(replay, known, files=_batches(files))
    except DeltaError as error:
        warnings.warn(
            DeltaWarning(
                f"Version {state.version} of '{state.location}' is committed, but its checkpoint could not be written: "
                f"{error.message}"
            ),
            stacklevel=3,
        )


def _batches(files: pa.Table) -> Iterator[pa.RecordBatch]:
    for batch in files.to_batches(_BATCH_ROWS):
        columns = [
            batch.column(field.name).cast(field.type)
            if field.name in batch.schema.names
            else pa.nulls(batch.num_rows, field.type)
            for field in FILE_FIELDS
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(FILE_FIELDS))
