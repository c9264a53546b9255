"""Partition values of removed files whose `remove` lacks them (without `extendedFileMetadata`, C156).

The values come from the `add` of the file: one in the range, or one that was live before.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.changes.commits import HAS_PARTITION_VALUES
from pyspark_delta.errors import CorruptLogError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.percent import resolve_column

_COLUMNS = ("path", "partition_values")


def with_partition_values(removes: pa.Table, adds: pa.Table, latest: Snapshot) -> pa.Table:
    """Return the removes with all partition values, without the column that marks missing ones.

    Raises CorruptLogError for a file without a known `add`, and the errors of opening an earlier version.
    """
    told = removes[HAS_PARTITION_VALUES.name]
    removes = removes.drop_columns([HAS_PARTITION_VALUES.name])
    if pc.all(told).as_py() in (True, None):
        return removes
    lacking = removes.filter(pc.invert(told))
    wanted = _locations(lacking, latest)
    known = removes.schema.empty_table().select(_COLUMNS)
    at = pa.nulls(lacking.num_rows, pa.int32())
    for files in _sources(lacking, adds, latest):
        known = pa.concat_tables([known, files.select(_COLUMNS).cast(known.schema)]).combine_chunks()
        at = pc.index_in(wanted, value_set=_locations(known, latest))
        if not at.null_count:
            break
    if at.null_count:
        path = lacking["path"].filter(at.is_null())[0].as_py()
        raise CorruptLogError(
            f"The partition values of data file '{path}', which was removed, are unknown: its remove action does not "
            "have them, and its add action is no longer in the log. Read later changes.",
            path=path,
        )
    position = lacking.column_names.index("partition_values")
    filled = lacking.set_column(position, known.schema.field("partition_values"), known["partition_values"].take(at))
    return pa.concat_tables([removes.filter(told), filled])


def _locations(files: pa.Table, latest: Snapshot) -> pa.Array:
    return resolve_column(latest.location, files["path"].combine_chunks())


def _sources(lacking: pa.Table, adds: pa.Table, latest: Snapshot) -> Iterator[pa.Table]:
    """Yield the candidate adds: those of the range, and those live before each version that removes such a file."""
    yield adds.select(_COLUMNS)
    for version in sorted(pc.unique(lacking["version"]).to_pylist()):
        if version > 0:
            before = latest.at_version(version - 1)
            yield before.files(_COLUMNS)
