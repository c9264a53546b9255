"""Rewriting the files that have traces of a feature: without deletion vectors, old types, or physical names."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.maintenance.drop_feature.old_types import have_old_types
from pyspark_delta.maintenance.drop_feature.unmapping import remove_column_mapping
from pyspark_delta.maintenance.rewriting.bins import pack
from pyspark_delta.maintenance.rewriting.candidates import FileMasks, FileRule, choose_files
from pyspark_delta.maintenance.rewriting.plan import RewritePlan, target_size_of
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting, default_threads
from pyspark_delta.protocol.removal import FileTraces
from pyspark_delta.snapshot import Snapshot


def rewrite_files(snapshot: Snapshot, kind: FileTraces, engine_info: str) -> Snapshot:
    """Rewrite the files with traces of a kind, without a change of rows; return the newest version.

    Files that other writers change meanwhile are adapted, or left for the next run. Raises as `RewritePlan.execute`,
    and CommitConflictError.
    """
    if kind is FileTraces.PHYSICAL_NAMES:
        remove_column_mapping(snapshot, engine_info)
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
    plan.execute(engine_info=engine_info)
    return snapshot.update()


def _with_vectors(files: pa.RecordBatch) -> FileMasks:
    mask = pc.is_valid(files["deletion_vector"])
    return FileMasks(mask, mask)


def _with_old_types(snapshot: Snapshot) -> FileRule:
    def choose(files: pa.RecordBatch) -> FileMasks:
        mask = pa.array(have_old_types(snapshot, files["path"].to_pylist()), pa.bool_())
        return FileMasks(mask, mask)

    return choose
