"""Checks that open files: footers against the log, and deletion vectors (F06, F07, S03, D01, D02)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.data.layouts import Layouts
from pyspark_delta.data.opened import check_chunks, opened_file
from pyspark_delta.deletion_vectors import read_deletion_vector
from pyspark_delta.errors import DeletionVectorError, DeltaError, FileNotFoundInStoreError, UnsupportedDataFileError
from pyspark_delta.expressions.tree import Column
from pyspark_delta.log.request import FileRequest
from pyspark_delta.maintenance.checking.catalogue import Severity
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.parallel import map_requests
from pyspark_delta.scan.plan import ReadContext
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.types import BYTE, INTEGER, LONG, SHORT
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.stats.parse import parse_stats
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import resolve_file

_THREADS = 16
_INTEGERS = (BYTE, SHORT, INTEGER, LONG)
_NUM_RECORDS = Column(("numRecords",), LONG)


@dataclass(frozen=True)
class _File:
    """One live file: what the log says of it."""

    path: str
    vector: DeletionVectorDescriptor | None
    records: int | None
    bounds: dict[str, tuple[int | None, int | None]]


Problem = tuple[str, str, Severity | None]


def check_footers(snapshot: Snapshot, findings: Findings) -> None:
    """Open every live file, and check its footer and its deletion vector."""
    if not findings.wants("F06", "F07", "S03", "D01", "D02"):
        return
    columns = _integer_columns(snapshot)
    context = plan_scan(snapshot, where="false").context if snapshot.schema.fields else None
    layouts = None if context is None else Layouts(_without_residual(context), ())

    def examine(file: _File) -> tuple[_File, list[Problem]]:
        return file, list(_examine(snapshot, file, layouts))

    threads = 4 if snapshot.location.startswith("/") else _THREADS
    for file, problems in map_requests(examine, _files(snapshot, columns), threads):
        for id_, problem, severity in problems:
            findings.add(id_, problem, version=snapshot.version, file=file.path, severity=severity)


def _without_residual(context: ReadContext) -> ReadContext:
    return ReadContext(
        table_location=context.table_location,
        columns=context.columns,
        output=context.output,
        column_mapping_mode=context.column_mapping_mode,
        storage_options=context.storage_options,
        time_zone=context.time_zone,
    )


def _integer_columns(snapshot: Snapshot) -> dict[str, Column]:
    """Return the integer columns at the top, whose bounds are exact, by physical name."""
    mode, partitions = mapping_mode(snapshot.configuration), set(snapshot.configuration.partition_columns)
    fields = [physical_field(f, mode) for f in snapshot.schema if f.name not in partitions and f.type in _INTEGERS]
    return {field.name: Column((field.name,), field.type) for field in fields}


def _files(snapshot: Snapshot, columns: dict[str, Column]) -> Iterator[_File]:
    leaves = [_NUM_RECORDS]
    for bound in ("minValues", "maxValues"):
        leaves += [Column((bound, name), column.type) for name, column in columns.items()]
    for batch in snapshot.read_files(FileRequest(("path", "deletion_vector", "stats"))):
        stats = parse_stats(batch.column("stats"), leaves).to_pylist()
        rows = zip(batch.column("path").to_pylist(), batch.column("deletion_vector").to_pylist(), stats, strict=True)
        for path, vector, values in rows:
            low, high = values.get("minValues") or {}, values.get("maxValues") or {}
            yield _File(
                path,
                None if vector is None else DeletionVectorDescriptor(**vector),
                values["numRecords"],
                {name: (low.get(name), high.get(name)) for name in columns},
            )


def _examine(snapshot: Snapshot, file: _File, layouts: Layouts | None) -> Iterator[Problem]:
    location = resolve_file(snapshot.location, file.path)
    rows: int | None = file.records
    try:
        with opened_file(location, snapshot.storage_options) as parquet:
            rows = parquet.metadata.num_rows
            if file.records is not None and rows != file.records:
                problem = f"The file '{file.path}' has {rows:,} records, and its statistics say {file.records:,}."
                yield "F06", problem, None
            if layouts is not None:
                layouts.layout_of(parquet, location)
            if file.vector is None:
                yield from _bounds(file, parquet)
    except UnsupportedDataFileError as error:
        yield "F07", error.message, Severity.WARNING
    except DeltaError as error:
        if error.error_class != "DELTA_FILE_NOT_FOUND_DETAILED":  # reported by the listing
            yield "F07", error.message, None
    if file.vector is not None:
        yield from _vector(snapshot, file, file.vector, rows)


def _vector(snapshot: Snapshot, file: _File, vector: DeletionVectorDescriptor, rows: int | None) -> Iterator[Problem]:
    if vector.storage_type == "i":
        return  # decoded with the log

    def store(location: str) -> Any:
        return store_for(location, snapshot.storage_options)

    try:
        bitmap = read_deletion_vector(store, snapshot.location, vector, data_file=file.path)
    except DeletionVectorError as error:
        if not isinstance(error.__context__, FileNotFoundInStoreError):  # reported by the listing
            yield "D02" if "cardinality" in error.facts else "D01", error.message, None
        return
    except DeltaError:
        return  # a store that cannot be asked, which the listing notes
    if bitmap and rows is not None and bitmap.max() >= rows:
        problem = f"The deletion vector of '{file.path}' names row {bitmap.max():,}, and the file has {rows:,}."
        yield "D02", problem, None


def _bounds(file: _File, parquet: pq.ParquetFile) -> Iterator[Problem]:
    """Compare bounds of integers with those of the footer (S03)."""
    metadata = parquet.metadata
    positions = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    for name, (low, high) in file.bounds.items():
        position = positions.get(name)
        if position is None or (low is None and high is None):
            continue
        check_chunks(parquet, file.path, [position])
        found = _footer_bounds(metadata, position)
        if found is None:
            continue
        if low is not None and found[0] < low:
            problem = f"The file '{file.path}' has the value {found[0]} in '{name}', below its minimum {low}."
            yield "S03", problem, None
        if high is not None and found[1] > high:
            problem = f"The file '{file.path}' has the value {found[1]} in '{name}', above its maximum {high}."
            yield "S03", problem, None


def _footer_bounds(metadata: pq.FileMetaData, position: int) -> tuple[int, int] | None:
    lows: list[int] = []
    highs: list[int] = []
    for group in range(metadata.num_row_groups):
        column = metadata.row_group(group).column(position)
        statistics = column.statistics
        if statistics is None or not statistics.has_min_max:
            if statistics is not None and statistics.has_null_count and statistics.null_count == column.num_values:
                continue
            return None
        if not isinstance(statistics.min, int) or not isinstance(statistics.max, int):
            return None
        lows.append(statistics.min)
        highs.append(statistics.max)
    return (min(lows), max(highs)) if lows else None
