"""Change the columns by which new files are clustered (Clustered Table; C347-C354)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import PATH, STATS
from pyspark_delta.actions.model import DomainMetadata
from pyspark_delta.ddl.change import TableChange
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.tree import Column
from pyspark_delta.features import Feature
from pyspark_delta.log.request import FileRequest
from pyspark_delta.protocol.clustering import DOMAIN, clustering_paths
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.protocol.properties import STATS_COLUMNS
from pyspark_delta.protocol.statistics import table_stats_columns
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.schema.edits import Path, spelled, type_at
from pyspark_delta.schema.types import LONG, ArrayType, MapType, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.stats.indexed_columns import StatsColumn
from pyspark_delta.stats.parse import parse_stats

MOST_COLUMNS = 4


def cluster_by(configuration: TableConfiguration, paths: Sequence[Path], *, before: Sequence[str] = ()) -> TableChange:
    """Set other clustering columns, none for an empty sequence; existing files are not changed.

    `before` are the present ones, as texts. Raises InvalidOperationError for a partitioned table, more than four
    columns, and types that have no order.
    """
    if paths and configuration.partition_columns:
        raise InvalidOperationError(
            "The table is partitioned, and a partitioned table cannot be clustered. Write a new table.",
            error_class="DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
        )
    named = [spelled(configuration.schema, path) for path in paths]
    _check(configuration.schema, named)
    _check_statistics(configuration, named)
    parameters = {
        "oldClusteringColumns": ",".join(before),
        "newClusteringColumns": ",".join(column_path_text(path) for path in named),
    }
    return TableChange(
        operation=Operation("CLUSTER BY", parameters),
        metadata=configuration.metadata,
        features=(Feature.CLUSTERING,) if named else (),
        domains=(clustering_domain(configuration, named),),
    )


def recluster(snapshot: Snapshot, paths: Sequence[Path]) -> TableChange:
    """Set other clustering columns for a table that may have files. Raises the errors of `cluster_by`.

    Raises InvalidOperationError also if files have no statistics for a column that the table was not clustered by
    before (C351).
    """
    configuration, before = snapshot.configuration, snapshot.clustering_columns()
    change = cluster_by(configuration, paths, before=before)
    known = set(clustering_paths(snapshot.domains()))
    new = [spelled(configuration.schema, path) for path in paths]
    _check_files(snapshot, [path for path in new if _physical(configuration, path) not in known])
    return change


def clustering_domain(configuration: TableConfiguration, paths: Sequence[Sequence[str]]) -> DomainMetadata:
    """Return the metadata domain that names the clustering columns, by their physical names."""
    columns = [list(_physical(configuration, path)) for path in paths]
    return DomainMetadata(domain=DOMAIN, configuration=orjson.dumps({"clusteringColumns": columns}).decode())


def _physical(configuration: TableConfiguration, path: Sequence[str]) -> tuple[str, ...]:
    mode, struct, names = mapping_mode(configuration), configuration.schema, []
    for part in path:
        field = struct.find(part)
        assert field is not None
        names.append(physical_field(field, mode).name)
        if isinstance(field.type, StructType):
            struct = field.type
    return tuple(names)


def _check_statistics(configuration: TableConfiguration, paths: Sequence[tuple[str, ...]]) -> None:
    """Check that clustering columns have statistics, because clustering uses them (C351)."""
    measured = {column.path for column in table_stats_columns(configuration)}
    for path in paths:
        if _physical(configuration, path) not in measured:
            raise InvalidOperationError(
                f"The column '{column_path_text(path)}' has no statistics, so files cannot be clustered by it. Move it "
                f"to the front of the schema, or name it in {STATS_COLUMNS.name}.",
                error_class="DELTA_CLUSTERING_COLUMN_MISSING_STATS",
                column=column_path_text(path),
            )


def _check_files(snapshot: Snapshot, paths: Sequence[tuple[str, ...]]) -> None:
    """Check that all files have their number of rows, and the number of nulls in each column.

    Bounds are not required: there are none if all values are null or NaN, or if a text has no upper bound.
    """
    counts = [Column(("nullCount", *_physical(snapshot.configuration, path)), LONG) for path in paths]
    leaves = [Column(("numRecords",), LONG), *counts]
    lacking, example = 0, ""
    for batch in snapshot.read_files(FileRequest((PATH.name, STATS.name))) if paths else ():
        stats = parse_stats(batch.column(STATS.name), leaves)
        missing = reduce(pc.or_, (pc.is_null(_leaf(stats, leaf.path)) for leaf in leaves))
        files = batch.column(PATH.name).filter(missing)
        lacking += len(files)
        example = example or (files[0].as_py() if len(files) else "")
    if lacking:
        names = ", ".join(f"'{column_path_text(path)}'" for path in paths)
        raise InvalidOperationError(
            f"The table cannot be clustered by {names}: {lacking} of its files have no statistics for these columns, "
            f"such as '{example}'. Rewrite the files, for example by overwriting the table with its own rows, or "
            "cluster a new table.",
            error_class="DELTA_CLUSTERING_COLUMN_MISSING_STATS",
            files=lacking,
        )


def _leaf(stats: pa.RecordBatch, path: Sequence[str]) -> pa.Array:
    found = stats.column(path[0])
    for name in path[1:]:
        found = pc.struct_field(found, [found.type.get_field_index(name)])
    return found


def _check(schema: StructType, paths: Sequence[tuple[str, ...]]) -> None:
    if len(paths) > MOST_COLUMNS:
        raise InvalidOperationError(
            f"A table is clustered by {MOST_COLUMNS} columns at most, found {len(paths)}.",
            error_class="DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
        )
    if len(set(paths)) < len(paths):
        raise InvalidOperationError("A clustering column is named twice.", error_class="DELTA_DUPLICATE_COLUMNS_FOUND")
    for path in paths:
        found = type_at(schema, path)
        leaf = None if isinstance(found, StructType | ArrayType | MapType) else 0
        if not StatsColumn((), found, leaf).has_bounds:
            raise InvalidOperationError(
                f"The column '{column_path_text(path)}' of type {found} has no minimum and maximum, so files "
                "cannot be clustered by it.",
                error_class="DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
                column=column_path_text(path),
            )
