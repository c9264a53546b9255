"""Statistics that a checkpoint stores twice, as JSON and as columns: readers use either, so both must agree (S05)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import PATH, STATS
from pyspark_delta.expressions.tree import Column
from pyspark_delta.log.checkpoint_scan import scan_stats
from pyspark_delta.log.checkpoints import CheckpointReader
from pyspark_delta.maintenance.checking.live_files import Array
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.statistics import statistics_leaves
from pyspark_delta.schema.types import LONG
from pyspark_delta.stats.observe import select
from pyspark_delta.stats.parse import parse_stats

_NUM_RECORDS = Column(("numRecords",), LONG)
_TRUNCATED = 1000  # microseconds: a bound in JSON may be cut to milliseconds (C410)


def contradictory_statistics(reader: CheckpointReader, configuration: TableConfiguration) -> tuple[str, str] | None:
    """Return the path of a file whose `stats` and `stats_parsed` differ, and the statistic; None if all agree (C053).

    A statistic that one of them lacks is no difference. Raises CorruptLogError, and the errors of the schema.
    """
    leaves = tuple(leaf.physical for leaf in statistics_leaves(configuration))
    for part in reader.parts():
        if part.leaf("add.stats") is None or not part.leaves_below("add.stats_parsed"):
            continue
        for batch in scan_stats([part], leaves, (PATH, STATS), (_NUM_RECORDS,)):
            texts = parse_stats(batch.column(STATS.name), leaves)
            for number, leaf in enumerate(leaves):
                rows = np.flatnonzero(differing_rows(batch.column(2 + number), select(texts, leaf.path)))
                if len(rows):
                    return batch.column(PATH.name)[int(rows[0])].as_py(), ".".join(leaf.path)
    return None


def differing_rows(stored: pa.Array, parsed: pa.Array) -> Array:
    """Return a mask of the rows in which both have a value, and not the same one."""
    differs = pc.not_equal(stored, parsed)
    if pa.types.is_floating(stored.type):
        differs = pc.and_(differs, pc.invert(pc.and_(pc.is_nan(stored), pc.is_nan(parsed))))
    elif pa.types.is_timestamp(stored.type):
        distance = pc.abs(pc.subtract(stored.cast(pa.int64()), parsed.cast(pa.int64())))
        differs = pc.greater_equal(distance, _TRUNCATED)
    return np.asarray(pc.fill_null(differs, False))
