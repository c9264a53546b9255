"""Find files of another commit or draft that overlap with a draft: both name them, or the draft may match them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.expressions.text import columns_of
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.log.reconciliation import file_keys
from pyspark_delta.log.skipping import keep_listed
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.scan.bounds import NEVER
from pyspark_delta.scan.planner import file_request
from pyspark_delta.scan.skipping import plan_skipping
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.types import TIMESTAMP


@dataclass(frozen=True)
class PathSet:
    """Paths of a log, compared decoded and resolved, without deletion vectors."""

    location: str
    paths: pa.Array

    @classmethod
    def of(cls, paths: Iterable[str] | pa.ChunkedArray, location: str) -> PathSet:
        array = paths.combine_chunks() if isinstance(paths, pa.ChunkedArray) else pa.array(paths, pa.string())
        return cls(location, array)

    @cached_property
    def _keys(self) -> pa.Array:
        return file_keys(self.paths, None, self.location)

    def holds(self, files: pa.Table) -> pa.BooleanArray:
        """Return a mask of the files whose column `path` is in the set."""
        if not len(self.paths) or not files.num_rows:
            return pa.repeat(pa.scalar(False), files.num_rows)
        keys = file_keys(files.column("path").combine_chunks(), None, self.location)
        return pc.is_in(keys, value_set=self._keys)


def shared(files: pa.Table, *sets: PathSet) -> pa.Table:
    """Return the files that are in any of the sets."""
    mask = pa.repeat(pa.scalar(False), files.num_rows)
    for paths in sets:
        mask = pc.or_(mask, paths.holds(files))
    return files.filter(mask)


def matching(files: pa.Table, predicate: Expression, draft: CommitDraft, configuration: TableConfiguration) -> pa.Table:
    """Return the files in which rows may match the predicate: partition values or statistics do not exclude it."""
    split = plan_skipping(predicate, configuration).split
    if NEVER in (split.partition, split.stats):
        return files.slice(0, 0)
    partition, zone = split.partition, draft.reads.time_zone
    if zone is None and partition is not None and any(c.type == TIMESTAMP for c in columns_of(partition)):
        partition = None
    request = file_request(configuration, tuple(files.column_names), partition, split.stats, zone or "UTC")
    return keep_listed(files, request)


def partition_names(configuration: TableConfiguration) -> tuple[str, ...]:
    """Return the physical names of the partition columns, the keys of partition values in the log."""
    mode = mapping_mode(configuration)
    fields = (configuration.schema.find(name) for name in configuration.partition_columns)
    return tuple(physical_field(f, mode).name for f in fields if f is not None)
