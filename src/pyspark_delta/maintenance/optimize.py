"""OPTIMIZE: combine small files, and rewrite files with many deleted rows.

Rows keep their order, unless a layout is asked for or the table is clustered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark_delta.data.row_group_rules import LARGE, LargeRowGroups
from pyspark_delta.errors import InvalidOperationError, InvalidOptionError, InvalidPredicateError
from pyspark_delta.maintenance.budget import size_of
from pyspark_delta.maintenance.layout.cubes import CubeSizes
from pyspark_delta.maintenance.layout.layouts import Cluster, Layout, Sort
from pyspark_delta.maintenance.layout.plan import LayoutRequest, plan_layout
from pyspark_delta.maintenance.rewriting.bins import Bins, pack, worthwhile
from pyspark_delta.maintenance.rewriting.candidates import Candidates, choose_files, compaction_rule
from pyspark_delta.maintenance.rewriting.copying import RowGroupCopying
from pyspark_delta.maintenance.rewriting.plan import (
    Parameters,
    RewritePlan,
    check_rewritable,
    predicate_text,
)
from pyspark_delta.maintenance.rewriting.request import RewriteRequest
from pyspark_delta.maintenance.rewriting.rewrite import rewrite_in_order
from pyspark_delta.maintenance.rewriting.run import RunOptions
from pyspark_delta.snapshot import Snapshot

MAX_DELETED_SHARE = 0.05
"""The share of deleted rows above which a file is rewritten."""

_SMALL = 0.75  # of the target size: a file near the target rests


@dataclass(frozen=True, kw_only=True)
class OptimizeRequest(RewriteRequest):
    """What to optimize; see `RewriteRequest` for the other fields.

    `layout` orders rows, `zorder_by` clusters them by some columns; a clustered table is clustered by its own columns,
    with `full` also where it was clustered by others before; `cubes` says how large its cubes become. Files from
    `min_size` bytes on are left as they are, by default three quarters of the target size, unless more than
    `max_deleted_share` of their rows are deleted. Large row groups are copied without being decoded, unless `copying`
    is None.
    """

    layout: Layout | None = None
    zorder_by: Sequence[str] = ()
    full: bool = False
    cubes: CubeSizes | None = None
    min_size: int | str | None = None
    max_deleted_share: float = MAX_DELETED_SHARE
    copying: LargeRowGroups | None = LARGE

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.zorder_by, str) or not all(isinstance(name, str) for name in self.zorder_by):
            raise InvalidOptionError(
                f"zorder_by is a list of names of columns, found {self.zorder_by!r}.", option="zorder_by"
            )
        if self.layout is not None and not isinstance(self.layout, Sort | Cluster):
            raise InvalidOptionError(f"layout is a Sort or a Cluster, found {self.layout!r}.", option="layout")
        if self.layout is not None and self.zorder_by:
            raise InvalidOptionError("Give either layout or zorder_by, not both.", option="zorder_by")

    def copying_options(self) -> RunOptions:
        """Return how the run is done; large row groups are copied if the request says so."""
        return self.options(rewrite_in_order if self.copying is None else RowGroupCopying(self.copying))


def plan_optimize(snapshot: Snapshot, request: OptimizeRequest) -> RewritePlan:
    """Return what an OPTIMIZE of a table would do, without writing anything.

    Reads only the log. Raises InvalidPredicateError for a condition on other columns than those of the partitioning,
    InvalidOperationError for a layout that the table cannot have (see `plan_layout`), MaintenanceNotAllowedError for a
    table whose catalog does not allow it, and as `check_writable`.
    """
    check_rewritable(snapshot)
    clustering = snapshot.clustering_columns()
    if clustering and request.where is not None:
        raise InvalidPredicateError(
            f"The table is clustered by {', '.join(clustering)} and has no partitions to select by '{request.where}'. "
            "Leave the condition out.",
            error_class="DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
            sqlstate="0A000",
        )
    if clustering and request.zorder_by:
        raise InvalidOperationError(
            f"The table is clustered by {', '.join(clustering)}, so Z-order has no use for it. Leave zorder_by out, or "
            "set other clustering columns.",
            error_class="DELTA_CLUSTERING_WITH_ZORDER_BY",
        )
    target = request.target(snapshot)
    layout = Cluster(*request.zorder_by) if request.zorder_by else request.layout
    if layout is not None or request.full or clustering:
        wanted = LayoutRequest(
            layout=layout, target_size=target, where=request.where, full=request.full, cubes=request.cubes
        )
        return plan_layout(snapshot, wanted, request.rewriting(snapshot), request.copying_options())
    candidates, bins = plan_compaction(snapshot, request, target)
    chosen = bins.within(request.budget.size)
    text = predicate_text(request.where)
    parameters: Parameters = {"predicate": text, "zOrderBy": "[]", "clusterBy": "[]", "auto": False}
    return RewritePlan(
        snapshot,
        "OPTIMIZE",
        parameters,
        candidates,
        chosen,
        len(bins) - len(chosen),
        request.rewriting(snapshot),
        request.copying_options(),
    )


def plan_compaction(snapshot: Snapshot, request: OptimizeRequest, target_size: int) -> tuple[Candidates, Bins]:
    """Return the files that a compaction to files of some bytes concerns, and the bins that are worth their bytes.

    Files of different clusterings do not share a bin. Raises as `choose_files`.
    """
    min_size = int(target_size * _SMALL) if request.min_size is None else size_of(request.min_size, "min_size")
    candidates = choose_files(
        snapshot,
        compaction_rule(min_size, request.max_deleted_share),
        request.where,
        time_zone=request.time_zone,
        tags=bool(snapshot.clustering_columns()),
        large=request.copying,
    )
    return candidates, worthwhile(pack(candidates.files, target_size))
