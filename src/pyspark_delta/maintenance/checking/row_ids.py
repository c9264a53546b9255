"""Checks of row ids by the log alone (R01 to R03)."""

from __future__ import annotations

import numpy as np
import orjson

from pyspark_delta.actions.model import DomainMetadata
from pyspark_delta.features import Feature, is_active, is_supported
from pyspark_delta.maintenance.checking.commit_contents import Contents
from pyspark_delta.maintenance.checking.declaration import ROW_TRACKING
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.maintenance.checking.live import LiveBatch, LiveTable
from pyspark_delta.maintenance.checking.live_files import UNKNOWN, Array
from pyspark_delta.maintenance.checking.state import Change


def check_commit_versions(contents: Contents, change: Change, findings: Findings) -> None:
    """Check that no added file has a row commit version of the future (R03)."""
    added = change.added
    late = (added["commit"] != UNKNOWN) & (added["commit"] > contents.version)
    if late.any():
        findings.add(
            "R03",
            f"{int(late.sum()):,} added files have a defaultRowCommitVersion after the version of their commit.",
            version=contents.version,
            file=contents.path,
        )


class RowIds:
    """R01 and R02: every file has ids, no id occurs twice, and all are at or below the high-water mark."""

    def __init__(self, table: LiveTable, domain: DomainMetadata | None, findings: Findings) -> None:
        self._table, self._findings = table, findings
        self._mark = high_water_mark(domain)
        self._is_active = is_active(table.configuration, Feature.ROW_TRACKING)
        self._is_supported = is_supported(table.configuration, Feature.ROW_TRACKING)
        self._starts: list[Array] = []
        self._counts: list[Array] = []
        self._lacking = 0

    def take(self, batch: LiveBatch) -> None:
        if not self._is_supported:
            return
        base = batch.column("base_row_id")
        self._lacking += base.null_count
        known = base.is_valid()
        self._starts.append(np.asarray(base.filter(known)))
        self._counts.append(np.asarray(batch.records.fill_null(1).filter(known)))

    def finish(self) -> None:
        if self._is_active and self._lacking:
            self._findings.add(
                "R01",
                f"Row tracking is enabled, and {self._lacking:,} live files have no baseRowId.",
                version=self._table.version,
            )
        if not self._starts:
            return
        starts, counts = np.concatenate(self._starts), np.concatenate(self._counts)
        if not len(starts):
            return
        order = np.argsort(starts, kind="stable")
        starts, counts = starts[order], np.maximum(counts[order], 1)
        ends = starts + counts
        overlapping = int((ends[:-1] > starts[1:]).sum())
        if overlapping:
            first = int(starts[1:][ends[:-1] > starts[1:]][0])
            self._findings.add(
                "R02",
                f"The row ids of {overlapping:,} live files are also those of others, from id {first:,} on.",
                version=self._table.version,
                repair="",
            )
        highest = int(ends.max()) - 1
        if self._mark is None or self._mark < highest:
            self._findings.add(
                "R02",
                f"The row id {highest:,} is in use, and the high-water mark is {self._mark}: new rows may get ids that "
                "others have.",
                version=self._table.version,
            )


def high_water_mark(domain: DomainMetadata | None) -> int | None:
    """Return the highest row id that was assigned, None if it is not known (C332)."""
    if domain is None or domain.removed:
        return None
    try:
        value = orjson.loads(domain.configuration)
    except orjson.JSONDecodeError:
        return None
    found = value.get("rowIdHighWaterMark", value.get("highWaterMark")) if isinstance(value, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


__all__ = ["ROW_TRACKING", "RowIds", "check_commit_versions", "high_water_mark"]
