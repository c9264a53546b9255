"""Checks of statistics in the log: their text, and their values against each other (S01, S02, S04, P08)."""

from __future__ import annotations

import json
from dataclasses import dataclass

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from pyspark_delta.errors import DeltaError
from pyspark_delta.features import Feature, is_active
from pyspark_delta.maintenance.checking.catalogue import Severity
from pyspark_delta.maintenance.checking.commit_contents import Contents
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.maintenance.checking.live import LiveBatch, LiveTable, texts
from pyspark_delta.maintenance.checking.live_files import UNKNOWN, Array
from pyspark_delta.maintenance.checking.state import TableState
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.declaration_keys import IDENTITY_ALLOW_EXPLICIT_INSERT, IDENTITY_MARK, IDENTITY_STEP
from pyspark_delta.schema.types import StructField


# -------------------------------------------------------------------------------------------------------------- text
def check_texts(table: LiveTable, findings: Findings) -> None:
    """Check that the statistics of every live file are a JSON object (S01)."""
    wrong = 0
    for batch in texts(table):
        column = batch.column("stats").drop_null()
        if not len(column) or _are_objects(column):
            continue
        for path, text in zip(batch.column("path").to_pylist(), batch.column("stats").to_pylist(), strict=True):
            if text is None or _is_object(text):
                continue
            wrong += 1
            findings.add(
                "S01",
                f"The statistics of '{path}' are not a JSON object: {text[:60]!r}.",
                version=table.version,
                file=path,
            )


def _are_objects(column: pa.Array) -> bool:
    """Return True if Arrow can parse all texts, each as an object."""
    if not pc.all(pc.match_substring_regex(column, r"^\s*\{")).as_py():
        return False
    blob = "".join(column.to_pylist()).encode()
    try:
        table = pj.read_json(
            pa.BufferReader(blob),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(blob) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([("numRecords", pa.int64())]), unexpected_field_behavior="ignore"
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return bool(table.num_rows == len(column))


def _is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        pass
    try:
        return isinstance(json.loads(text), dict)  # which accepts NaN
    except (ValueError, RecursionError):
        return False


# ------------------------------------------------------------------------------------------------------------ values
class Values:
    """S01 and S02: minima, maxima and null counts do not contradict each other, and numRecords is there if needed."""

    def __init__(self, table: LiveTable, findings: Findings) -> None:
        self._table, self._findings = table, findings
        self._needs_records = _needs_records(table)

    def take(self, batch: LiveBatch) -> None:
        records = batch.records
        self._check_records(batch, records)
        for path, column in batch.statistics.items():
            if path[0] == "minValues":
                self._check_bounds(batch, path[1:], column, batch.statistics[("maxValues", *path[1:])])
            elif path[0] == "nullCount":
                self._check_nulls(batch, path[1:], column, records)

    def _check_records(self, batch: LiveBatch, records: pa.Array) -> None:
        lacking = pc.is_null(records)
        if not self._needs_records:
            lacking = pc.and_(lacking, pc.is_valid(batch.column("deletion_vector")))
        self._report(batch, lacking, "lacks the statistic numRecords, which it needs", "S01")
        negative = pc.fill_null(pc.less(records, 0), False)
        self._report(batch, negative, "has a negative number of records")

    def _check_bounds(self, batch: LiveBatch, path: tuple[str, ...], low: pa.Array, high: pa.Array) -> None:
        if pa.types.is_nested(low.type) or pa.types.is_null(low.type) or low.null_count == len(low):
            return
        try:
            wrong = pc.greater(low, high)
        except pa.ArrowNotImplementedError:
            return
        name = ".".join(path)
        self._report(batch, pc.fill_null(wrong, False), f"has a minimum of '{name}' above its maximum")

    def _check_nulls(self, batch: LiveBatch, path: tuple[str, ...], nulls: pa.Array, records: pa.Array) -> None:
        if not pa.types.is_integer(nulls.type):
            return
        name = ".".join(path)
        wrong = pc.or_kleene(pc.greater(nulls, records), pc.less(nulls, 0))
        self._report(batch, pc.fill_null(wrong, False), f"has an impossible null count of '{name}'")

    def _report(self, batch: LiveBatch, wrong: pa.Array, problem: str, id_: str = "S02") -> None:
        if wrong.true_count:
            paths = (path.as_py() for path in batch.column("path").filter(wrong))
            problems = ((path, f"The file '{path}' {problem}.") for path in paths)
            self._findings.add_rows(id_, wrong.true_count, problems, version=self._table.version)

    def finish(self) -> None:
        pass


def _needs_records(table: LiveTable) -> bool:
    """True if every file needs numRecords, as for Iceberg compatibility (C405); files with vectors always do."""
    try:
        return any(
            is_active(table.configuration, feature)
            for feature in (Feature.ICEBERG_COMPAT_V2, Feature.ICEBERG_COMPAT_V3)
        )
    except DeltaError:
        return False


def check_tightness(contents: Contents, state: TableState, findings: Findings) -> None:
    """Check that statistics that were kept do not stay tight when rows are deleted (S04). `state` is the one before."""
    adds: Array = contents.adds.files
    candidates = adds[adds["tight"] & (adds["deleted"] != UNKNOWN)]
    if not len(candidates):
        return
    before, present = state.live.find_paths(candidates["path"])
    fewer = (before["deleted"] == UNKNOWN) | (before["deleted"] < candidates["deleted"])
    stale = present & fewer & (before["stats"] == candidates["stats"])
    if stale.any():
        findings.add(
            "S04",
            f"The commit deletes rows of {int(stale.sum()):,} files whose statistics still claim tight bounds.",
            version=contents.version,
            file=contents.path,
        )


# ----------------------------------------------------------------------------------------------------------- identity
@dataclass
class _Identity:
    field: StructField
    path: tuple[str, ...]
    reached: int | None = None


class IdentityMarks:
    """P08: the high-water mark of an identity column is at or beyond the values in files."""

    def __init__(self, table: LiveTable, findings: Findings) -> None:
        self._findings, self._table = findings, table
        self._columns = [
            _Identity(field, (physical_field(field, mapping_mode(table.configuration)).name,))
            for field in table.configuration.schema
            if isinstance(field.metadata.get(IDENTITY_STEP), int) and field.metadata[IDENTITY_STEP]
        ]

    def take(self, batch: LiveBatch) -> None:
        for column in self._columns:
            ascends = column.field.metadata[IDENTITY_STEP] > 0
            bounds = batch.statistics.get(("maxValues" if ascends else "minValues", *column.path))
            if bounds is None or not pa.types.is_integer(bounds.type):
                continue
            found = (pc.max if ascends else pc.min)(bounds).as_py()
            if found is not None:
                known = column.reached
                column.reached = found if known is None else (max if ascends else min)(known, found)

    def finish(self) -> None:
        for column in self._columns:
            field, reached = column.field, column.reached
            mark = field.metadata.get(IDENTITY_MARK)
            if reached is None or (isinstance(mark, int) and (reached - mark) * field.metadata[IDENTITY_STEP] <= 0):
                continue
            is_explicit = field.metadata.get(IDENTITY_ALLOW_EXPLICIT_INSERT) is True
            self._findings.add(
                "P08",
                f"The identity column '{field.name}' has the value {reached}, beyond its high-water mark {mark}: the "
                "value may be generated again.",
                version=self._table.version,
                severity=Severity.WARNING if is_explicit else None,
            )
