"""Row counts of a version and of files, from the log, or from the Parquet files if the log lacks them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.opened import rows_in_file
from pyspark_delta.data.reader import read_plan
from pyspark_delta.expressions.tree import Column
from pyspark_delta.parallel import flat_map_ordered
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.schema.types import LONG
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.stats.parse import parse_stats
from pyspark_delta.stats.texts import members_of, object_of
from pyspark_delta.storage.paths import resolve_file

_NUM_RECORDS = Column(("numRecords",), LONG)
_THREADS = 16  # footers are small: most of the time is latency of the store


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


def with_record_counts(files: pa.Table, location: str, storage_options: Mapping[str, str] | None) -> pa.Table:
    """Return file actions whose `stats` all have numRecords, deleted rows included; other statistics stay (C408).

    Raises DataFileError for a file that must be opened and cannot be.
    """
    texts = files.column("stats").combine_chunks()
    counts = parse_stats(texts, [_NUM_RECORDS]).column(0)
    unknown = np.flatnonzero(pc.is_null(counts))
    if not len(unknown):
        return files
    paths = [resolve_file(location, path) for path in files.column("path").take(unknown).to_pylist()]

    def count(path: str) -> Iterator[int]:
        yield rows_in_file(path, storage_options)

    found = flat_map_ordered(count, paths, min(_THREADS, len(paths)))
    known = texts.take(unknown).to_pylist()
    completed = [_completed(text, rows) for text, rows in zip(known, found, strict=True)]
    mask = np.zeros(len(texts), np.bool_)
    mask[unknown] = True
    texts = pc.replace_with_mask(texts, pa.array(mask), pa.array(completed, pa.string()))
    return files.set_column(files.column_names.index("stats"), "stats", texts)


def _completed(text: str | None, rows: int) -> str:
    """Return the statistics with the number of rows first, alone if the text is not a JSON object."""
    others = members_of(text) or {}
    others.pop("numRecords", None)
    return object_of(f'"numRecords":{rows}', *others.values())
