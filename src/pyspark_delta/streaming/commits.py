"""The commits of a table as a stream sees them: the files that each adds, and what else it changes.

A commit is read once; the files of many commits are parsed together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import (
    BASE_ROW_ID,
    DATA_CHANGE,
    DEFAULT_ROW_COMMIT_VERSION,
    DELETION_VECTOR,
    MODIFICATION_TIME,
    PARTITION_VALUES,
    PATH,
    SIZE,
    STATS,
)
from pyspark_delta.actions.decode import decode_commit_info, decode_metadata, decode_protocol
from pyspark_delta.actions.model import CommitInfo, Metadata, Protocol
from pyspark_delta.log.commits import CommitText, read_commits, single
from pyspark_delta.log.line_columns import parse_lines
from pyspark_delta.log.segment import CommitFile
from pyspark_delta.storage import ObjectStore

FILE_COLUMNS = (
    PATH,
    PARTITION_VALUES,
    SIZE,
    MODIFICATION_TIME,
    STATS,
    DELETION_VECTOR,
    BASE_ROW_ID,
    DEFAULT_ROW_COMMIT_VERSION,
)
"""The columns of the files of a stream."""


@dataclass(frozen=True, slots=True)
class StreamCommit:
    """One commit: `files` are its `add` actions with `dataChange`, in the order of the log.

    `removes` is True if it also removes files with `dataChange`. `protocol` and `metadata` are None if it does not
    change them. `modified` is the modification time of the commit file in ms since the epoch.
    """

    version: int
    files: pa.Table
    removes: bool
    protocol: Protocol | None
    metadata: Metadata | None
    info: CommitInfo | None
    modified: int

    @property
    def operation(self) -> str:
        """The operation in the history of the table."""
        return "" if self.info is None else str(self.info.values.get("operation", ""))


def load_commits(store: ObjectStore, files: Sequence[CommitFile], partition_names: Sequence[str]) -> list[StreamCommit]:
    """Read some commits. `partition_names` are the physical names of the partition columns. Raises CorruptLogError."""
    texts = list(read_commits(store, files))
    adds = _changing(texts, "add", FILE_COLUMNS, partition_names)
    removes = _changing(texts, "remove", (PATH,), ())
    return [
        StreamCommit(
            version=text.version,
            files=added,
            removes=removed.num_rows > 0,
            protocol=_protocol(text),
            metadata=_metadata(text),
            info=_info(text),
            modified=commit.file.modification_time,
        )
        for text, commit, added, removed in zip(texts, files, adds, removes, strict=True)
    ]


def _changing(
    texts: Sequence[CommitText], action: str, columns: tuple[pa.Field, ...], partition_names: Sequence[str]
) -> Iterator[pa.Table]:
    """Yield for each commit its actions of one kind that declare a change of data (C173)."""
    lines = [text.lines_of(action) for text in texts]
    fields = (*columns, DATA_CHANGE)
    together = [line for of_commit in lines for line in of_commit]
    counts = np.array([len(of_commit) for of_commit in lines], np.int64)
    owners = np.repeat(np.arange(len(texts)), counts)

    def locate(line: bytes) -> tuple[str, int]:
        text = texts[int(owners[together.index(line)])]
        return text.path, text.lines().index(line) + 1 if line in text.lines() else 0

    parsed = list(parse_lines(together, action, fields, partition_names, locate)) if together else []
    table = pa.Table.from_batches(parsed, pa.schema(fields))
    changing = pc.fill_null(table[DATA_CHANGE.name], True)
    table = table.filter(changing).drop_columns([DATA_CHANGE.name]).combine_chunks()
    kept = np.bincount(owners[np.asarray(changing)], minlength=len(texts)) if len(owners) else counts
    start = 0
    for count in kept.tolist():
        yield table.slice(start, count)
        start += count


def _protocol(text: CommitText) -> Protocol | None:
    found = single(text.fields("protocol"), text.path, "protocol")
    return None if found is None else decode_protocol(found)


def _metadata(text: CommitText) -> Metadata | None:
    found = single(text.fields("metaData"), text.path, "metaData")
    return None if found is None else decode_metadata(found)


def _info(text: CommitText) -> CommitInfo | None:
    found = text.fields("commitInfo")
    return decode_commit_info(found[0]) if found else None
