"""Select sidecars of the old checkpoint that the next one can reuse unchanged: those whose files are all still live.

Every checkpoint may name the same sidecar; cleanup keeps it as long as one of them exists (C368).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import DELETION_VECTOR, PATH, SIZE
from pyspark_delta.actions.model import Sidecar
from pyspark_delta.log.checkpoint_layout import CheckpointLayout
from pyspark_delta.log.checkpoint_scan import scan_part
from pyspark_delta.log.file_totals import FileTotals
from pyspark_delta.log.parquet_part import ParquetPart
from pyspark_delta.log.replay import FileSources
from pyspark_delta.parallel import map_ordered
from pyspark_delta.storage.paths import file_name

_PROBED_TOGETHER = 4  # sidecars


def reusable_sidecars(
    sources: FileSources, layout: CheckpointLayout, full: int
) -> tuple[list[tuple[Sidecar, FileTotals]], tuple[ParquetPart, ...]]:
    """The sidecars to keep, with the totals of their files, and the files of the old checkpoint to rewrite.

    Sidecars of less than half of `full` actions are rewritten, so that small ones do not accumulate.
    """
    checkpoint = sources.checkpoint
    if checkpoint is None:
        return [], ()
    serving = [part for part in checkpoint.sidecars if _serves(part, layout, full)]
    kept = []
    for part, totals in _all_live(sources, serving):
        status = part.file
        name = file_name(status.path)
        kept.append((Sidecar(path=name, size_in_bytes=status.size, modification_time=status.modification_time), totals))
    names = {sidecar.path for sidecar, _ in kept}
    renewed = [part for part in checkpoint.sidecars if file_name(part.file.path) not in names]
    return kept, (*checkpoint.top_level, *renewed)


def _serves(part: ParquetPart, layout: CheckpointLayout, full: int) -> bool:
    """True if a sidecar is large enough, contains only live files, and has the columns that the table requires."""
    if part.metadata.num_rows * 2 < full or part.schema.get_field_index("add") < 0:
        return False
    if part.row_groups_with("remove.path"):
        return False
    return bool(part.schema.field("add").type == layout.add_type)


def _all_live(sources: FileSources, parts: Sequence[ParquetPart]) -> Iterator[tuple[ParquetPart, FileTotals]]:
    """Yield the sidecars without files that a later commit names, with the totals of their files."""
    read = map_ordered(_keys_and_sizes, parts, _PROBED_TOGETHER)
    while together := list(islice(read, _PROBED_TOGETHER)):
        masks = iter(sources.keys.named([batch for _, batches in together for batch in batches]))
        for part, batches in together:
            named = [mask for mask in islice(masks, len(batches)) if mask is not None and mask.true_count]
            totals = _totals(batches)
            if not named and totals.num_files == part.metadata.num_rows:
                yield part, totals


def _keys_and_sizes(part: ParquetPart) -> tuple[ParquetPart, list[pa.RecordBatch]]:
    return part, list(scan_part(part, "add", [PATH, SIZE, DELETION_VECTOR]))


def _totals(batches: Iterable[pa.RecordBatch]) -> FileTotals:
    totals = FileTotals()
    for batch in batches:
        vectors = batch.column("deletion_vector")
        cardinalities = None if vectors.null_count == len(vectors) else pc.struct_field(vectors, ["cardinality"])
        totals = totals.plus(batch.column("size"), cardinalities)
    return totals
