"""REORG APPLY (PURGE): rewrite files that hold deleted rows or dropped columns, so that the data can be vacuumed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.opened import opened_file
from pyspark_delta.maintenance.rewriting.bins import pack
from pyspark_delta.maintenance.rewriting.candidates import FileMasks, FileRule, choose_files
from pyspark_delta.maintenance.rewriting.plan import RewritePlan, check_rewritable, predicate_text
from pyspark_delta.maintenance.rewriting.request import RewriteRequest
from pyspark_delta.parallel import flat_map_ordered
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import (
    COLUMN_MAPPING_MAX_ID,
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
)
from pyspark_delta.schema.column_mapping import mapping_mode, physical_schema
from pyspark_delta.schema.traversal import fields_in
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.paths import resolve_file

_FOOTERS_AT_ONCE = 16


class PurgeRequest(RewriteRequest):
    """What to purge; see `RewriteRequest`."""


def plan_purge(snapshot: Snapshot, request: PurgeRequest) -> RewritePlan:
    """Return what a purge of a table would do, without writing anything.

    Reads the log; and the footers of files without deletion vectors, if a column of the table has ever been dropped.
    Raises as `plan_optimize`, and DataFileError.
    """
    check_rewritable(snapshot)
    is_clustered = bool(snapshot.clustering_columns())
    rule = purge_rule(snapshot)
    candidates = choose_files(snapshot, rule, request.where, time_zone=request.time_zone, tags=is_clustered)
    bins = pack(candidates.files, request.target(snapshot))
    chosen = bins.within(request.budget.size)
    return RewritePlan(
        snapshot,
        "REORG",
        {"predicate": predicate_text(request.where), "applyPurge": True},
        candidates,
        chosen,
        len(bins) - len(chosen),
        request.rewriting(snapshot),
        request.options(),
    )


def purge_rule(snapshot: Snapshot) -> FileRule:
    """Return the rule that chooses files with a deletion vector, and those with columns that the table has no more."""
    configuration = snapshot.configuration
    may_have_dropped = _may_have_dropped_columns(configuration)

    def choose(files: pa.RecordBatch) -> FileMasks:
        chosen = np.asarray(pc.is_valid(files["deletion_vector"])).copy()
        if may_have_dropped:
            others = np.flatnonzero(~chosen)
            paths = files["path"].take(pa.array(others)).to_pylist()
            chosen[others] = list(_have_other_columns(snapshot, paths))
        mask = pa.array(chosen, pa.bool_())
        return FileMasks(mask, mask)

    return choose


def _may_have_dropped_columns(configuration: TableConfiguration) -> bool:
    """True unless no column was ever dropped: only column mapping drops columns of files, and it counts all ids."""
    if mapping_mode(configuration) == "none":
        return False
    ids = sum("delta.columnMapping.id" in field.metadata for field in fields_in(configuration.schema))
    return ids != COLUMN_MAPPING_MAX_ID.of(configuration.properties)


def _have_other_columns(snapshot: Snapshot, paths: list[str]) -> Iterator[bool]:
    """Yield, for each file, if its Parquet schema has columns that the table has not."""
    configuration = snapshot.configuration
    known = physical_schema(configuration.schema, mapping_mode(configuration))
    stored = {MATERIALIZED_ROW_ID.of(snapshot.properties), MATERIALIZED_ROW_COMMIT_VERSION.of(snapshot.properties)}

    def look(path: str) -> Iterator[bool]:
        with opened_file(resolve_file(snapshot.location, path), snapshot.storage_options) as file:
            schema = file.schema_arrow
        yield _has_others([field for field in schema if field.name not in stored], known)

    yield from flat_map_ordered(look, paths, min(_FOOTERS_AT_ONCE, max(1, len(paths))))


def _has_others(stored: list[pa.Field], known: StructType) -> bool:
    for column in stored:
        found = known.find(column.name)
        if found is None or _is_wider(column.type, found.type):
            return True
    return False


def _is_wider(stored: pa.DataType, known: DataType) -> bool:
    """True if a type of a file has fields that the table has not."""
    if isinstance(known, StructType) and pa.types.is_struct(stored):
        return _has_others(list(stored), known)
    if isinstance(known, ArrayType) and pa.types.is_list(stored):
        return _is_wider(stored.value_type, known.element_type)
    if isinstance(known, MapType) and pa.types.is_map(stored):
        return _is_wider(stored.key_type, known.key_type) or _is_wider(stored.item_type, known.value_type)
    return False
