"""The data files of a change feed that still exist in the store: a removed file may have been vacuumed since.

A reader that relies on the file length in the log needs this module. A remove may lack the length, and vacuuming may
have deleted a file whose commit still exists.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.changes.reader import missing_file
from pyspark_delta.errors import FileNotFoundInStoreError
from pyspark_delta.parallel import map_requests
from pyspark_delta.storage import FileStatus, store_for
from pyspark_delta.storage.paths import split
from pyspark_delta.storage.percent import resolve_column

_PARALLEL_CALLS = 32
_MODIFICATION_TIME = "modification_time"


def with_statuses(files: pa.Table, location: str, storage_options: Mapping[str, str]) -> pa.Table:
    """Return the files of a `ChangeScan`, with their "size" in bytes and "modification_time" in ms from the store.

    Makes one request for each distinct file, several at a time if the store is remote. Raises DataFileError for a file
    that is missing, naming the versions whose changes it held; CorruptLogError for a path that names no file.
    """
    coded = resolve_column(location, files["path"].combine_chunks()).dictionary_encode()
    paths = coded.dictionary.to_pylist()
    is_near = split(location)[0] in ("file", "memory")
    at_once = 1 if is_near else min(_PARALLEL_CALLS, len(paths))
    statuses = list(map_requests(lambda path: _status(path, storage_options), paths, at_once))
    for number, status in enumerate(statuses):
        if status is None:
            versions = files["version"].filter(pc.equal(coded.indices, number)).to_pylist()
            raise missing_file(paths[number], versions)
    found = [status for status in statuses if status is not None]
    known = {"size": [status.size for status in found], _MODIFICATION_TIME: [s.modification_time for s in found]}
    files = files.drop_columns([name for name in known if name in files.column_names])
    for name, numbers in known.items():
        files = files.append_column(name, pa.array(numbers, pa.int64()).take(coded.indices))
    return files


def _status(path: str, storage_options: Mapping[str, str]) -> FileStatus | None:
    try:
        return store_for(path, storage_options).status(path)
    except FileNotFoundInStoreError:
        return None
