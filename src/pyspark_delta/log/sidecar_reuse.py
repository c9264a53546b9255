"""Which sidecars of the old checkpoint serve the next one as they are: those whose files are all still live.

Every checkpoint may name the same sidecar; cleanup keeps it as long as one of them is there (C368).
"""

from __future__ import annotations

import pyarrow.compute as pc

from pyspark_delta.actions.columns import DELETION_VECTOR, PATH, SIZE
from pyspark_delta.actions.model import Sidecar
from pyspark_delta.log.checkpoint_layout import CheckpointLayout
from pyspark_delta.log.checkpoint_scan import scan_part
from pyspark_delta.log.file_totals import FileTotals
from pyspark_delta.log.parquet_part import ParquetPart
from pyspark_delta.log.replay import LogReplay
from pyspark_delta.storage.paths import file_name


def reusable_sidecars(
    replay: LogReplay, layout: CheckpointLayout, full: int
) -> tuple[list[tuple[Sidecar, FileTotals]], tuple[ParquetPart, ...]]:
    """The sidecars to keep, with the totals of their files, and the files of the old checkpoint to write anew.

    Sidecars of less than half of `full` actions are among the latter: small ones would become ever more.
    """
    checkpoint = replay.checkpoint
    if checkpoint is None:
        return [], ()
    kept, renewed = [], list(checkpoint.top_level)
    for part in checkpoint.sidecars:
        totals = _all_live(replay, part) if _serves(part, layout, full) else None
        if totals is None:
            renewed.append(part)
            continue
        status = part.file
        name = file_name(status.path)
        kept.append((Sidecar(path=name, size_in_bytes=status.size, modification_time=status.modification_time), totals))
    return kept, tuple(renewed)


def _serves(part: ParquetPart, layout: CheckpointLayout, full: int) -> bool:
    """Whether a sidecar is large enough, holds live files only, and has the columns that the table asks for."""
    if part.metadata.num_rows * 2 < full or part.schema.get_field_index("add") < 0:
        return False
    if part.row_groups_with("remove.path"):
        return False
    return bool(part.schema.field("add").type == layout.add_type)


def _all_live(replay: LogReplay, part: ParquetPart) -> FileTotals | None:
    """The totals of a sidecar none of whose files a later commit names; None for one of which it names some."""
    totals, rows = FileTotals(), 0
    for batch in scan_part(part, "add", [PATH, SIZE, DELETION_VECTOR]):
        if replay.keys.unnamed_mask(batch) is not None:
            return None
        vectors = batch.column("deletion_vector")
        cardinalities = None if vectors.null_count == len(vectors) else pc.struct_field(vectors, ["cardinality"])
        totals = totals.plus(batch.column("size"), cardinalities)
        rows += len(batch)
    return totals if rows == part.metadata.num_rows else None
