"""rowTracking: rows have stable ids and commit versions (Row Tracking; C321-C342).

The rows of a new file are numbered from its base row id. A metadata domain stores the high-water mark, so that no id is
assigned twice.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import BASE_ROW_ID, DEFAULT_ROW_COMMIT_VERSION, STATS
from pyspark_delta.actions.model import DomainMetadata
from pyspark_delta.errors import CorruptLogError, InvalidOperationError
from pyspark_delta.expressions.tree import Column
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import (
    ENABLE_ROW_TRACKING,
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
    ROW_TRACKING_SUSPENDED,
)
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.protocol.removal import FileTraces, Removal
from pyspark_delta.protocol.state import TableState
from pyspark_delta.schema.column_mapping import PHYSICAL_NAME
from pyspark_delta.schema.types import LONG
from pyspark_delta.stats.parse import parse_stats

DOMAIN = "delta.rowTracking"
PRESERVED_TAG = "delta.rowTracking.preserved"

_HIGH_WATER_MARK = "rowIdHighWaterMark"  # the specification calls it highWaterMark, every implementation this (C332)
_NUM_RECORDS = Column(("numRecords",), LONG)


class RowTracking(TableFeature):
    name = "rowTracking"
    declaration_check = "R05"
    requires = ("domainMetadata",)
    rebase_safe_properties = (ENABLE_ROW_TRACKING.name,)
    assigned_properties = (MATERIALIZED_ROW_ID.name, MATERIALIZED_ROW_COMMIT_VERSION.name)
    computed_domains = (DOMAIN,)
    removal = Removal(
        disabling={ENABLE_ROW_TRACKING.name: "false", ROW_TRACKING_SUSPENDED.name: "true"},
        files=FileTraces.ROW_IDS,
        properties=(ENABLE_ROW_TRACKING.name, ROW_TRACKING_SUSPENDED.name, *assigned_properties),
        domains=(DOMAIN,),
        leaves="columns with row ids in data files, which no reader shows",
    )

    def uses(self, configuration: TableConfiguration) -> bool:
        return ENABLE_ROW_TRACKING.of(configuration.properties)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def prepare(self, configuration: TableConfiguration, before: TableConfiguration | None) -> TableConfiguration:
        """Name the columns of stored ids and commit versions, once (C336, C337)."""
        properties = dict(configuration.properties)
        known = before.properties if before is not None else {}
        for stored, stem in ((MATERIALIZED_ROW_ID, "row-id"), (MATERIALIZED_ROW_COMMIT_VERSION, "row-commit-version")):
            name = stored.of(properties) or stored.of(known) or f"_{stem}-col-{uuid.uuid4()}"
            properties[stored.name] = name
        if properties == dict(configuration.properties):
            return configuration
        return replace(configuration, metadata=replace(configuration.metadata, configuration=properties))

    def validate(self, configuration: TableConfiguration) -> None:
        """Check that ids are not suspended while enabled, and that no column has the name of a stored one (C337)."""
        properties = configuration.properties
        if self.is_active(configuration) and ROW_TRACKING_SUSPENDED.of(properties):
            raise InvalidOperationError(
                f"Row tracking cannot be both enabled and suspended. Set {ENABLE_ROW_TRACKING.name} or "
                f"{ROW_TRACKING_SUSPENDED.name} to false.",
                error_class="DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
            )
        stored = {MATERIALIZED_ROW_ID.of(properties), MATERIALIZED_ROW_COMMIT_VERSION.of(properties)}
        for field in configuration.schema:
            for name in (field.name, field.metadata.get(PHYSICAL_NAME)):
                if name in stored:
                    raise InvalidOperationError(
                        f"The column name '{name}' is used by row tracking. Choose another one.",
                        error_class="DELTA_ADDING_COLUMN_WITH_INTERNAL_NAME_FAILED",
                        column=name,
                    )

    def check_change(self, configuration: TableConfiguration, before: TableConfiguration, *, keeps_files: bool) -> None:
        """Refuse existing files without ids: row tracking is enabled only if every file has them (C325, C336)."""
        was_active = self.is_active(before)
        if keeps_files and self.is_active(configuration) and not was_active:
            raise InvalidOperationError(
                "Row tracking cannot be enabled by this operation, because existing files may lack row ids. Set "
                f"{ENABLE_ROW_TRACKING.name} with alter().setProperties, which assigns ids to all files first.",
                error_class="DELTA_ENABLING_ROW_TRACKING_ON_EXISTING_TABLE",
            )

    def can_rebase(self, draft: CommitDraft) -> bool:
        return True

    def finish(self, commit: ReadyCommit, base: TableState) -> ReadyCommit:
        """Number the rows of new files above every existing id (C330, C333, C334), as of this version (C335).

        Files that have a base row id or a default row commit version keep them. Raises InvalidOperationError for a file
        whose statistics lack the number of rows.
        """
        if ROW_TRACKING_SUSPENDED.of(commit.configuration.properties):
            return commit
        before, given = _mark(base.domains.get(DOMAIN)), _mark(_own_domain(commit))
        adds, last = _numbered(commit.adds, max(before, given), commit.version)
        others = tuple(domain for domain in commit.domains if domain.domain != DOMAIN)
        counted = _domain(last) if last > before else None
        return replace(
            commit,
            adds=adds,
            domains=others if counted is None else (*others, counted),
            tags=self._tagged(commit),
        )

    def _tagged(self, commit: ReadyCommit) -> dict[str, str]:
        """Return tags that preserve ids if rows are only added or only removed; else the draft must set them (C341)."""
        if not self.is_active(commit.configuration):
            return dict(commit.tags)
        copied = bool(commit.adds.num_rows and commit.removes.num_rows)
        return {PRESERVED_TAG: "false" if copied else "true", **commit.tags}


def _numbered(adds: pa.Table, mark: int, version: int) -> tuple[pa.Table, int]:
    """Return the files with row ids and commit versions, and the highest assigned id."""
    versions = _column(adds, DEFAULT_ROW_COMMIT_VERSION)
    adds = _with(adds, DEFAULT_ROW_COMMIT_VERSION, pc.fill_null(versions, version))
    known = _column(adds, BASE_ROW_ID)
    new = np.asarray(pc.is_null(known))
    counts, first = _record_counts(adds, new), np.asarray(pc.fill_null(known, 0))
    taken = int((first + counts - 1).max(initial=mark, where=~new))  # also by files from other tables
    given = np.where(new, counts, 0)
    first = np.where(new, taken + 1 + np.cumsum(given) - given, first)
    adds = _with(adds, BASE_ROW_ID, pa.array(first, pa.int64()))
    return adds, taken + int(given.sum())


def _record_counts(adds: pa.Table, new: np.ndarray) -> np.ndarray:
    """Return how many rows each file has; 1 if unknown for a file that already has ids."""
    counts = parse_stats(_column(adds, STATS), [_NUM_RECORDS]).column(0)
    unknown = np.asarray(pc.is_null(counts))
    if (unknown & new).any():
        path = adds.column("path")[int(np.argmax(unknown & new))].as_py()
        raise InvalidOperationError(
            f"Row ids cannot be assigned to the file '{path}', because it lacks the statistic numRecords. Add the file "
            "with statistics.",
            error_class="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
            path=path,
        )
    return np.asarray(pc.fill_null(counts, 1))


def _column(table: pa.Table, field: pa.Field) -> pa.Array:
    if field.name not in table.column_names:
        return pa.nulls(table.num_rows, field.type)
    return table.column(field.name).combine_chunks()


def _with(table: pa.Table, field: pa.Field, column: pa.Array) -> pa.Table:
    if field.name in table.column_names:
        return table.set_column(table.column_names.index(field.name), field, column)
    return table.append_column(field, column)


def _own_domain(commit: ReadyCommit) -> DomainMetadata | None:
    return next((domain for domain in commit.domains if domain.domain == DOMAIN), None)


def _domain(mark: int) -> DomainMetadata:
    return DomainMetadata(domain=DOMAIN, configuration=orjson.dumps({_HIGH_WATER_MARK: mark}).decode())


def _mark(domain: DomainMetadata | None) -> int:
    """Return the highest assigned row id; -1 before the first."""
    if domain is None or domain.removed:
        return -1
    try:
        mark = orjson.loads(domain.configuration)[_HIGH_WATER_MARK]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        mark = None
    if not isinstance(mark, int) or isinstance(mark, bool):
        raise CorruptLogError(
            f"The metadata domain '{DOMAIN}' does not state which row ids are in use ({_HIGH_WATER_MARK}): "
            f"{domain.configuration!r}. Without it new rows could get ids that others have; repair the domain."
        )
    return mark


FEATURE = RowTracking()
