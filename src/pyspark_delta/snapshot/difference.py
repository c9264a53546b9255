"""The files that one version of a table has and another lacks."""

from __future__ import annotations

import pyarrow as pa

from pyspark_delta.actions.columns import field_of
from pyspark_delta.log.reconciliation import Keys
from pyspark_delta.log.request import FileRequest
from pyspark_delta.snapshot.snapshot import Snapshot


def files_only_in(one: Snapshot, other: Snapshot, columns: tuple[str, ...]) -> pa.Table:
    """Return the live files of a version that another version lacks, by path and deletion vector (C279).

    `columns` are names of `actions.columns`, `path` and `deletion_vector` among them. Memory grows with the number of
    files of `other` and of those returned. Raises CorruptLogError.
    """
    known = Keys.of_files(other.read_files(FileRequest(("path", "deletion_vector"))), other.location)
    schema = pa.schema([field_of("add", name) for name in columns])
    found = known.unnamed(one.read_files(FileRequest(columns)))
    return pa.Table.from_batches([batch.cast(schema) for batch in found], schema)
