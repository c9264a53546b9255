"""Checks of deletion vectors by the log alone: their feature, their numbers, those inside the log (D01 to D05)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.deletion_vectors import each_vector_location, read_deletion_vector
from pyspark_delta.errors import DeltaError
from pyspark_delta.features import Feature, is_supported
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.maintenance.checking.live import LiveBatch, LiveTable
from pyspark_delta.storage.paths import join

_MOST_INLINE = 100_000  # vectors in the log that are decoded


class Vectors:
    """D01, D02, D03 and D05, as far as the log tells."""

    def __init__(self, table: LiveTable, findings: Findings) -> None:
        self._table, self._findings = table, findings
        self._is_supported = is_supported(table.configuration, Feature.DELETION_VECTORS)
        self._inline = self._unsupported = self._empty = 0

    def take(self, batch: LiveBatch) -> None:
        vectors = batch.column("deletion_vector")
        if vectors.null_count == len(vectors):
            return
        present = pc.is_valid(vectors)
        if not self._is_supported:
            self._unsupported += present.true_count
        deleted = pc.struct_field(vectors, "cardinality")
        self._empty += pc.fill_null(pc.greater_equal(deleted, batch.records), False).true_count
        self._check_numbers(batch, vectors, deleted)
        kinds = pc.struct_field(vectors, "storage_type")
        self._check_kinds(batch, kinds)
        for at in np.flatnonzero(np.asarray(pc.fill_null(pc.equal(kinds, "i"), False))).tolist():
            if self._inline >= _MOST_INLINE:
                self._findings.skip(f"Only {_MOST_INLINE:,} of the deletion vectors inside the log were decoded.")
                break
            self._inline += 1
            self._check_inline(batch.column("path")[at].as_py(), vectors[at].as_py(), batch.records[at].as_py())

    def _check_numbers(self, batch: LiveBatch, vectors: pa.StructArray, deleted: pa.Array) -> None:
        too_many = pc.fill_null(pc.greater(deleted, batch.records), False)
        if too_many.true_count:
            at = int(np.flatnonzero(np.asarray(too_many))[0])
            self._add(
                "D02",
                batch.column("path")[at].as_py(),
                f"deletes {deleted[at].as_py():,} rows of {batch.records[at].as_py():,}",
            )
        negative = pc.fill_null(pc.less(pc.struct_field(vectors, "size_in_bytes"), 0), False)
        if negative.true_count:
            at = int(np.flatnonzero(np.asarray(negative))[0])
            self._add("D01", batch.column("path")[at].as_py(), "has a negative size")

    def _check_kinds(self, batch: LiveBatch, kinds: pa.Array) -> None:
        for kind in kinds.unique().drop_null().to_pylist():
            if kind not in ("u", "i", "p"):
                at = int(np.flatnonzero(np.asarray(pc.fill_null(pc.equal(kinds, kind), False)))[0])
                self._add("D01", batch.column("path")[at].as_py(), f"has the storage type {kind!r}, which is not known")

    def _check_inline(self, path: str, vector: dict[str, Any], records: int | None) -> None:
        try:
            rows = read_deletion_vector(_no_store, self._table.location, DeletionVectorDescriptor(**vector))
        except DeltaError as error:
            self._findings.add(
                "D02" if "cardinality" in error.facts else "D01",
                f"The deletion vector of '{path}' cannot be read: {error.message}",
                version=self._table.version,
                file=path,
            )
            return
        if rows and records is not None and rows.max() >= records:
            self._add("D02", path, f"names row {rows.max():,}, and the file has {records:,}")

    def _add(self, id_: str, path: str, problem: str) -> None:
        self._findings.add(id_, f"The deletion vector of '{path}' {problem}.", version=self._table.version, file=path)

    def finish(self) -> None:
        if self._unsupported:
            self._findings.add(
                "D03",
                f"{self._unsupported:,} files have deletion vectors, and the protocol does not support them.",
                version=self._table.version,
            )
        if self._empty:
            self._findings.add(
                "D05", f"All rows of {self._empty:,} live files are deleted.", version=self._table.version
            )


class VectorPlaces:
    """D04: vector files outside of the table, as of shallow clones, and in directories of partitions (C008)."""

    def __init__(self, table: LiveTable, findings: Findings) -> None:
        self._table, self._findings = table, findings
        self._root = join(table.location, "")
        self._outside = self._partitioned = 0

    def take(self, batch: LiveBatch) -> None:
        vectors = batch.column("deletion_vector")
        kinds = pc.struct_field(vectors, "storage_type")
        in_files = vectors.filter(pc.fill_null(pc.is_in(kinds, value_set=pa.array(["u", "p"], kinds.type)), False))
        if not len(in_files):
            return
        try:
            places = each_vector_location(self._table.location, in_files).drop_null()
        except DeltaError:
            return  # found by D01
        inside = pc.starts_with(places, self._root)
        self._outside += len(places) - inside.true_count
        below = pc.utf8_slice_codeunits(places.filter(inside), len(self._root))
        self._partitioned += pc.match_substring_regex(below, "(^|/)[^/]+=[^/]*/").true_count

    def finish(self) -> None:
        found = {
            "are outside of the table; other tables may share them": self._outside,
            "are in directories of partitions": self._partitioned,
        }
        for problem, count in found.items():
            if count:
                message = f"The deletion vectors of {count:,} files {problem}."
                self._findings.add("D04", message, version=self._table.version)


def _no_store(location: str) -> Any:
    raise AssertionError(location)  # a vector in the log is in no file
