"""What the batches of a stream contain: the interface between the planner and the two kinds of streams."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from pyspark_delta.changes.configuration_ranges import Declared
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.log.segment import CommitFile
from pyspark_delta.scan.file_source import FileSource
from pyspark_delta.schema.types import StructType
from pyspark_delta.storage import ObjectStore
from pyspark_delta.streaming.admission import Sizes
from pyspark_delta.streaming.initial import InitialFiles


class Versioned(Protocol):
    """A commit as a stream sees it."""

    @property
    def version(self) -> int:
        """The version."""
        ...

    @property
    def declared(self) -> Declared:
        """The protocol and the metadata that it changes."""
        ...


C = TypeVar("C", bound=Versioned)


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """Files of a batch that are read in one way.

    `files` has the columns of `commits.FILE_COLUMNS`, or those of a `changes.plan.ChangeScan` if they are changes.
    Only rows that meet the condition `only` are in the batch; it may name additional columns of `source`.
    """

    source: FileSource
    files: pa.Table
    only: Expression | None = None


@dataclass(frozen=True, slots=True)
class Piece(Generic[C]):
    """The files of a commit from index `first` to before `end`; None is the end of the commit."""

    commit: C
    first: int
    end: int | None


@dataclass(frozen=True, slots=True)
class InitialPiece:
    """The files of the initial snapshot from index `first` to before `end`."""

    initial: InitialFiles
    first: int
    end: int

    @property
    def files(self) -> pa.Table:
        """The files, with the columns of `commits.FILE_COLUMNS`."""
        return self.initial.files(self.first, self.end)


class Contents(Protocol[C]):
    """One kind of stream over a table. Commits are passed in order, from the position of a stream on."""

    @property
    def schema(self) -> StructType:
        """The logical schema of the rows."""
        ...

    @property
    def where(self) -> Expression | None:
        """A condition on the rows by which files are skipped."""
        ...

    def load(self, store: ObjectStore, files: Sequence[CommitFile]) -> Sequence[C]:
        """Read some commits. Raises CorruptLogError."""
        ...

    def sizes(self, commit: C) -> Sizes:
        """Return the files of a commit that the stream returns. Raises StreamError, or another error of the kind of
        stream, if it cannot go on.
        """
        ...

    def batch(self, initial: InitialPiece | None, pieces: Sequence[Piece[C]]) -> list[BatchFiles]:
        """Return the files of a batch. Raises the errors of `sizes`."""
        ...


def without_excluded(files: pa.Table, exclude: re.Pattern[str] | None) -> pa.Table:
    """Return the files whose path an expression does not match."""
    if exclude is None or not files.num_rows:
        return files
    keep = [exclude.search(path) is None for path in files["path"].to_pylist()]
    return files.filter(pa.array(keep, pa.bool_()))
