"""The data files below a directory, by Spark's rules for hidden names."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.parallel import map_requests
from pyspark_delta.storage import ObjectStore, store_for
from pyspark_delta.storage.contract import TREE
from pyspark_delta.storage.local import LocalStore
from pyspark_delta.storage.paths import join

_SPARK_METADATA = "_spark_metadata"
_AT_ONCE = 32  # requests
_HIDDEN_FILE = r"(?:^|/)(?:\.|_)[^/]*$"
_HIDDEN_VISIBLE = r"(?:^|/)_[^/]*=[^/]*$"
_UNFINISHED = r"\._COPYING_$"


def data_files(location: str, storage_options: Mapping[str, str]) -> pa.Table:
    """Return the files below a directory, in order of their paths, with the columns of `storage.contract.TREE`.

    Names that begin with `_` or `.` are hidden, except `_column=value`. Raises InvalidOperationError if there are none,
    or if a streaming query wrote the directory: then not all files in it count.
    """
    store = store_for(location, storage_options)
    if next(iter(store.list_from(join(location, _SPARK_METADATA, ""))), None) is not None:
        raise InvalidOperationError(
            f"'{location}' was written by a streaming query, whose log {_SPARK_METADATA} says which files count; that "
            "log is not supported. Read the directory with Spark, and write its rows to a new table.",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
            location=location,
        )
    found = [batch.filter(pc.invert(_hidden(batch.column("path")))) for batch in store.list_tree(location, _is_hidden)]
    files = pa.Table.from_batches(found, TREE).sort_by("path").combine_chunks()
    if not files.num_rows:
        raise InvalidOperationError(
            f"There is no file in the directory '{location}'. Name a directory with Parquet files.",
            error_class="DELTA_EMPTY_DIRECTORY",
            location=location,
        )
    return _with_status(files, location, store)


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _hidden(paths: pa.Array) -> pa.Array:
    named = pc.match_substring_regex(paths, _HIDDEN_FILE)
    hidden = pc.and_(named, pc.invert(pc.match_substring_regex(paths, _HIDDEN_VISIBLE)))
    return pc.or_(hidden, pc.match_substring_regex(paths, _UNFINISHED))


def _with_status(files: pa.Table, location: str, store: ObjectStore) -> pa.Table:
    """Return the files with sizes and times, which some listings lack."""
    if not files["size"].null_count:
        return files
    paths = (join(location, path) for chunk in files["path"].chunks for path in chunk.to_pylist())
    at_once = 1 if isinstance(store, LocalStore) else min(_AT_ONCE, files.num_rows)
    statuses = map_requests(store.status, paths, at_once)
    batches = []
    while some := list(islice(statuses, 65_536)):
        columns = [pa.array([getattr(status, name) for status in some], pa.int64()) for name in TREE.names[1:]]
        batches.append(pa.RecordBatch.from_arrays(columns, names=TREE.names[1:]))
    known = pa.Table.from_batches(batches)
    return pa.table([files["path"], *known.columns], schema=TREE)
