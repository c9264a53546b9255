"""The plan of a clone, and its execution: copies first, then one commit with all files, then a checkpoint of it.

A clone that is interrupted has no version, or the last complete one. A second run copies only what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import FILE_FIELDS, TOMBSTONE_FIELDS
from pyspark_delta.display import counted, html_facts
from pyspark_delta.errors import DeltaError
from pyspark_delta.features import Feature, is_supported
from pyspark_delta.log.reconciliation import Keys
from pyspark_delta.log.request import FileRequest
from pyspark_delta.maintenance.clone.copying import Copier
from pyspark_delta.maintenance.clone.declaration import Declaration, declare_clone
from pyspark_delta.maintenance.clone.files import COPIES, copied_files, referenced_files, source_files
from pyspark_delta.maintenance.clone.merging import Merging, check_merging, merged_files, plan_merging
from pyspark_delta.maintenance.clone.target import CloneTarget, check_target
from pyspark_delta.maintenance.first_checkpoint import write_first_checkpoint
from pyspark_delta.protocol.draft import CommitDraft, IsolationLevel, Operation, ReadSet
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.paths import to_hadoop
from pyspark_delta.transaction.attempts import commit_draft, never_lands

METRICS = {  # delta-spark's result column, and the metric in the history
    "source_table_size": "sourceTableSize",
    "source_num_of_files": "sourceNumOfFiles",
    "num_removed_files": "numRemovedFiles",
    "num_copied_files": "numCopiedFiles",
    "removed_files_size": "removedFilesSize",
    "copied_files_size": "copiedFilesSize",
}
_ADDED = tuple(field.name for field in FILE_FIELDS)
_REMOVED = tuple(field.name for field in TOMBSTONE_FIELDS if field.name in _ADDED)


@dataclass(frozen=True)
class CloneResult:
    """The committed version of a clone, its location, and its metrics by the names of the table's history."""

    version: int
    location: str
    metrics: Mapping[str, int] = field(default_factory=dict)

    def as_row(self) -> dict[str, int]:
        """Return delta-spark's result row. Sizes are bytes."""
        return {column: self.metrics[name] for column, name in METRICS.items()}

    def _repr_html_(self) -> str:
        return html_facts("CloneResult", {"version": self.version, "location": self.location, **self.metrics})


@dataclass(frozen=True, repr=False)
class ClonePlan:
    """What cloning a version of `source` to `target` would do.

    `adds` and `removes` are files of the clone in the columns of `actions.columns`. `copies` are the files to copy
    first: the locations `source` and `target`, and `size` in bytes. Files that a deep clone has already are in neither.
    `merging` are small files that are combined to new ones; these are added too, and not in `adds` or `metrics`.
    `source_files` and `source_bytes` count the files of the source.
    """

    source: Snapshot
    target: CloneTarget
    shallow: bool
    adds: pa.Table
    removes: pa.Table
    copies: pa.Table
    source_files: int
    source_bytes: int
    declaration: Declaration = field(compare=False)
    source_name: str = ""
    merging: Merging | None = None

    @cached_property
    def metrics(self) -> Mapping[str, int]:
        """The metrics of the commit, by the names of the table's history."""
        copied = (0, 0) if self.shallow else (self.adds.num_rows, _size(self.adds))
        return {
            "sourceTableSize": self.source_bytes,
            "sourceNumOfFiles": self.source_files,
            "numRemovedFiles": self.removes.num_rows,
            "numCopiedFiles": copied[0],
            "removedFilesSize": _size(self.removes),
            "copiedFilesSize": copied[1],
        }

    def facts(self) -> dict[str, object]:
        """Return the plan as names and values."""
        existing = self.target.snapshot
        return {
            "operation": "CLONE",
            "kind": "shallow" if self.shallow else "deep",
            "source_version": self.source.version,
            "version": None if existing is None else existing.version,
            "files_added": self.adds.num_rows + self._merged_files,
            "files_removed": self.removes.num_rows,
            "files_to_copy": self.copies.num_rows,
            "bytes_added": _size(self.adds) + self._merged_bytes,
            "bytes_to_copy": _size(self.copies),
            "files_to_merge": 0 if self.merging is None else self.merging.num_files,
            "bytes_to_merge": 0 if self.merging is None else int(self.merging.bins.read.sum()),
        }

    def execute(self, *, user_metadata: str | None = None, engine_info: str = "") -> CloneResult:
        """Copy the files, commit the clone, and write a checkpoint of it.

        `user_metadata` is kept with the commit. A concurrent commit to the clone is a conflict. Raises
        CommitConflictError, StorageError for a file that cannot be copied, and DataFileError for one that cannot be
        merged; then nothing is committed.
        """
        Copier(self.source.storage_options, self.target.storage_options).run(self.copies)
        merged = () if self.merging is None else self.merging.run()
        base, done = self.target.state(), replace(self, adds=pa.concat_tables([self.adds, *merged_files(merged)]))
        try:
            state = commit_draft(_draft(done, user_metadata, engine_info), base)
        except DeltaError as error:
            if self.merging is not None and never_lands(error, base):
                self.merging.discard(merged)
            raise
        write_first_checkpoint(state, done.adds)
        return CloneResult(state.version, self.target.location, done.metrics)

    @property
    def _merged_files(self) -> int:
        """About how many files the merged ones become."""
        return 0 if self.merging is None else int(self.merging.bins.new_files.sum())

    @property
    def _merged_bytes(self) -> int:
        """About how many bytes they have."""
        return 0 if self.merging is None else int(self.merging.bins.sizes.sum())

    def _repr_html_(self) -> str:
        return html_facts("ClonePlan", self.facts())

    def __repr__(self) -> str:
        kind = "shallow" if self.shallow else "deep"
        return f"ClonePlan({self.source.location!r}, {self.target.location!r}, {kind})"

    def __str__(self) -> str:
        kind = "shallow" if self.shallow else "deep"
        added, size = self.adds.num_rows + self._merged_files, _size(self.adds) + self._merged_bytes
        about = "about " if self.merging is not None and len(self.merging.bins) else ""
        files = f"{about}{counted(added, 'file')} of {size} bytes"
        lines = [
            f"A {kind} clone of version {self.source.version} of '{self.source.location}' to '{self.target.location}':",
            f"  {files} are added" + (", where they are" if self.shallow else ""),
        ]
        if self.removes.num_rows:
            lines.append(f"  {counted(self.removes.num_rows, 'file')} of {_size(self.removes)} bytes are removed")
        if not self.shallow:
            lines.append(f"  {counted(self.copies.num_rows, 'file')} of {_size(self.copies)} bytes are copied first")
        if self.merging is not None:
            lines.append(f"  {counted(self.merging.num_files, 'file')} are merged to {self._merged_files}")
        return "\n".join(lines)


def plan_clone(
    source: Snapshot,
    target: CloneTarget,
    *,
    shallow: bool,
    replace: bool = False,
    properties: Mapping[str, str] | None = None,
    merge_files: bool = False,
    source_name: str = "",
) -> ClonePlan:
    """Return what a clone would do, without writing anything.

    `properties` override those of the source. With `replace`, the target may be an earlier clone of the same table, or
    an empty table. With `merge_files`, a new deep clone combines small files. `source_name` is for the history. Raises
    TableAlreadyExistsError; InvalidOperationError for a target that cannot be a clone, another column mapping mode, or
    a feature of the source that this version does not know; InvalidOptionError for properties, and to merge files of a
    shallow clone; FileNotFoundInStoreError for a deletion vector that is gone.
    """
    check_target(source, target, shallow=shallow, replace=replace)
    if merge_files:
        check_merging(target, shallow=shallow)
    declaration = declare_clone(source, target, properties or {}, keeps_row_ids=not shallow)
    files = source_files(source, counted=is_supported(declaration.configuration, Feature.ROW_TRACKING))
    number, size = files.num_rows, _size(files)
    copies = COPIES.empty_table()
    merging = plan_merging(source, target, declaration.configuration) if merge_files else None
    if merging is not None:
        files = merging.others(files)
    if shallow:
        wanted = referenced_files(source, files)
    else:
        copied = copied_files(source, files, target.location)
        wanted = copied.files
        copies = Copier(source.storage_options, target.storage_options).missing(copied.copies, target.location)
    adds, removes = _difference(wanted, target)
    name = source_name or f"delta.`{to_hadoop(source.location)}`"
    return ClonePlan(source, target, shallow, adds, removes, copies, number, size, declaration, name, merging)


def _difference(wanted: pa.Table, target: CloneTarget) -> tuple[pa.Table, pa.Table]:
    """Return the files that the target lacks, and its files that are not wanted, by path and deletion vector."""
    removed = pa.schema([field for field in FILE_FIELDS if field.name in _REMOVED])
    if target.snapshot is None:
        return wanted, removed.empty_table()
    existing = target.snapshot
    has = Keys.of_files(existing.read_files(FileRequest(("path", "deletion_vector"))), target.location)
    adds = pa.Table.from_batches(has.unnamed(wanted.to_batches()), wanted.schema)
    wants = Keys.of_files(wanted.select(["path", "deletion_vector"]).to_batches(), target.location)
    gone = wants.unnamed(existing.read_files(FileRequest(_REMOVED)))
    return adds, pa.Table.from_batches([batch.cast(removed) for batch in gone], removed)


def _draft(plan: ClonePlan, user_metadata: str | None, engine_info: str) -> CommitDraft:
    after = plan.declaration.configuration
    before = None if plan.target.snapshot is None else plan.target.snapshot.configuration
    return CommitDraft(
        operation=Operation("CLONE", {"source": plan.source_name, "sourceVersion": plan.source.version}, plan.metrics),
        adds=plan.adds,
        removes=plan.removes,
        metadata=after.metadata if before is None or after.metadata != before.metadata else None,
        protocol=after.protocol if before is None or after.protocol != before.protocol else None,
        domains=plan.declaration.domains,
        reads=ReadSet(whole_table=True),
        isolation=IsolationLevel.SERIALIZABLE,
        user_metadata=user_metadata,
        engine_info=engine_info,
    )


def _size(files: pa.Table) -> int:
    size: int = pc.sum(files["size"]).as_py() or 0
    return size
