"""Change the columns by which files are clustered (Clustered Table; C347-C354)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import orjson
import pyarrow as pa

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.actions.model import DomainMetadata
from pyspark_delta.data.column_statistics import MeasuredColumn, lacking_statistics, with_column_statistics
from pyspark_delta.ddl.change import TableChange
from pyspark_delta.errors import InvalidOperationError
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
from pyspark_delta.schema.types import ArrayType, MapType, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.stats.indexed_columns import StatsColumn

MOST_COLUMNS = 4


def cluster_by(configuration: TableConfiguration, paths: Sequence[Path], *, before: Sequence[str] = ()) -> TableChange:
    """Set other clustering columns, none for an empty sequence; no file is read.

    `before` are the current ones, as strings. Raises InvalidOperationError for more than four columns, for columns
    without statistics, and for types that have no order.
    """
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


def recluster(snapshot: Snapshot, paths: Sequence[Path]) -> TableChange | None:
    """Set other clustering columns for a table that may have files; None if it has none, and gets none.

    The change commits files again that lack statistics for a column that the table was not clustered by before, with
    these statistics (C351). They are computed in this process, from footers where possible. Raises the errors of
    `cluster_by`, InvalidOperationError for a partitioned table (C348), and DataFileError for a file that must be opened
    and cannot be.
    """
    configuration, before = snapshot.configuration, snapshot.clustering_columns()
    if configuration.partition_columns:
        raise InvalidOperationError(
            "The table is partitioned, and a partitioned table cannot be clustered. Write a new table.",
            error_class="DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
        )
    change = cluster_by(configuration, paths, before=before)
    known = set(clustering_paths(snapshot.domains()))
    if not paths and not known:
        return None
    new = [spelled(configuration.schema, path) for path in paths]
    unknown = [path for path in new if _physical(configuration, path) not in known]
    return replace(change, recommitted=_with_statistics(snapshot, unknown)) if unknown else change


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
                f"to the front of the schema, or add it to {STATS_COLUMNS.name}.",
                error_class="DELTA_CLUSTERING_COLUMN_MISSING_STATS",
                column=column_path_text(path),
            )


def _with_statistics(snapshot: Snapshot, paths: Sequence[tuple[str, ...]]) -> pa.Table:
    """Return the files that lack their number of rows, or of nulls in some of the columns, with these statistics."""
    configuration = snapshot.configuration
    physical = [_physical(configuration, path) for path in paths]
    live = snapshot.read_files(FileRequest(tuple(field.name for field in FILE_FIELDS)))
    files = pa.Table.from_batches(lacking_statistics(live, physical), pa.schema(FILE_FIELDS))
    columns = {column.path: column for column in table_stats_columns(configuration)}
    measured = [MeasuredColumn(path, columns[at]) for path, at in zip(paths, physical, strict=True)]
    return with_column_statistics(files, snapshot.location, configuration, measured, snapshot.storage_options)


def _check(schema: StructType, paths: Sequence[tuple[str, ...]]) -> None:
    if len(paths) > MOST_COLUMNS:
        raise InvalidOperationError(
            f"A table can have at most {MOST_COLUMNS} clustering columns, found {len(paths)}.",
            error_class="DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
        )
    if len(set(paths)) < len(paths):
        raise InvalidOperationError("A clustering column is given twice.", error_class="DELTA_DUPLICATE_COLUMNS_FOUND")
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
