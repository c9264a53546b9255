"""The commits of a table as a stream sees them: the files that each adds, and what else it changes.

A commit is read once; the files of many commits are parsed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import CLUSTERING_PROVIDER, DATA_CHANGE, FILE_FIELDS, PATH, TAGS
from pyspark_delta.actions.model import CommitInfo
from pyspark_delta.changes.commits import commit_info, declared_in
from pyspark_delta.changes.configuration_ranges import Declared
from pyspark_delta.log.commits import CommitText
from pyspark_delta.log.line_columns import parse_lines

FILE_COLUMNS = tuple(field for field in FILE_FIELDS if field not in (TAGS, CLUSTERING_PROVIDER))
"""The columns of the files of a stream."""


@dataclass(frozen=True, slots=True)
class StreamCommit:
    """One commit. Its files are its `add` actions with `dataChange`, in the order of the log: the rows of `parsed`, the
    files of commits that were parsed together, from `start` to before `end`.

    `removes` is True if it also removes files with `dataChange`. `possible` is True for each row of `parsed` that a
    condition on the rows does not rule out; None without a condition.
    """

    declared: Declared
    info: CommitInfo | None
    parsed: pa.Table
    start: int
    end: int
    removes: bool
    possible: pa.BooleanArray | None = None

    @property
    def operation(self) -> str:
        """The operation in the history of the table."""
        return "" if self.info is None else str(self.info.values.get("operation", ""))

    @property
    def version(self) -> int:
        """The version."""
        return self.declared.version

    @property
    def num_files(self) -> int:
        """The number of files."""
        return self.end - self.start


def load_commits(texts: Sequence[CommitText], partition_names: Sequence[str]) -> list[StreamCommit]:
    """Parse some commits. `partition_names` are the physical names of the partition columns. Raises CorruptLogError."""
    parsed, ends = _changing(texts, "add", FILE_COLUMNS, partition_names)
    _, removed = _changing(texts, "remove", (PATH,), ())
    starts = [0, *ends]
    removes = np.diff(removed, prepend=0) > 0
    return [
        StreamCommit(declared_in(text), commit_info(text), parsed, starts[number], ends[number], bool(removes[number]))
        for number, text in enumerate(texts)
    ]


def _changing(
    texts: Sequence[CommitText], action: str, columns: tuple[pa.Field, ...], partition_names: Sequence[str]
) -> tuple[pa.Table, list[int]]:
    """Return the actions of one kind that declare a change of data (C173), and the row at which each commit ends."""
    lines = [text.lines_of(action) for text in texts]
    fields = (*columns, DATA_CHANGE)
    together = [line for of_commit in lines for line in of_commit]
    ends = np.cumsum([len(of_commit) for of_commit in lines], dtype=np.int64)

    def locate(line: bytes) -> tuple[str, int]:
        text = texts[int(np.searchsorted(ends, together.index(line), side="right"))]
        return text.path, text.lines().index(line) + 1 if line in text.lines() else 0

    parsed = list(parse_lines(together, action, fields, partition_names, locate)) if together else []
    table = pa.Table.from_batches(parsed, pa.schema(fields))
    changing = pc.fill_null(table[DATA_CHANGE.name], True)
    kept = np.concatenate([[0], np.cumsum(changing.to_numpy(), dtype=np.int64)])
    return table.filter(changing).drop_columns([DATA_CHANGE.name]).combine_chunks(), kept[ends].tolist()
