"""The files of a scan plan as tasks: one `ScanTask` for each row of the file table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.scan.plan import ScanTask


def scan_tasks(files: pa.Table) -> list[ScanTask]:
    """Tasks in the order of the files; columns that the table lacks count as null."""
    return [_task(row) for row in files.to_pylist(maps_as_pydicts="lossy")]


def _task(row: dict[str, Any]) -> ScanTask:
    vector = row.get("deletion_vector")
    return ScanTask(
        path=row["path"],
        size=row["size"],
        partition_values=row.get("partition_values") or {},
        deletion_vector=None if vector is None else DeletionVectorDescriptor(**vector),
        base_row_id=row.get("base_row_id"),
        default_row_commit_version=row.get("default_row_commit_version"),
    )
