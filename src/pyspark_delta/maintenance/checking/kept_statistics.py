"""Statistics in a checkpoint against those of the commits that added the files (K02).

A checkpoint may spell them differently, so only files whose text differs are compared, value by value, and only some.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import DELETION_VECTOR, PATH, STATS
from pyspark_delta.errors import DeltaError
from pyspark_delta.log.line_columns import parse_lines
from pyspark_delta.maintenance.checking.commit_contents import keyed
from pyspark_delta.maintenance.checking.state import TableState
from pyspark_delta.maintenance.checking.table_log import TableLog
from pyspark_delta.scan.statistics import statistics_leaves
from pyspark_delta.stats.parse import parse_stats

MOST_COMPARED = 500  # files of a checkpoint
_FIELDS = (PATH, STATS, DELETION_VECTOR)
_FURTHEST = 200  # commits that are read again

Texts = Mapping[int, tuple[str, str]]
"""The path and the statistics of a file, by its key."""


def changed_statistics(log: TableLog, state: TableState, kept: Texts) -> tuple[str, str] | None:
    """Return the path of a file whose statistics in a checkpoint are not those of its commit, and which; None if none.

    Raises CorruptLogError.
    """
    if not kept or state.configuration is None:
        return None
    originals = _originals(log, state, set(kept))
    keys = [key for key in originals if key in kept]
    if not keys:
        return None
    leaves = [leaf.physical for leaf in statistics_leaves(state.configuration)]
    ours = parse_stats(pa.array([kept[key][1] for key in keys], pa.string()), leaves)
    theirs = parse_stats(pa.array([originals[key] for key in keys], pa.string()), leaves)
    for leaf in leaves:
        differs = pc.not_equal(_at(ours, leaf.path), _at(theirs, leaf.path))
        rows = np.flatnonzero(np.asarray(pc.fill_null(differs, False)))
        if len(rows):
            return kept[keys[int(rows[0])]][0], ".".join(leaf.path)
    return None


def _at(stats: pa.RecordBatch, path: tuple[str, ...]) -> pa.Array:
    column = stats.column(stats.schema.get_field_index(path[0]))
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def _originals(log: TableLog, state: TableState, wanted: set[int]) -> dict[int, str]:
    """Return the texts with which the newest commits added some files."""
    found: dict[int, str] = {}
    versions = sorted((version for version in log.listing.commits if version <= state.version), reverse=True)
    for version in versions[:_FURTHEST]:
        try:
            text = log.read_commit(version)
        except DeltaError:
            continue  # a finding of the commit
        for batch in parse_lines(text.lines_of("add"), "add", _FIELDS, (), lambda _: ("", 0)):
            keys = keyed(batch, log.location)["key"]
            for at in np.flatnonzero(np.isin(keys, np.fromiter(wanted, np.int64, len(wanted)))).tolist():
                original = batch.column(1)[at].as_py()
                wanted.discard(int(keys[at]))
                if original is not None:
                    found[int(keys[at])] = original
        if not wanted:
            break
    return found
