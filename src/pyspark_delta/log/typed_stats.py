"""Statistics that a checkpoint stores only as columns, converted to the text of the log (C053)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.log.parquet_part import ParquetPart
from pyspark_delta.schema.legacy_calendar import LegacyCalendar
from pyspark_delta.stats.texts import stats_texts

STATS_PARSED = "stats_parsed"


def may_lack_json(part: ParquetPart, group: int) -> bool:
    """True if columns may be the only statistics of some file of a row group."""
    stored = part.schema.field("add").type
    if not pa.types.is_struct(stored) or stored.get_field_index(STATS_PARSED) < 0:
        return False
    return _nulls(part, group, "add.stats") > _nulls(part, group, "add.path")


def typed_stats(part: ParquetPart, adds: pa.StructArray) -> pa.StructArray:
    """Return `stats_parsed` of `add` structs, without the members that may be in the legacy calendar."""
    stats: pa.StructArray = pc.struct_field(adds, [STATS_PARSED])
    calendar = part.calendar(part.leaves_below(f"add.{STATS_PARSED}"))
    return stats if calendar is None else _without(calendar, stats)


def with_json(texts: pa.Array, stored: pa.StructArray) -> pa.Array:
    """Return the statistics as JSON text, made from the typed form if the text is missing."""
    if texts.null_count == 0:
        return texts
    missing = pc.and_(texts.is_null(), stored.is_valid())
    if not pc.any(missing).as_py():
        return texts
    return pc.replace_with_mask(texts, missing, stats_texts(stored.filter(missing)))


def _without(calendar: LegacyCalendar, stats: pa.StructArray) -> pa.StructArray:
    kept = [i for i, f in enumerate(stats.type) if pa.types.is_struct(f.type) or not calendar.concerns(f.type)]
    members = [stats.field(i) for i in kept]
    members = [_without(calendar, m) if pa.types.is_struct(m.type) else m for m in members]
    fields = [stats.type.field(i).with_type(m.type) for i, m in zip(kept, members, strict=True)]
    return pa.StructArray.from_arrays(members, fields=fields, mask=stats.is_null())  # which contains its length


def _nulls(part: ParquetPart, group: int, leaf: str) -> int:
    index, row_group = part.leaf(leaf), part.metadata.row_group(group)
    if index is None:
        return int(row_group.num_rows)
    statistics = part.statistics(group, index)
    if statistics is None or not statistics.has_null_count:
        return 0
    return int(statistics.null_count)
