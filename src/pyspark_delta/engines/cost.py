"""The cost model: where and how rows are read, changed and written, as limits in bytes, rows and files.

Every limit was measured; see `docs/developers/performance.md`. A limit affects speed and memory, never results.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields, replace

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import InvalidOptionError

_MIB = 1 << 20
_GIVEN = "spark.pyspark_delta.costModel"


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """The limits of work that this process does itself, of work that it sends to tasks, and the size of tasks.

    All sizes are bytes. The process of the driver reads files of a statement itself if they are at most `driver_files`
    and at most `driver_local_bytes` for each core (local files) or `driver_remote_bytes` (a store) of the columns that
    it reads; it writes changed rows of at most `driver_written_bytes` in memory, and rewrites at most
    `driver_rewritten_files` of at most `driver_rewritten_bytes`. A MERGE collects a source of at most `source_bytes` by
    Spark's estimate, and of at most `source_rows` and `source_values` when it is counted; from at most `source_files`
    files it is read without Spark. At most `matched_rows` rows of the table are held for such a merge. Spark broadcasts
    a source of at most `broadcast_rows`. Without Spark, a MERGE holds about `merge_bytes` of its source in memory: a
    larger source is in temporary files, and is merged in parts of a quarter of that size. A merge without equal keys
    compares at most `compared_pairs` pairs of rows. A task reads about `task_bytes`, and a file counts
    `file_open_bytes` more than its size. A thread of this process rewrites at least `thread_bytes`. With `uses_arrow`
    false, Spark runs every statement.
    """

    uses_arrow: bool = True
    driver_files: int = 64
    driver_local_bytes: int = 96 * _MIB
    driver_remote_bytes: int = 32 * _MIB
    driver_written_bytes: int = 32 * _MIB
    driver_rewritten_files: int = 8
    driver_rewritten_bytes: int = 8 * _MIB
    source_bytes: int = 16 * _MIB
    source_rows: int = 500_000
    source_values: int = 4_000_000
    source_files: int = 16
    matched_rows: int = 1_000_000
    broadcast_rows: int = 500_000
    merge_bytes: int = 256 * _MIB
    compared_pairs: int = 500_000_000
    task_bytes: int = 128 * _MIB
    file_open_bytes: int = 4 * _MIB
    thread_bytes: int = 1 * _MIB
    store_threads: int = 8

    def reads_in_driver(self, location: str, files: pa.Table, fraction: float = 1) -> bool:
        """Return True if reading a fraction of the bytes of files here is cheaper than starting a Spark job.

        `files` have the column "size" of `actions.columns`; `location` is that of their table.
        """
        most = self.driver_local_bytes * _cores() if _is_local(location) else self.driver_remote_bytes
        return files.num_rows <= self.driver_files and _bytes(files) * fraction <= most

    def rewrites_in_driver(self, files: pa.Table) -> bool:
        """Return True if rewriting the files in the driver is cheaper than starting a Spark job."""
        return files.num_rows <= self.driver_rewritten_files and _bytes(files) <= self.driver_rewritten_bytes

    def reading_threads(self, location: str) -> int:
        """Return how many threads read files of a table: one for each core, or more if they wait for a store."""
        return min(_cores(), self.store_threads) if _is_local(location) else self.store_threads

    def rewriting_threads(self) -> int:
        """Return how many threads of this process rewrite files at the same time."""
        return min(_cores(), self.store_threads)

    def compacts_in_driver(self, location: str, size: int) -> bool:
        """Return True if combining files of so many bytes here is cheaper than starting a Spark job."""
        return size <= (self.driver_local_bytes * _cores() if _is_local(location) else self.driver_remote_bytes)

    def collected_rows(self, columns: int) -> int:
        """Return how many rows of a source with so many columns a MERGE collects at most."""
        return min(self.source_rows, self.source_values // max(1, columns))

    @classmethod
    def parse(cls, text: str) -> CostModel:
        """Return the model with the limits of a JSON object, such as `{"driver_files": 0}`.

        Raises InvalidOptionError for text that is no JSON object, for unknown limits and for values of another type.
        """
        try:
            given = orjson.loads(text)
        except orjson.JSONDecodeError:
            given = None
        if not isinstance(given, dict):
            raise InvalidOptionError(f"{_GIVEN} is a JSON object such as {{\"driver_files\": 0}}, found '{text}'.")
        defaults = asdict(cls())
        for name, value in given.items():
            if name not in defaults:
                known = ", ".join(field.name for field in fields(cls))
                raise InvalidOptionError(f"{_GIVEN} has no limit '{name}'. The limits are {known}.")
            if type(value) is not type(defaults[name]) or value < 0:
                kind = "true or false" if isinstance(defaults[name], bool) else "a whole number from 0 on"
                raise InvalidOptionError(f"'{name}' of {_GIVEN} is {kind}, found {value!r}.")
        return replace(cls(), **given)


DEFAULT = CostModel()
"""The limits that hold where a session sets no others."""


def _cores() -> int:
    return os.cpu_count() or 1


def _is_local(location: str) -> bool:
    return location.startswith("/")


def _bytes(files: pa.Table) -> int:
    size: int = pc.sum(files["size"]).as_py() or 0
    return size
