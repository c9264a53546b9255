"""Evaluate the predicates of a file request over columns of files: which rows they keep, and the source of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.text import columns_of, conjuncts
from pyspark_delta.expressions.tree import Column, Expression
from pyspark_delta.log.arrays import bool_array, chosen_rows, map_value
from pyspark_delta.log.request import PARTITION_VALUES, FileRequest
from pyspark_delta.parallel import map_ordered
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.partition_values import parse_partition_column
from pyspark_delta.schema.types import TIMESTAMP, DataType
from pyspark_delta.stats.parse import assemble, leaf_tree, parse_stats

_BATCH_ROWS = 8192  # so that every thread gets work


def kept(predicate: Expression, columns: pa.RecordBatch) -> pa.BooleanArray:
    """Return the rows for which a predicate is not definitely false."""
    return pc.fill_null(evaluate(predicate, columns), True)


def kept_by_stats(
    predicate: Expression, statistics: pa.RecordBatch, partitions: Mapping[str, pa.Array]
) -> pa.BooleanArray:
    """Return the rows that a predicate over statistics, and over the partition columns in it, keeps."""
    if any(_has_nan(column) for column in statistics.columns):
        known = [_without_nan(column) for column in statistics.columns]
        statistics = pa.RecordBatch.from_arrays(known, names=statistics.schema.names)
    if partitions:
        values = pa.StructArray.from_arrays([_decoded(c) for c in partitions.values()], names=list(partitions))
        statistics = statistics.append_column(PARTITION_VALUES, values)
    return kept(predicate, statistics)


def _has_nan(bounds: pa.Array) -> bool:
    if pa.types.is_struct(bounds.type):
        return any(_has_nan(bounds.field(i)) for i in range(bounds.type.num_fields))
    return pa.types.is_floating(bounds.type) and pc.any(pc.is_nan(bounds)).as_py() is True


def _without_nan(bounds: pa.Array) -> pa.Array:
    """Replace NaN bounds by null: some writers compare values with NaN and lose smaller and greater values."""
    if pa.types.is_struct(bounds.type):
        children = [_without_nan(bounds.field(i)) for i in range(bounds.type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(bounds.type), mask=bounds.is_null())
    if pa.types.is_floating(bounds.type):
        return pc.if_else(pc.is_nan(bounds), pa.scalar(None, bounds.type), bounds)
    return bounds


def kept_by_partition(predicate: Expression, columns: Mapping[str, pa.Array]) -> pa.BooleanArray:
    """Return the rows that a predicate over dictionary-encoded partition columns keeps.

    Conditions on one column are evaluated once per distinct value.
    """
    mask: pa.BooleanArray | None = None
    for condition in conjuncts(predicate):
        names = dict.fromkeys(c.path[0] for c in columns_of(condition))
        arrays = [columns[name] if len(names) == 1 else _decoded(columns[name]) for name in names]
        if len(names) == 1 and pa.types.is_dictionary(arrays[0].type):
            own = _kept_of_dictionary(condition, next(iter(names)), arrays[0])
        else:
            own = kept(condition, pa.RecordBatch.from_arrays(arrays, names=list(names)))
        mask = own if mask is None else pc.and_(mask, own)
    assert mask is not None
    return mask


def _kept_of_dictionary(condition: Expression, name: str, column: pa.DictionaryArray) -> pa.BooleanArray:
    distinct = pa.concat_arrays([column.dictionary, pa.nulls(1, column.dictionary.type)])
    outcomes = np.asarray(kept(condition, pa.RecordBatch.from_arrays([distinct], names=[name])))
    codes = column.indices
    if codes.null_count:
        codes = pc.fill_null(codes, len(distinct) - 1)
    return bool_array(outcomes[np.asarray(codes)])


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def keep_files(batch: pa.RecordBatch, request: FileRequest) -> pa.RecordBatch:
    """Return the files of a batch, with `partition_values` and `stats` columns as needed, that a request keeps."""
    if request.partition_predicate is not None and len(batch):
        columns = _partition_columns(batch, request.partition_columns(), request.time_zone)
        batch = chosen_rows(batch, kept_by_partition(request.partition_predicate, columns))
    if request.stats_predicate is not None and len(batch):
        parsed = parse_stats(batch.column("stats"), request.stats_leaves())
        columns = _partition_columns(batch, request.mixed_columns(), request.time_zone)
        batch = chosen_rows(batch, kept_by_stats(request.stats_predicate, parsed, columns))
    return batch


def keep_listed(files: pa.Table, request: FileRequest) -> pa.Table:
    """Like `keep_files` for a table; several threads parse statistics."""
    batches = files.to_batches(max_chunksize=_BATCH_ROWS)
    return pa.Table.from_batches(map_ordered(lambda batch: keep_files(batch, request), batches), files.schema)


def _partition_columns(batch: pa.RecordBatch, types: Mapping[str, DataType], time_zone: str) -> dict[str, pa.Array]:
    if not types:
        return {}
    maps = batch.column("partition_values")
    return {name: partition_column(maps, name, data_type, time_zone) for name, data_type in types.items()}


def partition_column(maps: pa.MapArray, name: str, data_type: DataType, time_zone: str) -> pa.DictionaryArray:
    """Return one partition column from the maps of the log: typed, dictionary-encoded. Raises CorruptLogError."""
    found = map_value(maps, name)
    encoded = found if pa.types.is_dictionary(found.type) else found.dictionary_encode()
    values = parse_partition_column(encoded.dictionary, data_type, time_zone, column=name)
    return pa.DictionaryArray.from_arrays(encoded.indices, values)


def parsed_partition_column(column: pa.Array, data_type: DataType) -> pa.DictionaryArray | None:
    """Return the same from `partitionValues_parsed`; None if its type cannot be used.

    There, the writer's time zone determines zone-less timestamps; here, the reader's does (C421).
    """
    if data_type == TIMESTAMP:
        return None
    try:
        encoded = column.dictionary_encode()
        return pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary.cast(to_arrow(data_type)))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def stats_batch(struct: pa.StructArray | None, leaves: tuple[Column, ...], length: int) -> pa.RecordBatch:
    """Return the leaves from `stats_parsed`; those that it lacks, or that have another type, are null."""
    found = {}
    for leaf in leaves:
        column = None if struct is None else _leaf(struct, leaf.path)
        typed = None if column is None else _cast(column, leaf.type)
        if typed is not None:
            found[leaf.path] = typed
    return assemble(leaf_tree(leaves), found, length)


def leaf_columns_of(parsed: pa.RecordBatch, leaves: Sequence[Column]) -> pa.RecordBatch:
    """Return nested statistics as one flat column for each leaf, in the order of `leaves`."""
    struct = parsed.to_struct_array()
    columns = []
    for leaf in leaves:
        column = _leaf(struct, leaf.path)
        assert column is not None
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(leaves))])


def _leaf(struct: pa.StructArray, path: tuple[str, ...]) -> pa.Array | None:
    current: Any = struct
    for position, part in enumerate(path):
        if not pa.types.is_struct(current.type):
            return None
        index = current.type.get_field_index(part)
        if index < 0 and position == 0 and part == "nullCount":
            index = current.type.get_field_index("nullCounts")  # as the specification's sample spells it (C057)
        if index < 0:
            return None
        current = current.field(index) if current.null_count == 0 else pc.struct_field(current, [index])
    return current


def _cast(column: pa.Array, data_type: DataType) -> pa.Array | None:
    target = to_arrow(data_type)
    if column.type == target:
        return column
    if pa.types.is_string(column.type) != pa.types.is_string(target):
        return None
    try:
        if pa.types.is_timestamp(target) and pa.types.is_timestamp(column.type):
            return column.cast(pa.timestamp("us", column.type.tz)).cast(target)
        return column.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
