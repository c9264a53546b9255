"""The contract of decoders: another library decodes data files, or says why it cannot read them exactly.

`DataFileReader` asks its decoder first and decodes with PyArrow what the decoder declines. A decoder never guesses: it
declines files that are damaged, missing, or not as it expects, so PyArrow reads them or raises the error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_delta.data.layouts import Layout
from pyspark_delta.data.opened import check_chunks
from pyspark_delta.data.raw_rows import Leaves, RowSelection
from pyspark_delta.scan.plan import ScanTask

DataFile: TypeAlias = tuple[ScanTask, Mapping[str, pa.Scalar], RowSelection]
"""A file to read: its task, its typed partition values by physical name, and the rows to read."""


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file that is being read; its footer is known."""

    parquet: pq.ParquetFile
    path: str
    layout: Layout
    task: ScanTask
    constants: Mapping[str, pa.Scalar]
    checked: set[int] = field(default_factory=set)

    def check(self, leaves: Leaves) -> None:
        """Check the chunks of some leaves, each once. Raises DataFileError for damaged ones."""
        new = [leaf for leaf in leaves if leaf not in self.checked]
        if new:
            check_chunks(self.parquet, self.path, new)
            self.checked.update(new)


@dataclass(frozen=True, slots=True)
class CannotDecode:
    """The decoder does not read the rows. `reason` is a clause without a full stop, for the log of the package."""

    reason: str


Decoded: TypeAlias = list[pa.RecordBatch]
"""The rows that were asked for, in order: deletion vectors, the residual predicate and the output are applied."""


class Decoder(Protocol):
    """Decodes the files of one context; thread-safe. Raises DeletionVectorError and ComputationError as the reader."""

    @property
    def has_views(self) -> bool:
        """True if texts and binaries are views. Batches then lack the schema of `output_schema`."""

    @property
    def unit(self) -> tuple[int, int]:
        """The most bytes and the number of files that are read at once."""

    def takes_unopened(self, task: ScanTask) -> bool:
        """Return True if a file is decoded without reading its footer first."""

    def decode_files(self, files: Sequence[DataFile]) -> Decoded | CannotDecode:
        """Decode whole files for which `takes_unopened` is true. Their footers are not known."""

    def decode_row_groups(
        self, file: OpenedFile, groups: Sequence[int], first: int, selection: RowSelection, *, late: bool
    ) -> Decoded | CannotDecode:
        """Decode adjacent row groups of a file. `first` is the position of their first row in the file.

        With `late`, columns outside the residual are decoded only of row groups with rows for which it is true.
        """
