"""Count the rows of a version: from the log, and from Parquet footers for files without statistics."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.compute as pc

from pyspark_delta.data.reader import read_plan
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot


def count_rows(snapshot: Snapshot) -> int:
    """Return the number of rows. Opens a data file only if its statistics lack the number of records.

    Raises CorruptLogError, and DataFileError for a file that must be opened and cannot be.
    """
    count = snapshot.record_count
    if count.total is not None:
        return count.total
    plan = plan_scan(snapshot, columns=[])
    files = plan.files.filter(pc.is_in(plan.files["path"], value_set=count.unknown.combine_chunks()))
    opened: int = sum(batch.num_rows for batch in read_plan(replace(plan, files=files)))
    return count.known + opened
