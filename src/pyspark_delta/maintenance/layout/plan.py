"""Plans of OPTIMIZE that lay rows out: clustered tables, Z-order, and sorted rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.maintenance.layout.columns import (
    LayoutColumn,
    columns_at,
    layout_columns,
    names_as_json,
    without_statistics,
)
from pyspark_delta.maintenance.layout.cubes import CUBE_ID, ChosenFiles, CubeSizes, files_to_cluster
from pyspark_delta.maintenance.layout.layouts import Cluster, Layout
from pyspark_delta.maintenance.layout.rewrite import LayoutWriter
from pyspark_delta.maintenance.layout.tasks import lay_out_in_tasks
from pyspark_delta.maintenance.rewriting.bins import Bins
from pyspark_delta.maintenance.rewriting.candidates import GROUP, LIVE, Candidates, FileMasks, choose_files
from pyspark_delta.maintenance.rewriting.commits import CommittedBins
from pyspark_delta.maintenance.rewriting.layout_metrics import LayoutMetrics
from pyspark_delta.maintenance.rewriting.metrics import RewriteResult
from pyspark_delta.maintenance.rewriting.plan import Parameters, RewritePlan, predicate_text
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting
from pyspark_delta.maintenance.rewriting.run import RunOptions
from pyspark_delta.maintenance.rewriting.tasks import TaskWriter
from pyspark_delta.protocol.clustering import clustering_paths
from pyspark_delta.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
class LayoutRequest:
    """Which layout: `layout`; without one, that of the clustering columns of the table.

    A clustered table is clustered again where it was clustered by other columns if `full`. `where` selects partitions.
    New files have about `target_size` bytes. `cubes` are by default those for the size of the table.
    """

    layout: Layout | None
    target_size: int
    where: str | None = None
    full: bool = False
    cubes: CubeSizes | None = None


@dataclass(frozen=True, repr=False, kw_only=True)
class LayoutPlan(RewritePlan):
    """What OPTIMIZE would do to a table if it lays out rows; there is a bin for each partition.

    `writer` says in which layout. `chosen` counts the files that are read.
    """

    writer: LayoutWriter
    chosen: ChosenFiles

    def facts(self) -> dict[str, object]:
        """Return the plan as names and values."""
        return {**super().facts(), "layout": self.writer.words, "cubes": self.chosen.num_cubes}

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.is_nothing else f"{text}\n  rows are {self.writer.words}"

    def _task_writer(self) -> TaskWriter:
        """Return what lays rows out in tasks, with an exchange."""
        return partial(lay_out_in_tasks, self.writer)

    def _result(self, commits: Sequence[CommittedBins]) -> RewriteResult:
        done = [one for commit in commits for one in commit.bins if one.source.number >= 0]
        cubes: set[str] = set()
        for one in done:
            for tags in one.adds["tags"].to_pylist() if "tags" in one.adds.column_names else ():
                cubes.add(dict(tags or ()).get(CUBE_ID, ""))
        metrics = LayoutMetrics(
            is_clustering=self.writer.cubes is not None,
            cube_files=self.chosen.cube_files,
            cube_bytes=self.chosen.cube_bytes,
            other_files=self.chosen.other_files,
            other_bytes=self.chosen.other_bytes,
            cubes=self.chosen.num_cubes,
            merged_files=sum(one.source.files.num_rows for one in done),
            merged_bytes=sum(int(one.source.files["size"].to_numpy().sum()) for one in done),
            new_cubes=len(cubes) if self.writer.cubes is not None else len(done),
        )
        return replace(super()._result(commits), layout=metrics)


def plan_layout(snapshot: Snapshot, request: LayoutRequest, rewriting: Rewriting, options: RunOptions) -> LayoutPlan:
    """Return what an OPTIMIZE with a layout would do, without writing anything. Reads only the log.

    Raises InvalidOperationError for columns that cannot be used, for a layout of other columns than those by which the
    table is clustered, and for `full` without clustering columns; and as `choose_files`.
    """
    clustering = columns_at(snapshot.configuration, clustering_paths(snapshot.domains()))
    if clustering:
        return _plan_clustering(snapshot, request, clustering, rewriting, options)
    if request.full:
        raise without_clustering_columns()
    assert request.layout is not None
    columns = _checked(snapshot, request.layout)
    candidates = choose_files(snapshot, _all_files, request.where, time_zone=rewriting.time_zone)
    bins = _by_group(candidates.files, request.target_size)
    size = int(candidates.files["size"].to_numpy().sum())
    chosen = ChosenFiles(np.ones(candidates.files.num_rows, np.bool_), 0, 0, candidates.files.num_rows, size, 0)
    names = names_as_json(columns)
    is_sorted = not isinstance(request.layout, Cluster)
    parameters = {**_parameters(request.where), "sortBy" if is_sorted else "zOrderBy": names}
    writer = LayoutWriter(request.layout, columns)
    return _plan(snapshot, parameters, candidates, bins, rewriting, options, writer, chosen)


def without_clustering_columns() -> InvalidOperationError:
    """Return the error for clustering a table that has no clustering columns."""
    return InvalidOperationError(
        "The table has no clustering columns, so it cannot be clustered. Set clustering columns, or use Z-order.",
        error_class="DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
    )


def _plan_clustering(
    snapshot: Snapshot,
    request: LayoutRequest,
    columns: tuple[LayoutColumn, ...],
    rewriting: Rewriting,
    options: RunOptions,
) -> LayoutPlan:
    names = tuple(column.name for column in columns)
    layout = Cluster(*names) if request.layout is None else request.layout
    if not isinstance(layout, Cluster) or tuple(c.path for c in _checked(snapshot, layout)) != tuple(
        column.path for column in columns
    ):
        raise InvalidOperationError(
            f"The table is clustered by {', '.join(names)}, so its rows cannot be laid out by "
            f"{', '.join(layout.columns)}. Set other clustering columns, or leave the layout out.",
            error_class="DELTA_CLUSTERING_WITH_ZORDER_BY",
        )
    sizes = request.cubes or CubeSizes.of_table(snapshot.size_in_bytes())
    candidates = choose_files(snapshot, _all_files, time_zone=rewriting.time_zone, tags=True)
    limit = options.budget.size
    chosen = files_to_cluster(candidates.files, columns, sizes, full=request.full, limit=limit)
    files = candidates.files.filter(pa.array(chosen.mask))
    zeros = pa.array(np.zeros(files.num_rows, np.int64))
    files = files.set_column(files.column_names.index(GROUP), GROUP, zeros)
    files = files.take(pc.sort_indices(files, [("modification_time", "ascending"), ("path", "ascending")]))
    candidates = replace(candidates, files=files)
    parameters = {**_parameters(None), "clusterBy": names_as_json(columns), "isFull": request.full}
    writer = LayoutWriter(layout, columns, sizes)
    bins = _by_group(files, request.target_size)
    return _plan(snapshot, parameters, candidates, bins, rewriting, options, writer, chosen)


def _plan(
    snapshot: Snapshot,
    parameters: Parameters,
    candidates: Candidates,
    bins: Bins,
    rewriting: Rewriting,
    options: RunOptions,
    writer: LayoutWriter,
    chosen: ChosenFiles,
) -> LayoutPlan:
    within = bins.within(options.budget.size)
    return LayoutPlan(
        snapshot,
        "OPTIMIZE",
        parameters,
        candidates,
        within,
        len(bins) - len(within) + chosen.is_cut,
        rewriting,
        replace(options, writer=writer),
        writer=writer,
        chosen=chosen,
    )


def _parameters(where: str | None) -> Parameters:
    return {"predicate": predicate_text(where), "zOrderBy": "[]", "clusterBy": "[]", "auto": False}


def _checked(snapshot: Snapshot, layout: Layout) -> tuple[LayoutColumn, ...]:
    """Return the columns of a layout. Clustering needs statistics: without them, no query can skip files."""
    try:
        columns = layout_columns(snapshot.configuration, layout.columns)
    except InvalidOperationError as error:
        if error.error_class != "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA":
            raise
        raise InvalidOperationError(error.message, error_class="DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST") from None
    if not isinstance(layout, Cluster):
        return columns
    missing = without_statistics(snapshot.configuration, columns, clustering_paths(snapshot.domains()))
    if missing:
        names = ", ".join(column.name for column in missing)
        raise InvalidOperationError(
            f"Files have no statistics of {names}, so clustering by it would not let queries skip files. Move the "
            "column to the front of the schema, or add it to delta.dataSkippingStatsColumns.",
            error_class="DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS",
            column=names,
        )
    return columns


def _all_files(files: pa.RecordBatch) -> FileMasks:
    every = pa.array(np.ones(files.num_rows, np.bool_))
    return FileMasks(every, every)


def _by_group(files: pa.Table, target_size: int) -> Bins:
    """Return a bin for the files of each group, which are adjacent."""
    groups = files[GROUP].to_numpy()
    starts = np.flatnonzero(np.diff(groups, prepend=-1)).astype(np.int64)
    ends = np.append(starts[1:], len(groups)).astype(np.int64)[: len(starts)]
    live, read = (np.concatenate([[0], np.cumsum(files[name].to_numpy())]) for name in (LIVE, "size"))
    return Bins(files, target_size, starts, ends, live[ends] - live[starts], read[ends] - read[starts])
