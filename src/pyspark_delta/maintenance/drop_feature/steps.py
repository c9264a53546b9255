"""The steps that remove the traces of a feature, each a commit or more after which the table is legal.

Every step looks at the newest version for what is left to do, so an interrupted run is continued by the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.ddl.change import TableChange, commit_change, with_properties, with_schema
from pyspark_delta.ddl.properties import set_properties
from pyspark_delta.log.request import FileRequest
from pyspark_delta.maintenance.drop_feature.droppable import Drop
from pyspark_delta.maintenance.drop_feature.traces import Traces, find_traces, is_numbered
from pyspark_delta.maintenance.drop_feature.vector_tombstones import keep_vector_files
from pyspark_delta.protocol.draft import CommitDraft, Operation, ReadSet
from pyspark_delta.protocol.removal import FileTraces
from pyspark_delta.schema.column_ids import without_keys
from pyspark_delta.schema.json import dump_json
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of

FILES_PER_COMMIT = 100_000  # as in delta-spark: concurrent writers can still read such a commit at once

_COLUMNS = tuple(field.name for field in FILE_FIELDS)
_ROW_IDS = ("base_row_id", "default_row_commit_version")

Rewriter = Callable[[Snapshot, FileTraces, str], Snapshot]
"""Rewrites the files of a version that have traces of a kind, and returns a later version. The last argument is the
`engineInfo` of its commits."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Removes what a feature left. `rewrite` is called for traces in data files; commits carry `engine_info`."""

    drop: Drop
    rewrite: Rewriter
    engine_info: str = ""

    def run(self, snapshot: Snapshot, found: Traces) -> Snapshot:
        """Remove the traces that were found in a version; return a later one. Other writers may bring traces back.

        Raises CommitConflictError if concurrent commits change what a step changes, and DataFileError.
        """
        if found.properties:
            snapshot = self._disable(snapshot, found)
        if found.files and self.drop.removal.files is FileTraces.ROW_IDS:
            snapshot = self._clear_row_ids(snapshot)
        elif found.files and self.drop.removal.files is not None:
            snapshot = self.rewrite(snapshot, self.drop.removal.files, self.engine_info)
        if self.drop.removal.files is FileTraces.VECTORS:
            snapshot = keep_vector_files(snapshot, self.engine_info)
        if found.fields:
            snapshot = self._strip_fields(snapshot)
        if found.domains:
            snapshot = self._remove_domains(snapshot, found)
        return snapshot

    def _disable(self, snapshot: Snapshot, found: Traces) -> Snapshot:
        """Set the properties that keep writers from using the feature."""
        wanted = {name: value for name, value in found.properties.items() if value is not None}
        if None not in self.drop.removal.disabling.values():
            return self._change(set_properties(snapshot.configuration, wanted), snapshot)
        gone = [name for name in found.properties if name not in wanted]
        folded = {name.casefold() for name in found.properties}
        kept = {name: value for name, value in snapshot.properties.items() if name.casefold() not in folded}
        names = dump_json([*gone, *wanted]).decode()
        operation = Operation("UNSET TBLPROPERTIES", {"properties": names, "ifExists": True})
        metadata = with_properties(snapshot.metadata, {**kept, **wanted})
        return self._change(TableChange(operation=operation, metadata=metadata), snapshot)

    def _strip_fields(self, snapshot: Snapshot) -> Snapshot:
        """Remove keys of the metadata of fields."""
        keys = self.drop.removal.field_keys
        schema = without_keys(snapshot.schema, keys)
        changed = [field.name for field, after in zip(snapshot.schema, schema, strict=True) if field != after]
        operation = Operation("DROP FEATURE", {"columns": dump_json(changed).decode()})
        return self._change(TableChange(operation=operation, metadata=with_schema(snapshot.metadata, schema)), snapshot)

    def _remove_domains(self, snapshot: Snapshot, found: Traces) -> Snapshot:
        known = snapshot.domains()
        domains = tuple(replace(known[name], removed=True) for name in found.domains if name in known)
        operation = Operation("DOMAIN METADATA CLEANUP", {}, {"domainMetadataRemovedCount": len(domains)})
        return self._commit(CommitDraft(operation=operation, domains=domains, engine_info=self.engine_info), snapshot)

    def _clear_row_ids(self, snapshot: Snapshot) -> Snapshot:
        """Commit files again without row ids, in as many commits as needed. New files get none any more."""
        number = 0
        while (files := _numbered(snapshot)).num_rows:
            draft = CommitDraft(
                operation=Operation("ROW TRACKING UNBACKFILL", {"batchId": str(number)}),
                adds=files.drop_columns(list(_ROW_IDS)),
                data_change=False,
                reads=ReadSet(paths=frozenset(files.column("path").to_pylist())),
                engine_info=self.engine_info,
            )
            snapshot, number = self._commit(draft, snapshot), number + 1
            if find_traces(snapshot, self.drop).properties:
                break  # another writer goes on to give ids
        return snapshot

    def _change(self, change: TableChange, snapshot: Snapshot) -> Snapshot:
        commit_change(change, snapshot, engine_info=self.engine_info)
        return snapshot.update()

    def _commit(self, draft: CommitDraft, snapshot: Snapshot) -> Snapshot:
        commit_draft(draft, state_of(snapshot))
        return snapshot.update()


def _numbered(snapshot: Snapshot) -> pa.Table:
    """Return the first files with row ids, with all their columns in the log."""
    found: list[pa.RecordBatch] = []
    missing = FILES_PER_COMMIT
    for batch in snapshot.read_files(FileRequest(_COLUMNS)):
        found.append(batch.filter(is_numbered(batch)).slice(0, missing))
        missing -= found[-1].num_rows
        if missing <= 0:
            break
    return pa.Table.from_batches(found, pa.schema(FILE_FIELDS))
