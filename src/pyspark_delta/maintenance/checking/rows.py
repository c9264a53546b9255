"""Checks that read all rows: that they can be read, and that statistics and row ids hold for them (F08, S03, R04)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.reader import read_task, tasks_of
from pyspark_delta.errors import DeletionVectorError, DeltaError, UnsupportedDataFileError
from pyspark_delta.features import Feature, is_active
from pyspark_delta.log.request import FileRequest
from pyspark_delta.maintenance.checking.catalogue import Severity
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.maintenance.checking.live_files import Array
from pyspark_delta.parallel import map_requests
from pyspark_delta.scan.file_source import file_source
from pyspark_delta.scan.plan import ReadContext, ScanTask
from pyspark_delta.scan.planner import ROW_ID_COLUMN, plan_scan
from pyspark_delta.scan.statistics import StatisticsLeaf, statistics_leaves
from pyspark_delta.schema.types import DOUBLE, TIMESTAMP, TIMESTAMP_NTZ, DataType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.stats.parse import parse_stats

_THREADS = 4
_COLUMNS = ("path", "size", "partition_values", "deletion_vector", "stats")
_TRACKED = ("base_row_id", "default_row_commit_version")
_MOST_ROW_IDS = 100_000_000


@dataclass
class _Read:
    """What reading one file found."""

    path: str
    problems: list[tuple[str, str, Severity | None]] = field(default_factory=list)
    row_ids: list[Array] = field(default_factory=list)


def check_rows(snapshot: Snapshot, findings: Findings) -> None:
    """Read every live file."""
    if not findings.wants("F08", "S03", "R04"):
        return
    has_ids = is_active(snapshot.configuration, Feature.ROW_TRACKING)
    plain = plan_scan(snapshot).context
    numbered = file_source(snapshot).read_context(row_ids=True, time_zone="UTC") if has_ids else plain
    leaves = [leaf for leaf in statistics_leaves(snapshot.configuration) if len(leaf.physical.path) == 2]
    ids: list[Array] = []
    number = 0

    def read(entry: tuple[ScanTask, str | None]) -> _Read:
        task = entry[0]  # a file without ids can be read otherwise: R01 reports it
        return _read(plain if task.base_row_id is None else numbered, leaves, *entry)

    for done in map_requests(read, _tasks(snapshot, has_ids), _THREADS):
        for id_, problem, severity in done.problems:
            findings.add(id_, problem, version=snapshot.version, file=done.path, severity=severity)
        number += sum(map(len, done.row_ids))
        if number <= _MOST_ROW_IDS:
            ids += done.row_ids
    if number > _MOST_ROW_IDS:
        findings.skip(f"Row ids were not compared, because there are more than {_MOST_ROW_IDS:,}.")
    elif ids:
        _check_unique(np.concatenate(ids), snapshot, findings)


def _check_unique(ids: Array, snapshot: Snapshot, findings: Findings) -> None:
    repeated = len(ids) - len(np.unique(ids))
    if repeated:
        findings.add("R04", f"{repeated:,} rows have the row id of another row.", version=snapshot.version)


def _tasks(snapshot: Snapshot, has_ids: bool) -> Iterator[tuple[ScanTask, str | None]]:
    columns = (*_COLUMNS, *(_TRACKED if has_ids else ()))
    for batch in snapshot.read_files(FileRequest(columns)):
        table = pa.Table.from_batches([batch])
        yield from zip(tasks_of(table), batch.column("stats").to_pylist(), strict=True)


def _read(context: ReadContext, leaves: list[StatisticsLeaf], task: ScanTask, stats: str | None) -> _Read:
    done = _Read(task.path)
    bounds = _Bounds(leaves, stats)
    try:
        for batch in read_task(context, task):
            bounds.take(batch)
            if ROW_ID_COLUMN in batch.schema.names:
                done.row_ids.append(np.asarray(pc.fill_null(batch.column(ROW_ID_COLUMN), -1)))
    except DeletionVectorError:
        return done  # reported with the vectors
    except UnsupportedDataFileError as error:
        done.problems.append(("F08", error.message, Severity.WARNING))
        return done
    except (DeltaError, pa.ArrowException) as error:
        is_missing = isinstance(error, DeltaError) and error.error_class == "DELTA_FILE_NOT_FOUND_DETAILED"
        if not is_missing:  # reported by the listing
            done.problems.append(("F08", error.message if isinstance(error, DeltaError) else str(error), None))
        return done
    done.problems += [("S03", f"The file '{task.path}' {problem}.", None) for problem in bounds.problems()]
    return done


class _Bounds:
    """The bounds of the rows of a file, against its statistics (C408 to C412)."""

    def __init__(self, leaves: list[StatisticsLeaf], stats: str | None) -> None:
        self._wrong: dict[str, str] = {}
        self._columns: list[tuple[str, DataType, pa.Scalar, pa.Scalar]] = []
        if stats is None or not leaves:
            return
        values = parse_stats(pa.array([stats], pa.string()), [leaf.physical for leaf in leaves])
        found: dict[tuple[str, str], pa.Scalar] = {}
        for leaf in leaves:
            kind, name = leaf.physical.path
            column = values.column(values.schema.get_field_index(kind)) if kind in values.schema.names else None
            if column is not None:
                found[kind, leaf.logical.path[1]] = pc.struct_field(column, [name])[0]
        for leaf in leaves:
            if leaf.physical.path[0] == "minValues":
                name = leaf.logical.path[1]
                low, high = found.get(("minValues", name)), found.get(("maxValues", name))
                if low is not None and high is not None and (low.is_valid or high.is_valid):
                    self._columns.append((name, leaf.logical.type, low, high))

    def take(self, batch: pa.RecordBatch) -> None:
        """Compare some rows with the statistics."""
        for name, data_type, low, high in self._columns:
            position = batch.schema.get_field_index(name)
            if position < 0 or name in self._wrong:
                continue
            column = batch.column(position)
            if pa.types.is_floating(column.type):
                column = column.filter(pc.invert(pc.fill_null(pc.is_nan(column), True)))
            if column.null_count == len(column):
                continue
            if low.is_valid and pc.any(pc.less(column, _lower(low, data_type))).as_py():
                self._wrong[name] = f"has rows with '{name}' below its minimum {low.as_py()!s:.60}"
            elif high.is_valid and pc.any(pc.greater(column, _upper(high, data_type))).as_py():
                self._wrong[name] = f"has rows with '{name}' above its maximum {high.as_py()!s:.60}"

    def problems(self) -> list[str]:
        """Return one problem for each column whose bounds do not hold."""
        return list(self._wrong.values())


def _lower(bound: pa.Scalar, data_type: DataType) -> pa.Scalar:
    """Return the bound that a minimum stands for."""
    return _as_float(bound, min) if data_type == DOUBLE else bound


def _upper(bound: pa.Scalar, data_type: DataType) -> pa.Scalar:
    """Return the bound that a maximum stands for: times are cut to milliseconds (C412)."""
    if data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        return pa.scalar(bound.value + 1000, pa.int64()).cast(bound.type)
    return _as_float(bound, max) if data_type == DOUBLE else bound


def _as_float(bound: pa.Scalar, choose: Callable[[float, float], float]) -> pa.Scalar:
    """Return the bound of a column that was widened from float: its text is shorter than the value."""
    value: float = bound.as_py()
    with np.errstate(over="ignore"):
        single = float(np.float32(value))
    return pa.scalar(choose(value, single) if np.isfinite(single) else value, bound.type)
