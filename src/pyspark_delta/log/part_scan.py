"""One Parquet file of a checkpoint, row group by row group: which ones may hold requested files, and those files.

The columns of the predicates are read first, and the columns of the result only if some file is kept. Statistics come
from `stats_parsed` if it has every requested leaf, otherwise from the JSON text, streamed in small batches and only for
files that the partition predicate keeps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyspark_delta.actions.columns import PARTITION_VALUES, PATH, STATS
from pyspark_delta.expressions.tree import Column, Expression
from pyspark_delta.log.arrays import chosen_rows, is_coded_map
from pyspark_delta.log.checkpoint_columns import extract, leaf_columns
from pyspark_delta.log.parquet_part import BATCH_ROWS, ParquetPart
from pyspark_delta.log.request import PARTITION_VALUES as MIXED
from pyspark_delta.log.request import FileRequest
from pyspark_delta.log.row_groups import Range, may_keep
from pyspark_delta.log.skipping import (
    kept_by_partition,
    kept_by_stats,
    leaf_columns_of,
    parsed_partition_column,
    partition_column,
    stats_batch,
)
from pyspark_delta.log.typed_stats import STATS_PARSED, may_lack_json, typed_stats, with_json
from pyspark_delta.parallel import map_ordered, worker_count
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.types import DOUBLE, FLOAT, TIMESTAMP, DataType
from pyspark_delta.stats.parse import parse_stats

_ANSWER_ROWS = 65536
_FEW_ROWS = 2048  # parsing these costs little more than reading their bytes
_SHARES = 2  # of a file, for each thread


@dataclass(slots=True)
class ScanCounters:
    """Counts how much of a checkpoint a scan has decoded; tests use it instead of times."""

    row_groups: int = 0
    stats_texts: int = 0

    def add(self, other: ScanCounters) -> None:
        """Add the counts of another scan."""
        self.row_groups += other.row_groups
        self.stats_texts += other.stats_texts


class _Texts(NamedTuple):
    """Statistics of some files as JSON text, their partition columns, and a mask of the undecided files."""

    group: int
    texts: pa.Array
    partitions: Mapping[str, pa.Array]
    mask: pa.BooleanArray | None


class PartScan:
    """Reads the file actions of one file, by row groups; `fields` are the columns of the result."""

    def __init__(
        self,
        part: ParquetPart,
        action: str,
        fields: Sequence[pa.Field],
        request: FileRequest,
        counters: ScanCounters,
    ) -> None:
        self.part, self._action, self._fields, self._request, self._counters = part, action, fields, request, counters
        self._partitions = request.partition_columns()
        self._mixed = request.mixed_columns()
        self._leaves = request.stats_leaves()
        self._makes_texts = request.makes_texts and STATS in fields

    # ------------------------------------------------------------------------------------------- by the footer
    def may_keep(self, group: int) -> bool:
        """True if some file of the row group may be kept."""
        partition, stats = self._request.partition_predicate, self._request.stats_predicate
        if partition is not None:
            ranges: dict[tuple[str, ...], Range] = {
                (name,): known for name, known in self._partition_ranges(self._partitions, group)
            }
            if ranges and not may_keep(partition, ranges):
                return False
        if stats is not None:
            found = {leaf.path: self._stats_range(leaf, group) for leaf in self._leaves}
            known_ranges = {path: known for path, known in found.items() if known is not None}
            known_ranges |= {(MIXED, name): known for name, known in self._partition_ranges(self._mixed, group)}
            return may_keep(stats, known_ranges)
        return True

    def _partition_ranges(self, columns: Mapping[str, DataType], group: int) -> Iterator[tuple[str, Range]]:
        for name, data_type in columns.items():
            leaf = self._parsed_partition_leaf(name, data_type, group)
            known = None if leaf is None else self._range(leaf, group, data_type)
            if known is not None and not known.has_nulls:
                yield name, known

    def _stats_range(self, leaf: Column, group: int) -> Range | None:
        name = self._stats_leaf(leaf)
        known = None if name is None else self._range(name, group, leaf.type)
        if known is not None and leaf.type in (FLOAT, DOUBLE):
            return replace(known, low=None)  # footers leave out NaN, which is no bound of a file
        return known

    def _range(self, leaf: str, group: int, data_type: DataType) -> Range | None:
        index, path = self.part.leaf(leaf), self.part.leaf(f"{self._action}.path")
        assert index is not None
        assert path is not None
        row_group = self.part.metadata.row_group(group)
        statistics, paths = self.part.statistics(group, index), self.part.statistics(group, path)
        if statistics is None or paths is None or not (statistics.has_null_count and paths.has_null_count):
            return None
        nulls = statistics.null_count > paths.null_count  # more than the rows with another action
        values = statistics.null_count < row_group.num_rows
        if not statistics.has_min_max:
            return Range(None, None, nulls, values)
        try:
            low, high = statistics.min, statistics.max
        except (OverflowError, ValueError):  # a date or time outside of Python's range
            return Range(None, None, nulls, values)
        if data_type in (FLOAT, DOUBLE):
            # NaN is not within the bounds. If a writer compared values with NaN, a bound may be NaN and means nothing.
            return Range(None if math.isnan(low) or math.isnan(high) else low, None, nulls, values)
        return Range(low, high, nulls, values)

    def _parsed_partition_leaf(self, name: str, data_type: DataType, group: int) -> str | None:
        if "." in name or data_type == TIMESTAMP:
            return None
        leaf = f"{self._action}.partitionValues_parsed.{name}"
        if self.part.leaf(leaf) is None or self.part.has_other_calendar(leaf, to_arrow(data_type)):
            return None
        return leaf if not self.part.all_null(group, leaf) else None

    def _stats_leaf(self, leaf: Column) -> str | None:
        if any("." in part for part in leaf.path):
            return None
        for first in (leaf.path[0], "nullCounts") if leaf.path[0] == "nullCount" else (leaf.path[0],):
            name = ".".join((self._action, "stats_parsed", first, *leaf.path[1:]))
            if self.part.leaf(name) is not None:
                # Text is in the modern calendar.
                return name if not self.part.has_other_calendar(name, to_arrow(leaf.type)) else None
        return None

    # --------------------------------------------------------------------------------------- by the predicates
    def read(self, file: pq.ParquetFile, group: int) -> Iterator[pa.RecordBatch]:
        """Yield the kept files of one row group."""
        self._counters.row_groups += 1
        mask = self._partition_mask(file, group)
        if mask is not None and not pc.any(mask).as_py():
            return
        if self._request.stats_predicate is not None:
            mask = self._stats_mask(file, group, self._request.stats_predicate, mask)
            if mask is not None and not pc.any(mask).as_py():
                return
        yield from self._answer(file, group, mask)

    def read_by_text(self, file: pq.ParquetFile, groups: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """Like `read` for row groups that `needs_texts`: threads parse some while others are decoded."""
        predicate = self._request.stats_predicate
        assert predicate is not None

        def parse(files: _Texts) -> tuple[int, pa.BooleanArray]:
            return files.group, self._kept_by_text(files, predicate)

        texts = (files for group in groups for files in self._texts(file, group))
        for group, masks in groupby(map_ordered(parse, texts), key=itemgetter(0)):
            mask = pa.concat_arrays([mask for _, mask in masks])
            if pc.any(mask).as_py():
                yield from self._answer(file, group, mask)

    def _texts(self, file: pq.ParquetFile, group: int) -> Iterator[_Texts]:
        self._counters.row_groups += 1
        mask = self._partition_mask(file, group)
        if mask is not None and not pc.any(mask).as_py():
            return
        partitions = self._partition_columns(file, group, self._mixed)
        start = 0
        for batch in file.iter_batches(self._rows_of_texts(), row_groups=[group], columns=[f"{self._action}.stats"]):
            own = None if mask is None else mask.slice(start, len(batch))
            values = {name: column.slice(start, len(batch)) for name, column in partitions.items()}
            start += len(batch)
            texts = extract(batch.column(self._action), [STATS], self.part.path).column(0)
            yield _Texts(group, texts, values, own)

    def _partition_mask(self, file: pq.ParquetFile, group: int) -> pa.BooleanArray | None:
        predicate = self._request.partition_predicate
        if predicate is None:
            return None
        return kept_by_partition(predicate, self._partition_columns(file, group, self._partitions))

    def _partition_columns(
        self, file: pq.ParquetFile, group: int, types: Mapping[str, DataType]
    ) -> Mapping[str, pa.Array]:
        if not types:
            return {}
        return self._parsed_partitions(file, group, types) or self._partitions_of_maps(file, group, types)

    def _parsed_partitions(
        self, file: pq.ParquetFile, group: int, types: Mapping[str, DataType]
    ) -> dict[str, pa.Array] | None:
        leaves = {n: self._parsed_partition_leaf(n, t, group) for n, t in types.items()}
        names = [leaf for leaf in leaves.values() if leaf is not None]
        if not names or len(names) < len(leaves):
            return None
        struct = self._read(file, group, names)
        parsed = pc.struct_field(struct, ["partitionValues_parsed"])
        if parsed.null_count > struct.null_count:
            return None  # files without the parsed form
        columns = {}
        for name, data_type in types.items():
            column = parsed_partition_column(pc.struct_field(parsed, [name]), data_type)
            if column is None:
                return None
            columns[name] = column
        return columns

    def _partitions_of_maps(
        self, file: pq.ParquetFile, group: int, types: Mapping[str, DataType]
    ) -> dict[str, pa.Array]:
        struct = self._read(file, group, [f"{self._action}.partitionValues"])
        maps = pc.struct_field(struct, [0])
        if not is_coded_map(maps.type):
            maps = extract(struct, [PARTITION_VALUES], self.part.path).column(0)
        return {n: partition_column(maps, n, t, self._request.time_zone) for n, t in types.items()}

    def _parsed_leaves(self, group: int, leaves: Sequence[Column], required: Sequence[Column]) -> list[str]:
        """Return the columns of `stats_parsed` to read; none if the JSON text is needed, or if there is neither."""
        present = [name for leaf in leaves if (name := self._stats_leaf(leaf)) is not None]
        needed = [self._stats_leaf(leaf) for leaf in required]
        usable = not all(name is None or self.part.all_null(group, name) for name in needed)
        return present if (usable and None not in needed) or not self._has_texts() else []

    def _has_texts(self) -> bool:
        return self.part.leaf(f"{self._action}.stats") is not None

    def needs_texts(self, group: int) -> bool:
        """True if the predicate over statistics must read the statistics of a row group as text."""
        if self._request.stats_predicate is None or not self._has_texts():
            return False
        return not self._parsed_leaves(group, self._leaves, self._leaves)

    def _stats_mask(
        self, file: pq.ParquetFile, group: int, predicate: Expression, mask: pa.BooleanArray | None
    ) -> pa.BooleanArray | None:
        names = self._parsed_leaves(group, self._leaves, self._leaves)
        if not names:
            return mask
        struct = self._read(file, group, names)
        parsed = pc.struct_field(struct, ["stats_parsed"])
        partitions = self._partition_columns(file, group, self._mixed)
        own = kept_by_stats(predicate, stats_batch(parsed, self._leaves, len(struct)), partitions)
        return own if mask is None else pc.and_(mask, own)

    # ------------------------------------------------------------------------------------------- all statistics
    def has_parsed(self, group: int, leaves: tuple[Column, ...], required: tuple[Column, ...]) -> bool:
        """True if the statistics of a row group come from `stats_parsed`, or it has none at all."""
        return bool(self._parsed_leaves(group, leaves, required)) or not self._has_texts()

    def parsed_stats(self, file: pq.ParquetFile, group: int, leaves: tuple[Column, ...]) -> pa.RecordBatch:
        """Return the files of a row group that `has_parsed`: the fields, and one column for each leaf."""
        fields = self._fields_with_path()
        names = [name for leaf in leaves if (name := self._stats_leaf(leaf)) is not None]
        struct = self._read(file, group, [*leaf_columns(self.part, self._action, fields, group), *names])
        parsed = pc.struct_field(struct, ["stats_parsed"]) if names else None
        found = leaf_columns_of(stats_batch(parsed, leaves, len(struct)), leaves)
        return self._with_stats(extract(struct, fields, self.part.path), found)

    def stats_texts(self, file: pq.ParquetFile, group: int) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Yield the files of a row group, and their statistics as text."""
        fields = self._fields_with_path()
        names = [*leaf_columns(self.part, self._action, fields, group), f"{self._action}.stats"]
        for batch in file.iter_batches(self._rows_of_texts(), row_groups=[group], columns=names):
            found = extract(batch.column(self._action), [*fields, STATS], self.part.path)
            yield found.select(list(range(len(fields)))), found.column(len(fields))  # the fields may have `stats` too

    def with_parsed_text(self, leaves: tuple[Column, ...], files: pa.RecordBatch, texts: pa.Array) -> pa.RecordBatch:
        """Return the result of `stats_texts` in the form of `parsed_stats`."""
        return self._with_stats(files, leaf_columns_of(parse_stats(texts, leaves), leaves))

    def _rows_of_texts(self) -> int:
        """Return how many texts to parse at once: fewer for a small file, so that every thread gets work early."""
        share: int = self.part.metadata.num_rows // (_SHARES * worker_count())
        return min(BATCH_ROWS, max(_FEW_ROWS, share))

    def _fields_with_path(self) -> list[pa.Field]:
        return [*self._fields] if any(f.name == "path" for f in self._fields) else [*self._fields, PATH]

    def _with_stats(self, files: pa.RecordBatch, stats: pa.RecordBatch) -> pa.RecordBatch:
        """Join both side by side, without the rows of other actions."""
        paths = files.column("path")
        both = pa.RecordBatch.from_arrays(
            [*(files.column(f.name) for f in self._fields), *stats.columns],
            names=[*(f.name for f in self._fields), *stats.schema.names],
        )
        if paths.null_count:
            both = chosen_rows(both, paths.is_valid())
        both.validate(full=True)  # neither Parquet nor JSON readers validate UTF-8
        return both

    def _kept_by_text(self, files: _Texts, predicate: Expression) -> pa.BooleanArray:
        _, texts, partitions, mask = files
        if mask is None:
            self._counters.stats_texts += len(texts)
            return kept_by_stats(predicate, parse_stats(texts, self._leaves), partitions)
        survivors = pc.indices_nonzero(mask)
        if not len(survivors):
            return mask
        self._counters.stats_texts += len(survivors)
        partitions = {name: column.take(survivors) for name, column in partitions.items()}
        own = kept_by_stats(predicate, parse_stats(texts.take(survivors), self._leaves), partitions)
        return pc.replace_with_mask(mask, mask, own)

    # -------------------------------------------------------------------------------------------------- columns
    def _answer(self, file: pq.ParquetFile, group: int, mask: pa.BooleanArray | None) -> Iterator[pa.RecordBatch]:
        names = leaf_columns(self.part, self._action, self._fields, group)
        makes_texts = self._action == "add" and self._makes_texts and may_lack_json(self.part, group)
        if makes_texts:
            names.append(f"add.{STATS_PARSED}")
        start = 0
        for batch in file.iter_batches(_ANSWER_ROWS, row_groups=[group], columns=names, use_threads=False):
            struct = batch.column(self._action)
            keep = None if mask is None else mask.slice(start, len(batch))
            start += len(batch)
            paths = extract(struct, [PATH], self.part.path).column(0)
            if paths.null_count:
                valid = paths.is_valid()
                keep = valid if keep is None else pc.and_(keep, valid)
            if keep is not None:
                struct = struct.take(pc.indices_nonzero(keep))  # first, so that later steps process only the kept rows
            files = extract(struct, self._fields, self.part.path)
            if makes_texts:
                texts = with_json(files.column(STATS.name), typed_stats(self.part, struct))
                files = files.set_column(files.schema.get_field_index(STATS.name), STATS, texts)
            if len(files):
                files.validate(full=True)  # Parquet readers do not validate text
                yield files

    def _read(self, file: pq.ParquetFile, group: int, names: list[str]) -> pa.StructArray:
        column: Any = file.read_row_group(group, columns=names, use_threads=False).column(self._action)
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
