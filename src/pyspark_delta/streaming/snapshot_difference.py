"""The rows that were added since a version whose commit log clean-up has removed, found by row tracking.

Rows that were added and deleted in between are gone. A row that was updated is returned with its newest values.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow.compute as pc

from pyspark_delta.actions.columns import DEFAULT_ROW_COMMIT_VERSION
from pyspark_delta.errors import StreamDataLossError
from pyspark_delta.expressions.tree import Column, Comparison, Expression, IsNull, Literal, Or
from pyspark_delta.features import Feature, is_active
from pyspark_delta.protocol.properties import MATERIALIZED_ROW_COMMIT_VERSION
from pyspark_delta.scan.file_source import FileSource
from pyspark_delta.schema.types import LONG, StructField
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.streaming.contents import BatchFiles
from pyspark_delta.streaming.initial import InitialFiles


def rows_since(version: int, snapshot: Snapshot, source: FileSource, where: Expression | None) -> BatchFiles:
    """Return the rows of a snapshot that were written by `version` or later. `where` rules out files.

    Raises StreamDataLossError if the table does not track rows.
    """
    name = MATERIALIZED_ROW_COMMIT_VERSION.of(snapshot.configuration.properties)
    if name is None or not is_active(snapshot.configuration, Feature.ROW_TRACKING):
        raise StreamDataLossError(
            f"Log clean-up has removed version {version} of '{snapshot.location}', and the option "
            "onDataLoss=snapshotDiff cannot find the rows that were added since: the table does not track rows. Set "
            "onDataLoss to skip, and the rows of the missing versions are lost, or use a new checkpoint, which reads "
            "all rows. To track rows from now on, set the table property delta.enableRowTracking to true.",
            version=version,
            location=snapshot.location,
        )
    initial = InitialFiles(snapshot, where)
    files = initial.files(0, len(initial))
    # A file without a version is not in a table that tracks rows; its rows would rather be returned twice than lost.
    late = pc.fill_null(pc.greater_equal(files[DEFAULT_ROW_COMMIT_VERSION.name], version), True)
    stored = Column((name,), LONG)
    only = Or((IsNull(stored), Comparison(">=", stored, Literal(version, LONG))))
    return BatchFiles(replace(source, sometimes_stored=(StructField(name, LONG),)), files.filter(late), only)
