"""RESTORE: commit an earlier version of a table as its newest one.

The commit adds the files that the earlier version has and the table lacks, and removes those that it has not, where a
file with another deletion vector is another file. Schema, partitioning, properties and clustering become those of the
earlier version. What must never go back stays: table features, high-water marks, in-commit timestamps, application
transactions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import FILE_FIELDS, TOMBSTONE_FIELDS
from pyspark_delta.actions.model import DomainMetadata, Metadata
from pyspark_delta.display import html_facts
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.features import Feature, is_active
from pyspark_delta.features.support import check_removable, check_writable
from pyspark_delta.maintenance.missing_files import missing_files
from pyspark_delta.protocol.clustering import DOMAIN as CLUSTERING
from pyspark_delta.protocol.configuration import TableConfiguration, lasting_properties
from pyspark_delta.protocol.draft import CommitDraft, IsolationLevel, Operation, ReadSet
from pyspark_delta.protocol.identity import move_marks
from pyspark_delta.protocol.properties import (
    CHECKPOINT_PROTECTION_VERSION,
    COLUMN_MAPPING_MAX_ID,
    ENABLE_IN_COMMIT_TIMESTAMPS,
    IN_COMMIT_TIMESTAMP_TIME,
    IN_COMMIT_TIMESTAMP_VERSION,
)
from pyspark_delta.schema.declaration_keys import IDENTITY_MARK
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.difference import exclusive_files
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of
from pyspark_delta.transaction.protocol_upgrade import features_of, with_features

_ADDED = tuple(field.name for field in FILE_FIELDS)
_REMOVED = tuple(field.name for field in TOMBSTONE_FIELDS if field.name in _ADDED)
_KEPT = (ENABLE_IN_COMMIT_TIMESTAMPS.name, IN_COMMIT_TIMESTAMP_VERSION.name, IN_COMMIT_TIMESTAMP_TIME.name)

RESULT = {
    "table_size_after_restore": "tableSizeAfterRestore",
    "num_of_files_after_restore": "numOfFilesAfterRestore",
    "num_removed_files": "numRemovedFiles",
    "num_restored_files": "numRestoredFiles",
    "removed_files_size": "removedFilesSize",
    "restored_files_size": "restoredFilesSize",
}
"""The columns of the result in delta-spark, and the metric of the commit that each has."""


@dataclass(frozen=True, repr=False)
class RestorePlan:
    """What restoring `target` would do to `current`, two versions of a table.

    `adds` and `removes` are files in the columns of `actions.columns`. `left_out` are the files of the earlier version
    that are gone and are left out. Sizes are bytes.
    """

    current: Snapshot
    target: Snapshot
    adds: pa.Table
    removes: pa.Table
    left_out: pa.Table
    timestamp: str | None = None

    @cached_property
    def metrics(self) -> Mapping[str, int]:
        """The metrics of the commit, by the names of the table's history."""
        removed, restored = _size(self.removes), _size(self.adds)
        return {
            "tableSizeAfterRestore": self.current.size_in_bytes() - removed + restored,
            "numOfFilesAfterRestore": self.current.num_files() - self.removes.num_rows + self.adds.num_rows,
            "numRemovedFiles": self.removes.num_rows,
            "numRestoredFiles": self.adds.num_rows,
            "removedFilesSize": removed,
            "restoredFilesSize": restored,
        }

    def facts(self) -> dict[str, object]:
        """Return the plan as names and values."""
        return {
            "operation": "RESTORE",
            "version": self.current.version,
            "restored_version": self.target.version,
            "files_added": self.adds.num_rows,
            "files_removed": self.removes.num_rows,
            "files_missing": self.left_out.num_rows,
            "bytes_added": _size(self.adds),
            "bytes_removed": _size(self.removes),
        }

    def execute(self, *, user_metadata: str | None = None, engine_info: str = "") -> int:
        """Commit the plan, and return the version. A concurrent commit that changes rows or metadata is a conflict.

        `user_metadata` is kept with the commit. Raises CommitConflictError.
        """
        state = commit_draft(_draft(self, user_metadata, engine_info), state_of(self.current))
        return state.version

    def _repr_html_(self) -> str:
        return html_facts("RestorePlan", self.facts())

    def __repr__(self) -> str:
        return f"RestorePlan({self.current.location!r}, {self.current.version} to {self.target.version})"

    def __str__(self) -> str:
        target, current = self.target, self.current
        lines = [
            f"Restore version {target.version} of '{current.location}', now at version {current.version}:",
            f"  {self.adds.num_rows} files of {_size(self.adds)} bytes come back",
            f"  {self.removes.num_rows} files of {_size(self.removes)} bytes go",
        ]
        if self.left_out.num_rows:
            lines.append(f"  {self.left_out.num_rows} files are missing and left out; their rows do not come back")
        return "\n".join(lines)


def plan_restore(
    current: Snapshot, target: Snapshot, *, ignore_missing_files: bool = False, timestamp: str | None = None
) -> RestorePlan:
    """Return what restoring an earlier version would do, without writing anything. `timestamp` is for the history.

    Raises InvalidOperationError if the target is the newest version, if files of it are gone, unless they are to be
    left out, or if the table is append-only and would lose rows; and the errors of `check_writable`.
    """
    check_writable(current.configuration, current.location)
    check_writable(target.configuration, target.location)
    if target.version >= current.version:
        raise InvalidOperationError(
            f"Version {target.version} of '{current.location}' is the newest one, so there is nothing to restore. "
            "Name an earlier version or time.",
            error_class="DELTA_CANNOT_RESTORE_TABLE_VERSION",
        )
    adds, removes = exclusive_files(target, current, _ADDED, _REMOVED)
    if removes.num_rows:
        check_removable(current.configuration, "RESTORE")
    missing = missing_files(target, adds, current.num_files() - removes.num_rows + adds.num_rows)
    if missing.num_rows and not ignore_missing_files:
        raise _gone(target, missing)
    if missing.num_rows:
        adds = adds.filter(pc.invert(pc.is_in(adds["path"], value_set=missing["path"].combine_chunks())))  # C279
    return RestorePlan(current, target, adds, removes, missing, timestamp)


def _draft(plan: RestorePlan, user_metadata: str | None, engine_info: str) -> CommitDraft:
    current, target = plan.current, plan.target
    before = current.configuration
    metadata = _restored_metadata(before, target.configuration)
    protocol = with_features(before.protocol, features_of(target.protocol))
    version = target.version if plan.timestamp is None else None
    return CommitDraft(
        operation=Operation("RESTORE", {"version": version, "timestamp": plan.timestamp}, plan.metrics),
        adds=plan.adds,
        removes=plan.removes,
        metadata=None if metadata == before.metadata else metadata,
        protocol=None if protocol == before.protocol else protocol,
        domains=_restored_domains(current, target),
        reads=ReadSet(whole_table=True),
        isolation=IsolationLevel.SERIALIZABLE,
        user_metadata=user_metadata,
        engine_info=engine_info,
    )


# ---------------------------------------------------------------------------------------------- what a version declares
def _restored_metadata(before: TableConfiguration, target: TableConfiguration) -> Metadata:
    """Return the metadata of the earlier version, with everything that must not go back."""
    properties = {name: value for name, value in target.properties.items() if name not in _KEPT}
    if is_active(before, Feature.IN_COMMIT_TIMESTAMP):
        properties |= {name: before.properties[name] for name in _KEPT if name in before.properties}
    for highest in (COLUMN_MAPPING_MAX_ID, CHECKPOINT_PROTECTION_VERSION):
        known = [one.properties[highest.name] for one in (before, target) if highest.name in one.properties]
        if known:
            properties[highest.name] = max(known, key=int)
    properties |= lasting_properties(before)
    metadata = replace(target.metadata, configuration=properties)  # with its id: a replacement has another
    restored = TableConfiguration(target.protocol, metadata, target.location)
    marks = {field.name: field.metadata[IDENTITY_MARK] for field in before.schema if IDENTITY_MARK in field.metadata}
    return move_marks(restored, marks) or metadata


def _restored_domains(current: Snapshot, target: Snapshot) -> tuple[DomainMetadata, ...]:
    """Return the change of the clustering columns, if there is one. Other domains stay."""
    before, after = current.domains().get(CLUSTERING), target.domains().get(CLUSTERING)
    if before == after:
        return ()
    if after is not None:
        return (after,)
    assert before is not None
    return (replace(before, removed=True),)


# ------------------------------------------------------------------------------------------------------------- files
def _size(files: pa.Table) -> int:
    size: int = pc.sum(files["size"]).as_py() or 0
    return size


def _gone(target: Snapshot, missing: pa.Table) -> InvalidOperationError:
    shown = ", ".join(f"'{path}'" for path in missing["path"].slice(0, 3).to_pylist())
    more = f" and {missing.num_rows - 3} more" if missing.num_rows > 3 else ""
    return InvalidOperationError(
        f"Version {target.version} of '{target.location}' cannot be restored: {missing.num_rows} of its files are "
        f"gone ({shown}{more}). They were probably vacuumed. Restore a later version, restore the files, or give "
        "ignore_missing_files=True, which restores the version without their rows.",
        error_class="DELTA_CANNOT_RESTORE_TABLE_VERSION",
        version=target.version,
        files=missing.num_rows,
    )
