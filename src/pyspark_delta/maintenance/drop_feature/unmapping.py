"""Removing column mapping: all files are rewritten with the names of the schema, in one commit with the metadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from pyspark_delta.actions.model import DomainMetadata
from pyspark_delta.data.writer import WriteContext
from pyspark_delta.ddl.clustering import clustering_domain
from pyspark_delta.engines.tasks import TaskRunner
from pyspark_delta.errors import DeltaError
from pyspark_delta.maintenance.rewriting.bins import pack
from pyspark_delta.maintenance.rewriting.candidates import FileMasks, choose_files
from pyspark_delta.maintenance.rewriting.commits import delete_bins
from pyspark_delta.maintenance.rewriting.metrics import commit_metrics
from pyspark_delta.maintenance.rewriting.plan import target_size_of
from pyspark_delta.maintenance.rewriting.reconciliation import Rearrangement
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting, default_threads, rewrite_in_order, without_rows
from pyspark_delta.maintenance.rewriting.rewritten import RewrittenBin
from pyspark_delta.maintenance.rewriting.tasks import rewrite_in_tasks
from pyspark_delta.parallel import map_requests
from pyspark_delta.protocol.clustering import DOMAIN as CLUSTERING
from pyspark_delta.protocol.clustering import clustering_paths
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, Operation, ReadSet
from pyspark_delta.protocol.properties import COLUMN_MAPPING_MODE
from pyspark_delta.scan.file_source import file_source
from pyspark_delta.scan.plan import ReadContext
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.attempts import commit_draft, never_lands
from pyspark_delta.transaction.base import state_of
from pyspark_delta.transaction.evolution import evolve
from pyspark_delta.transaction.write_plan import write_context
from pyspark_delta.write.written import has_row_ids, with_row_ids

_PRESERVED = {"delta.rowTracking.preserved": "true"}


def remove_column_mapping(snapshot: Snapshot, engine_info: str, place: Callable[[str, int], TaskRunner | None]) -> None:
    """Rewrite all files of a table, and commit them with a schema that has neither ids nor physical names.

    `place` returns the tasks that rewrite so many bytes of the table, or None for this process.
    A concurrent commit that adds or removes rows is a conflict. After an error the new files are deleted, unless it is
    unknown whether the commit was made. Raises CommitConflictError, DataFileError, StorageError.
    """
    after, domains = unmapped(snapshot.configuration), _clustering(snapshot)
    base = state_of(snapshot)
    written: list[RewrittenBin] = []
    try:
        _rewrite(snapshot, after, written, place)
    except BaseException:
        delete_bins(base, written)
        raise
    draft = CommitDraft(
        operation=_operation(written),
        data_change=False,
        tags=_PRESERVED if has_row_ids(snapshot.configuration) else {},
        engine_info=engine_info,
    )
    if written:
        draft = Rearrangement(base, tuple(written), _operation).applied(draft)
    draft = replace(draft, metadata=after.metadata, domains=domains, reads=ReadSet(whole_table=True), reconciler=None)
    try:
        commit_draft(draft, base)
    except DeltaError as error:
        if never_lands(error, base):
            delete_bins(base, written)
        raise


def unmapped(configuration: TableConfiguration) -> TableConfiguration:
    """Return the configuration without column mapping. Raises SchemaMismatchError for names that need it."""
    name = COLUMN_MAPPING_MODE.name.casefold()
    properties = {key: value for key, value in configuration.properties.items() if key.casefold() != name}
    metadata = replace(configuration.metadata, configuration=properties)
    return evolve(configuration, metadata, keeps_files=False)


@dataclass(frozen=True)
class _Unmapping(Rewriting):
    """Reads columns by their physical names, and writes them by those of the schema of `after`."""

    after: TableConfiguration | None = None

    @cached_property
    def write(self) -> WriteContext:
        """How rows are written to files, with the columns of row ids if rows have ids."""
        assert self.after is not None
        options = replace(self.files, storage_options=self.snapshot.storage_options)
        paths = _logical_paths(self.snapshot)
        context = write_context(self.snapshot.location, self.after, options, clustering=paths)
        context = replace(context, row_group_bytes=self.columns.row_group_bytes, target_file_size=None)
        return with_row_ids(self.snapshot.configuration, context)

    @cached_property
    def read(self) -> ReadContext:
        """How rows are read: the columns that `write` writes, in the same order."""
        configuration = self.snapshot.configuration
        return file_source(self.snapshot).read_context(
            self.columns.schema.fields, row_ids=has_row_ids(configuration), time_zone=self.time_zone
        )


def _rewrite(
    snapshot: Snapshot,
    after: TableConfiguration,
    written: list[RewrittenBin],
    place: Callable[[str, int], TaskRunner | None],
) -> None:
    """Append all rewritten bins of a table to a list, one by one."""
    candidates = choose_files(snapshot, _every_file, tags=bool(snapshot.clustering_columns()))
    if candidates.empty.num_rows:
        written.append(without_rows(candidates.empty, snapshot))
    bins = pack(candidates.files, target_size_of(snapshot, None))
    tasks = place(snapshot.location, int(bins.read.sum())) if len(bins) else None
    rewriting: Rewriting = _Unmapping(snapshot, threads=default_threads(), after=after)
    if tasks is not None:
        written.extend(rewrite_in_tasks(tasks, rewriting.for_bins(1), list(bins)))
        return
    rewriting = rewriting.for_bins(len(bins))
    written.extend(map_requests(lambda one: rewrite_in_order(rewriting, one, _go_on), bins, rewriting.threads))


def _every_file(files: pa.RecordBatch) -> FileMasks:
    mask = pa.repeat(pa.scalar(True), files.num_rows)
    return FileMasks(mask, mask)


def _go_on() -> None:
    """Never cancel a bin."""


def _operation(bins: Sequence[RewrittenBin]) -> Operation:
    metrics = commit_metrics(bins)
    return Operation(
        "REMOVE COLUMN MAPPING",
        {},
        {
            "numRewrittenFiles": metrics["numRemovedFiles"],
            "numOutputBytes": metrics["numAddedBytes"],
            "numRemovedBytes": metrics["numRemovedBytes"],
            "numCopiedRows": sum(int(one.rows.sum()) for one in bins),
            "numDeletionVectorsRemoved": metrics["numDeletionVectorsRemoved"],
        },
    )


# ------------------------------------------------------------------------------------------------ clustering columns
def _clustering(snapshot: Snapshot) -> tuple[DomainMetadata, ...]:
    """Return the metadata domain of the clustering columns with the names of the schema, if there is one."""
    if CLUSTERING not in snapshot.domains():
        return ()
    return (clustering_domain(unmapped(snapshot.configuration), _logical_paths(snapshot)),)


def _logical_paths(snapshot: Snapshot) -> tuple[tuple[str, ...], ...]:
    mode = mapping_mode(snapshot.configuration)
    return tuple(_logical(snapshot.schema, path, mode) for path in clustering_paths(snapshot.domains()))


def _logical(struct: StructType, path: Sequence[str], mode: str) -> tuple[str, ...]:
    found = next((field for field in struct if physical_field(field, mode).name == path[0]), None)
    if found is None:
        return tuple(path)
    inner = found.type if isinstance(found.type, StructType) else StructType()
    return (found.name, *(_logical(inner, path[1:], mode) if len(path) > 1 else ()))
