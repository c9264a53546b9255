"""Checks of live files by the log alone: paths, names, partition values and sizes (F03, F04, F05, F13, F14)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import DeltaError
from pyspark_delta.log.arrays import map_value
from pyspark_delta.log.reconciliation import file_keys
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.maintenance.checking.live import LiveBatch, LiveTable
from pyspark_delta.maintenance.checking.live_files import Array, hashes
from pyspark_delta.maintenance.checking.state import partition_names
from pyspark_delta.schema.partition_values import HIVE_NULL, parse_partition_column
from pyspark_delta.storage.percent import decode_column

_SMALL = 32 << 20  # bytes
_MANY = 100  # files
_MERGED = 128 << 20  # bytes


class UniquePaths:
    """F03: a path is live once, whatever its spelling and its deletion vector."""

    def __init__(self, table: LiveTable, findings: Findings) -> None:
        self._table, self._findings = table, findings
        self._hashes: list[Array] = []

    def take(self, batch: LiveBatch) -> None:
        self._hashes.append(hashes(file_keys(batch.column("path"), None, self._table.location)))

    def finish(self) -> None:
        if not self._hashes:
            return
        values, counts = np.unique(np.concatenate(self._hashes), return_counts=True)
        repeated = values[counts > 1]
        if not len(repeated):
            return
        self._findings.add(
            "F03",
            f"{len(repeated):,} files are live more than once, such as '{self._example(repeated)}': their rows occur "
            "twice.",
            version=self._table.version,
        )

    def _example(self, repeated: Array) -> str:
        names = partition_names(self._table.configuration)
        for batch in self._table.replay.files("add", ("path",), names):
            paths = batch.column("path")
            found = np.flatnonzero(np.isin(hashes(file_keys(paths, None, self._table.location)), repeated))
            if len(found):
                return str(paths[int(found[0])].as_py())
        return "?"


class PartitionValues:
    """F04 and F05: partition values are of the type of their column, and directories show the same."""

    def __init__(self, table: LiveTable, findings: Findings) -> None:
        self._table, self._findings = table, findings
        schema = table.configuration.schema
        names = partition_names(table.configuration)
        fields = [schema.find(name) for name in table.configuration.partition_columns]
        self._columns = [(name, f) for name, f in zip(names, fields, strict=True) if f is not None]
        self._other_directories = 0

    def take(self, batch: LiveBatch) -> None:
        maps = batch.column("partition_values")
        for name, field in self._columns:
            texts = map_value(maps, name).cast(pa.string())
            try:
                values = parse_partition_column(texts, field.type, column=field.name)
            except DeltaError as error:
                self._report(error.message)
                continue
            if not field.nullable and values.null_count:
                at = int(np.flatnonzero(np.asarray(values.is_null()))[0])
                self._report(
                    f"The partition column '{field.name}' is NOT NULL, and the file "
                    f"'{batch.column('path')[at].as_py()}' has null for it."
                )
            self._check_directories(batch, name, field.name, texts)

    def _report(self, message: str) -> None:
        self._findings.add("F04", message, version=self._table.version)

    def _check_directories(self, batch: LiveBatch, physical: str, logical: str, texts: pa.Array) -> None:
        if not self._findings.wants("F05"):
            return
        paths = decode_column(batch.column("path"))
        for name in {physical, logical}:
            start = f"(?:^|/){_escaped(name)}="
            shown = pc.struct_field(pc.extract_regex(paths, f"{start}(?P<value>[^/]*)/"), [0])
            if shown.null_count == len(shown):
                continue
            # A value is escaped in the name of its directory, in ways that differ from writer to writer.
            differs = pc.not_equal(_plain(shown), _plain(pc.fill_null(texts, HIVE_NULL)))
            differs = pc.and_(differs, pc.invert(pc.match_substring(shown, "%")))
            number = pc.fill_null(differs, False).true_count
            if number and not self._other_directories:
                at = int(np.flatnonzero(np.asarray(pc.fill_null(differs, False)))[0])
                self._findings.add(
                    "F05",
                    f"The directory of '{batch.column('path')[at].as_py()}' does not show the partition value "
                    f"{texts[at].as_py()!r} of the column '{logical}'.",
                    version=self._table.version,
                )
            self._other_directories += number

    def finish(self) -> None:
        pass


def _escaped(name: str) -> str:
    return "".join(character if character.isalnum() else f"\\x{{{ord(character):x}}}" for character in name)


def _plain(texts: pa.Array) -> pa.Array:
    """Return texts without what writers spell differently: times, and the empty text for null."""
    return pc.replace_substring_regex(pc.replace_substring_regex(texts, "[T ]", " "), r"(\.0+)?Z?$", "")


class HiddenNames:
    """F13: names below a table that begin with `_` or `.` are hidden from vacuums and from other readers (C005)."""

    def __init__(self, table: LiveTable, findings: Findings) -> None:
        self._table, self._findings = table, findings
        self._number, self._example = 0, ""

    def take(self, batch: LiveBatch) -> None:
        paths = file_keys(batch.column("path"), None, self._table.location)
        names = pc.replace_substring_regex(paths, "(?:^|/)[^/]*=[^/]*", "")  # directories of partition columns
        hidden = pc.and_(
            pc.match_substring_regex(names, "(?:^|/)[._]"), pc.invert(pc.match_substring_regex(paths, "^/|^[a-z0-9]+:"))
        )
        if hidden.true_count:
            self._number += hidden.true_count
            self._example = self._example or paths.filter(hidden)[0].as_py()

    def finish(self) -> None:
        if self._number:
            self._findings.add(
                "F13",
                f"The names of {self._number:,} live files, such as '{self._example}', are those of hidden files.",
                version=self._table.version,
            )


class Sizes:
    """F14: how many files are small enough to be compacted."""

    def __init__(self, table: LiveTable, findings: Findings) -> None:
        self._table, self._findings = table, findings
        self._small = self._bytes = self._all = 0

    def take(self, batch: LiveBatch) -> None:
        sizes = batch.column("size")
        small = sizes.filter(pc.fill_null(pc.less(sizes, _SMALL), False))
        self._all += len(batch)
        self._small += len(small)
        self._bytes += pc.sum(small).as_py() or 0

    def finish(self) -> None:
        merged = -(-self._bytes // _MERGED)
        if self._small >= _MANY and merged * 2 <= self._small:
            self._findings.add(
                "F14",
                f"{self._small:,} of {self._all:,} files are smaller than 32 MiB; {merged:,} files could hold their "
                f"{self._bytes:,} bytes.",
                version=self._table.version,
            )
