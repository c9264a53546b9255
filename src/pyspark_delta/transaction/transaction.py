"""A transaction without Spark: several changes to a table that become one version together, or none at all.

    with Transaction.on(snapshot) as transaction:
        old = transaction.read(where="day = '2024-01-31'")
        transaction.remove(old.files)
        transaction.write(batches)

The transaction records what it reads, and the commit fails if a concurrent commit has changed that. The draft of the
commit is an immutable value; every call creates a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.actions.model import DomainMetadata, SetTransaction
from pyspark_delta.commit import Committer
from pyspark_delta.data.conform import require_columns
from pyspark_delta.data.parts import write_in_any_order
from pyspark_delta.data.writer import written_files
from pyspark_delta.display import html_facts
from pyspark_delta.errors import DeltaError, InvalidOperationError, StorageError
from pyspark_delta.features.support import check_writable
from pyspark_delta.protocol.clustering import clustering_paths
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, Operation, ReadSet
from pyspark_delta.protocol.state import TableState
from pyspark_delta.scan.plan import ScanPlan
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.schema.json import check_text
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import resolve_file
from pyspark_delta.transaction.attempts import AttemptPolicy, commit_draft, never_lands
from pyspark_delta.transaction.base import state_of
from pyspark_delta.transaction.combination import follow, together
from pyspark_delta.transaction.schema_reads import reads_across
from pyspark_delta.transaction.staged_table import StagedTable
from pyspark_delta.transaction.staging import (
    check_plain,
    check_user_domain,
    define,
    new_files,
    read_set,
)
from pyspark_delta.transaction.write_plan import FileOptions, write_context

REMOVED_COLUMNS = (
    "path",
    "partition_values",
    "size",
    "deletion_vector",
    "tags",
    "base_row_id",
    "default_row_commit_version",
)
"""The fields that a `remove` action repeats from the `add` of the file."""

_FIELDS = {f.name: f for f in FILE_FIELDS}
_MANUAL, _CREATE = Operation("Manual Update"), Operation("CREATE TABLE")
_PATIENT = AttemptPolicy()


class Phase(Enum):
    """The state of a transaction; the values are used in messages."""

    OPEN = "open"
    COMMITTING = "being committed"
    COMMITTED = "committed"
    DISCARDED = "discarded"


class Transaction(StagedTable):
    """Changes that are committed together: at the end of a `with` block, or by `commit`.

    A block that ends with an exception discards them. The data files of the transaction are then deleted, but only if
    no commit can refer to them. Do not share a transaction between threads.

    Without a snapshot, as after a commit of the transaction itself, it can only append and declare, not read.
    """

    def __init__(
        self,
        base: TableState,
        snapshot: Snapshot | None,
        operation: Operation = _MANUAL,
        *,
        data_change: bool = True,
        engine_info: str = "",
        committer: Committer | None = None,
        policy: AttemptPolicy = _PATIENT,
    ) -> None:
        draft = CommitDraft(operation=operation, data_change=data_change, engine_info=engine_info)
        super().__init__(base, snapshot, draft)
        self._committer, self._policy = committer, policy
        self._written: list[str] = []
        self.phase = Phase.OPEN

    @classmethod
    def on(cls, snapshot: Snapshot, operation: Operation = _MANUAL, **more: Any) -> Transaction:
        """Return a transaction on the table as a snapshot shows it.

        Raises UnsupportedTableError if the table cannot be written. `data_change=False` declares that rows are only
        rearranged; `engine_info`, `committer` and `policy` as for `commit_draft`.
        """
        check_writable(snapshot.configuration, snapshot.location)
        return cls(state_of(snapshot), snapshot, operation, **more)

    @classmethod
    def creating(
        cls,
        location: str,
        configuration: TableConfiguration,
        operation: Operation = _CREATE,
        **more: Any,
    ) -> Transaction:
        """Return a transaction whose commit is version 0 of a table. The other parameters are as for `on`."""
        base = TableState(
            location=location,
            storage_options=dict(more.pop("storage_options", None) or {}),
            catalog_table=more.pop("catalog_table", None),
        )
        made = cls(base, None, operation, **more)
        return made.declare(configuration)

    def __repr__(self) -> str:
        return f"Transaction({self._base.location!r}, base={self._base.version}, {self.phase.value})"

    def _repr_html_(self) -> str:
        return html_facts("Transaction", self._shown())

    def _shown(self) -> dict[str, object]:
        """Return what notebooks show: names and values."""
        draft = self._draft
        return {
            "location": self._base.location,
            "based on version": self._base.version,
            "phase": self.phase.value,
            "operation": draft.operation.name,
            "files added": draft.adds.num_rows,
            "files removed": draft.removes.num_rows,
        }

    @property
    def draft(self) -> CommitDraft:
        """The draft that would be committed."""
        return self._draft

    @property
    def version(self) -> int:
        """The committed version; before the commit, the version that the transaction is based on."""
        return self._base.version

    # ------------------------------------------------------------------------------------------------ reading
    def read(self, columns: Sequence[str] | None = None, where: str | None = None, time_zone: str = "UTC") -> ScanPlan:
        """Plan a scan; from now on the transaction depends on the rows for which `where` is true.

        Raises the errors of `plan_scan`.
        """
        self.require_open()
        snapshot = self.row_snapshot
        plan = plan_scan(snapshot, columns, where, time_zone=time_zone)
        self.depend_on(read_set(plan, where, snapshot.schema, time_zone))
        return plan

    def application_version(self, app_id: str) -> int | None:
        """Return the last version that an application has committed; the transaction then depends on it (C180)."""
        self.require_open()
        reads = self._draft.reads
        self._draft = replace(self._draft, reads=replace(reads, transactions=reads.transactions | {app_id}))
        known = None if self._snapshot is None else self._snapshot.transactions().get(app_id)
        return None if known is None else known.version

    # ------------------------------------------------------------------------------------------------- files
    def write(self, batches: Iterable[pa.RecordBatch], options: FileOptions | None = None) -> pa.Table:
        """Write rows, with the columns of the table, to data files of the transaction; return the files.

        Rows of a partition need not be adjacent: they are sorted, some hundred MiB at a time. Several threads write
        files, so rows without partitions may go to more than one file.

        Raises SchemaMismatchError for other columns than the table's, ConstraintViolationError, StorageError, and
        InvalidOperationError if rows have to be checked or computed by Spark.
        """
        self.require_open()
        check_plain(self.configuration)
        options = options or FileOptions()
        options = replace(options, storage_options={**(self._base.storage_options or {}), **options.storage_options})
        clustering = clustering_paths(self._base.domains, self._draft.domains)
        context = write_context(self._base.location, self.configuration, options, clustering=clustering)
        found = write_in_any_order(context, require_columns(batches, context.schema, self.configuration.schema))
        self._written += [written.path for written in found]
        files = written_files(found)
        self.add(files.select([name for name in files.column_names if name in _FIELDS]))
        return files

    def add(self, files: pa.Table) -> Transaction:
        """Stage existing files; columns as in `actions.columns`. The transaction never deletes them."""
        self.require_open()
        files = files.cast(pa.schema([_FIELDS[name] for name in files.column_names]))
        self._draft = replace(self._draft, adds=together(self._draft.adds, files))
        return self

    def remove(self, files: pa.Table) -> Transaction:
        """Stage the removal of live files, given by the column `path` of `files`. Raises InvalidOperationError."""
        self.require_open()
        before, snapshot = self._required_snapshot("remove"), self.row_snapshot
        live, paths = snapshot.files(REMOVED_COLUMNS), files.column("path").unique()
        chosen = live.filter(pc.is_in(live.column("path"), value_set=paths))
        known = pa.chunked_array([chosen["path"].combine_chunks(), self._draft.removes["path"].combine_chunks()])
        if gone := set(paths.to_pylist()) - set(known.to_pylist()):
            raise InvalidOperationError(
                f"The file '{min(gone)}' is not part of version {before.version} of "
                f"'{self._base.location}'. Use the paths of files that a scan of the transaction returns."
            )
        return self.stage(self._part(removes=chosen))

    # ------------------------------------------------------------------------------------------ everything else
    def declare(self, configuration: TableConfiguration) -> Transaction:
        """Stage new protocol and metadata, if they differ from those of the table."""
        self.require_open()
        before, draft = self._base.configuration, self._draft
        if before is None or configuration.protocol != before.protocol:
            draft = replace(draft, protocol=configuration.protocol)
        if before is None or configuration.metadata != before.metadata:
            draft = replace(draft, metadata=configuration.metadata)
        self._draft = draft
        return self

    def stage(
        self, draft: CommitDraft, written: Sequence[str] = (), net_changes: pa.Table | None = None
    ) -> Transaction:
        """Add the changes of another draft, made for `row_snapshot`; its new files now belong to the transaction.

        `written` are new files other than data files, such as those of deletion vectors, by their paths in the table.
        Files of the transaction that the draft removes are not deleted, because a DataFrame may still read them; VACUUM
        deletes them. `net_changes` are change data files that show what the transaction and the draft change together;
        they replace those of both, which are deleted. Raises InvalidOperationError if one commit cannot contain both.
        """
        self.require_open()
        before, more = self._draft, [] if net_changes is None else net_changes.column("path").to_pylist()
        self._written += dict.fromkeys([*new_files(draft), *written, *more])
        self._draft = follow(before, draft, self._base.location, net_changes)
        if net_changes is not None:
            shown = {path for one in (before, draft) for path in one.changes.column("path").to_pylist()} | {*more}
            self._delete(shown - {*self._draft.changes.column("path").to_pylist()})
        return self

    def represent(self, changes: pa.Table) -> Transaction:
        """Add the change data files with all changes before, which have none (C169)."""
        self.require_open()
        self._written += changes.column("path").to_pylist()
        self._draft = replace(self._draft, changes=changes)
        return self

    def define(self, draft: CommitDraft) -> Transaction:
        """Add a change of the definition, made for `staged_snapshot`: it has seen the changes of the transaction.

        Raises InvalidOperationError or AppendOnlyTableError if one commit cannot contain both.
        """
        self.require_open()
        self._draft = define(self._draft, draft, self._base, self.configuration)
        return self

    def depend_on(self, reads: ReadSet) -> Transaction:
        """Make the commit fail if a concurrent one changes what was read, which may include files of the transaction.

        The reads of a draft are those of its author; these are others, such as what new rows were computed from.
        """
        self.require_open()
        self._draft = follow(self._draft, self._part(reads=reads), self._base.location)
        return self

    def _part(self, **more: Any) -> CommitDraft:
        return CommitDraft(operation=self._draft.operation, data_change=self._draft.data_change, **more)

    def set_operation(self, operation: Operation) -> Transaction:
        """Set the operation shown in the history."""
        self.require_open()
        self._draft = replace(self._draft, operation=operation)
        return self

    def set_user_metadata(self, text: str) -> Transaction:
        """Set a user-defined string for the history (`userMetadata`). Raises InvalidOperationError (`check_text`)."""
        self.require_open()
        check_text(text)
        self._draft = replace(self._draft, user_metadata=text)
        return self

    def set_application_version(self, app_id: str, version: int) -> Transaction:
        """Commit the version of an application with the data (C180). Raises InvalidOperationError (`check_text`)."""
        self.require_open()
        check_text(app_id)
        others = tuple(t for t in self._draft.transactions if t.app_id != app_id)
        self._draft = replace(self._draft, transactions=(*others, SetTransaction(app_id=app_id, version=version)))
        return self

    def set_domain(self, domain: str, configuration: str) -> Transaction:
        """Set a metadata domain of the user. Raises InvalidOperationError for a system domain (C201)."""
        return self._set_domain(DomainMetadata(domain=domain, configuration=configuration))

    def remove_domain(self, domain: str) -> Transaction:
        """Remove a metadata domain of the user, with a copy of its old configuration (C204). Raises
        InvalidOperationError.
        """
        before = self._base.domains.get(domain)
        if before is None:
            raise InvalidOperationError(f"The table has no metadata domain '{domain}' to remove.", domain=domain)
        return self._set_domain(replace(before, removed=True))

    def _set_domain(self, value: DomainMetadata) -> Transaction:
        self.require_open()
        check_user_domain(value.domain)
        others = tuple(d for d in self._draft.domains if d.domain != value.domain)
        self._draft = replace(self._draft, domains=(*others, value))
        return self

    # ------------------------------------------------------------------------------------------------- completion
    def commit(self) -> TableState:
        """Commit everything as one version and return the state of the table at it. If nothing changes, commit nothing.

        Raises the errors of `commit_draft`.
        """
        self.require_open()
        if self._draft.is_empty:
            self.phase = Phase.COMMITTED
            return self._base
        self.phase, draft = Phase.COMMITTING, self._draft
        if self._base.configuration is not None:
            draft = replace(draft, reads=reads_across(draft.reads, self._base.configuration, self.configuration))
        try:
            self._base = commit_draft(draft, self._base, committer=self._committer, policy=self._policy)
        except DeltaError as error:
            if never_lands(error, self._base):
                self.phase = Phase.OPEN
                self.discard()
            raise
        self.phase = Phase.COMMITTED
        return self._base

    def discard(self) -> None:
        """Discard the changes and delete the data files that the transaction wrote."""
        self.require_open()
        self.phase = Phase.DISCARDED
        self._delete(self._written)

    def _delete(self, written: Iterable[str]) -> None:
        store = store_for(self._base.location, self._base.storage_options)
        with suppress(StorageError):  # files left behind belong to no commit, and vacuum deletes them
            store.delete([resolve_file(self._base.location, path) for path in written])

    def __enter__(self) -> Transaction:
        self.require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.phase is not Phase.OPEN:
            return
        if kind is None:
            self.commit()
        elif issubclass(kind, Exception | KeyboardInterrupt):
            self.discard()

    def require_open(self) -> None:
        """Raise InvalidOperationError if the transaction has ended."""
        if self.phase is not Phase.OPEN:
            raise InvalidOperationError(
                f"The transaction on '{self._base.location}' is {self.phase.value}. Create a new one."
            )
