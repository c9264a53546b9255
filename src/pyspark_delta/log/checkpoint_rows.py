"""The file actions of a version as rows of its next checkpoint, streamed (CKC; C053, C054, C061, C063).

Rows of an older checkpoint are copied in Arrow form: statistics are parsed, or written as JSON, only if the old
checkpoint lacks the required form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import FILE_FIELDS, TOMBSTONE_FIELDS
from pyspark_delta.log.arrays import bool_array, chosen_rows, int64_array
from pyspark_delta.log.checkpoint_columns import extract, leaf_columns
from pyspark_delta.log.checkpoint_layout import DELETION_VECTOR_TYPE, REMOVE_TYPE, CheckpointLayout
from pyspark_delta.log.parquet_part import BATCH_ROWS, ParquetPart
from pyspark_delta.log.replay import FileSources, LogReplay
from pyspark_delta.log.skipping import partition_column
from pyspark_delta.log.struct_types import cast_struct, cast_struct_or_null
from pyspark_delta.log.typed_stats import STATS_PARSED, may_lack_json, typed_stats, with_json
from pyspark_delta.parallel import map_ordered
from pyspark_delta.stats.parse import parse_stats

_PROBED_AT_ONCE = 32_768  # rows of a checkpoint whose keys are looked up together

Rows: TypeAlias = pa.StructArray


def live_rows(
    replay: LogReplay,
    sources: FileSources,
    layout: CheckpointLayout,
    partition_names: Sequence[str],
    parts: Sequence[ParquetPart],
) -> Iterator[Rows]:
    """Yield the live files of some files of the old checkpoint, and of the commits after it, as `add` structs."""
    names = [f.name for f in FILE_FIELDS]
    stored = (batch for part in parts for batch in _stored_files(part, layout))
    yield from map_ordered(lambda batch: add_rows(batch, layout), sources.keys.unnamed(stored, _PROBED_AT_ONCE))
    for batch in replay.line_files(sources, "add", names, partition_names):
        if len(batch):
            yield add_rows(batch, layout)


def tombstone_rows(replay: LogReplay, partition_names: Sequence[str], expired_before: int) -> Iterator[Rows]:
    """Yield the tombstones that are younger than a time, ms since the epoch, as `remove` structs."""
    for batch in replay.files("remove", [f.name for f in TOMBSTONE_FIELDS], partition_names):
        times = pc.fill_null(batch.column("deletion_timestamp"), 0)
        kept = pc.greater(times, expired_before)
        if pc.any(kept).as_py():
            yield remove_rows(batch if pc.all(kept).as_py() else chosen_rows(batch, kept))


def add_rows(files: pa.RecordBatch, layout: CheckpointLayout) -> Rows:
    """Return files, with the columns of `FILE_FIELDS` and optionally `stats_parsed`, as `add` structs of a layout."""
    texts, stored = files.column("stats"), _stored_stats(files)
    columns = {
        "path": files.column("path"),
        "partitionValues": files.column("partition_values"),
        "size": files.column("size"),
        "modificationTime": files.column("modification_time"),
        "dataChange": _no_data_change(files),
        "tags": files.column("tags"),
        "deletionVector": _deletion_vectors(files.column("deletion_vector")),
        "baseRowId": files.column("base_row_id"),
        "defaultRowCommitVersion": files.column("default_row_commit_version"),
        "clusteringProvider": files.column("clustering_provider"),
    }
    if layout.stats_text:
        columns["stats"] = texts if stored is None else with_json(texts, stored)
    if layout.stats_type is not None:
        columns[STATS_PARSED] = _parsed(texts, stored, layout)
    if layout.partition_type is not None:
        columns["partitionValues_parsed"] = _parsed_partitions(files.column("partition_values"), layout)
    return pa.StructArray.from_arrays([columns[f.name] for f in layout.add_type], fields=list(layout.add_type))


def remove_rows(files: pa.RecordBatch) -> Rows:
    """Return tombstones, with columns of `TOMBSTONE_FIELDS`, as `remove` structs without statistics and tags (C054)."""
    columns = [
        files.column("path"),
        files.column("deletion_timestamp"),
        _no_data_change(files),
        files.column("extended_file_metadata"),
        files.column("partition_values"),
        files.column("size"),
        _deletion_vectors(files.column("deletion_vector")),
        files.column("base_row_id"),
        files.column("default_row_commit_version"),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(REMOVE_TYPE))


# ------------------------------------------------------------------------------------------------ the old checkpoint
def _stored_files(part: ParquetPart, layout: CheckpointLayout) -> Iterator[pa.RecordBatch]:
    """Yield the files of one file of the old checkpoint, with its `stats_parsed` if it can be used."""
    groups = part.row_groups_with("add.path")
    if not groups:
        return
    fields = list(FILE_FIELDS)
    stored = part.schema.field("add").type
    with part.reading() as file:
        for group in groups:
            names = leaf_columns(part, "add", fields, group)
            parsed = stored.get_field_index(STATS_PARSED) >= 0 and _needs_parsed(part, group, layout)
            if parsed:
                names.append(f"add.{STATS_PARSED}")
            for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=names):
                yield from _files_of(batch.column("add"), part, parsed=parsed)


def _files_of(rows: pa.StructArray, part: ParquetPart, *, parsed: bool) -> Iterator[pa.RecordBatch]:
    files = extract(rows, list(FILE_FIELDS), part.path)
    if parsed:
        files = files.append_column(STATS_PARSED, typed_stats(part, rows))
    present = files.column("path").is_valid()
    if files.column("path").null_count:
        files = chosen_rows(files, present)
    if len(files):
        files.validate(full=True)  # Parquet readers do not validate UTF-8
        yield files


def _needs_parsed(part: ParquetPart, group: int, layout: CheckpointLayout) -> bool:
    """True if typed statistics are required, or are the only form that some file has (C053)."""
    return layout.stats_type is not None or may_lack_json(part, group)


# -------------------------------------------------------------------------------------------------------- statistics
def _stored_stats(files: pa.RecordBatch) -> pa.StructArray | None:
    return files.column(STATS_PARSED) if STATS_PARSED in files.schema.names else None


def _parsed(texts: pa.Array, stored: pa.StructArray | None, layout: CheckpointLayout) -> pa.StructArray:
    """Return the typed form: the stored one if it has every leaf, otherwise parsed from JSON."""
    wanted = layout.stats_type
    known = None if stored is None else cast_struct(stored, wanted)
    if known is not None and not known.null_count:
        return known
    if known is None and stored is not None and texts.null_count == len(texts):
        return cast_struct_or_null(stored, wanted)
    if known is not None:
        missing = pc.and_(known.is_null(), texts.is_valid())
        if not pc.any(missing).as_py():
            return known
        rows = pc.indices_nonzero(missing)
        own = _from_texts(texts.take(rows), layout)
        own_rows = int64_array(np.arange(len(texts), len(texts) + len(rows)))
        order = pc.replace_with_mask(int64_array(np.arange(len(texts))), missing, own_rows)
        return pa.concat_arrays([known, own]).take(order)
    return _from_texts(texts, layout)


def _from_texts(texts: pa.Array, layout: CheckpointLayout) -> pa.StructArray:
    wanted = layout.stats_type
    assert wanted is not None
    parsed = parse_stats(texts, layout.stats_leaves).to_struct_array()
    found = cast_struct_or_null(parsed, wanted)
    if not texts.null_count:
        return found
    return pa.StructArray.from_arrays(found.flatten(), fields=list(wanted), mask=texts.is_null())


# ---------------------------------------------------------------------------------------------------- other columns
def _parsed_partitions(maps: pa.MapArray, layout: CheckpointLayout) -> pa.StructArray:
    assert layout.partition_type is not None
    # The log does not record the zone of a timestamp without one: UTC, as everywhere (C421).
    columns = [partition_column(maps, f.name, f.type, "UTC").dictionary_decode() for f in layout.partition_schema]
    return pa.StructArray.from_arrays(columns, fields=list(layout.partition_type))


def _deletion_vectors(vectors: pa.StructArray) -> pa.StructArray:
    if vectors.null_count == len(vectors):
        return pa.nulls(len(vectors), DELETION_VECTOR_TYPE)
    return pa.StructArray.from_arrays(vectors.flatten(), fields=list(DELETION_VECTOR_TYPE), mask=vectors.is_null())


def _no_data_change(files: pa.RecordBatch) -> pa.BooleanArray:
    """Set `dataChange` to false: a checkpoint changes no data (C063)."""
    return bool_array(np.zeros(len(files), dtype=bool))
