"""Rewriting the files that have traces of a feature: without deletion vectors, old types, or physical names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.engines.tasks import TaskRunner
from pyspark_delta.maintenance.drop_feature.old_types import have_old_types
from pyspark_delta.maintenance.drop_feature.unmapping import remove_column_mapping
from pyspark_delta.maintenance.rewriting.bins import pack
from pyspark_delta.maintenance.rewriting.candidates import FileMasks, FileRule, choose_files
from pyspark_delta.maintenance.rewriting.plan import RewritePlan, in_tasks, target_size_of
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting, default_threads
from pyspark_delta.protocol.removal import FileTraces
from pyspark_delta.snapshot import Snapshot

Placer: TypeAlias = Callable[[str, int], TaskRunner | None]
"""Returns the tasks that rewrite so many bytes of the table at a location; None if this process does."""


def in_this_process(location: str, size: int) -> None:
    """Rewrite any number of bytes in this process."""


def rewrite_files(snapshot: Snapshot, kind: FileTraces, engine_info: str, place: Placer = in_this_process) -> Snapshot:
    """Rewrite the files with traces of a kind, without a change of rows; return the newest version.

    Files that other writers change meanwhile are adapted, or left for the next run. Raises as `RewritePlan.execute`,
    and CommitConflictError.
    """
    if kind is FileTraces.PHYSICAL_NAMES:
        remove_column_mapping(snapshot, engine_info, place)
        return snapshot.update()
    rule = _with_vectors if kind is FileTraces.VECTORS else _with_old_types(snapshot)
    candidates = choose_files(snapshot, rule, tags=bool(snapshot.clustering_columns()))
    plan = RewritePlan(
        snapshot,
        "REORG",
        {"predicate": "[]", "applyPurge": True},
        candidates,
        pack(candidates.files, target_size_of(snapshot, None)),
        0,
        Rewriting(snapshot, threads=default_threads()),
    )
    tasks = place(snapshot.location, plan.bytes_read)
    (plan if tasks is None else in_tasks(plan, tasks)).execute(engine_info=engine_info)
    return snapshot.update()


def _with_vectors(files: pa.RecordBatch) -> FileMasks:
    mask = pc.is_valid(files["deletion_vector"])
    return FileMasks(mask, mask)


def _with_old_types(snapshot: Snapshot) -> FileRule:
    def choose(files: pa.RecordBatch) -> FileMasks:
        mask = pa.array(have_old_types(snapshot, files["path"].to_pylist()), pa.bool_())
        return FileMasks(mask, mask)

    return choose
