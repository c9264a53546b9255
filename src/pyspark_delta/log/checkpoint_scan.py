"""Scanning the file actions of a checkpoint: row groups first, then predicates, then the columns of what is left.

Row groups are passed over by their footer statistics; in the others the columns of the predicates are read before
those of the answer, and the answer only where some file is kept. Statistics come from `stats_parsed` where it has
every leaf asked for, otherwise from the JSON text, streamed in small batches and only of files that the partition
predicate keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyspark_delta.actions.columns import PARTITION_VALUES, PATH, STATS
from pyspark_delta.expressions.tree import Column, Expression
from pyspark_delta.log.arrays import chosen_rows
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
from pyspark_delta.log.workers import in_order, worker_count
from pyspark_delta.schema.types import DOUBLE, FLOAT, TIMESTAMP, DataType
from pyspark_delta.stats.parse import parse_stats

_ANSWER_ROWS = 65536
_SHARE_ROWS = 65536  # of row groups that are decoded by one thread in a row


@dataclass(slots=True)
class ScanCounters:
    """How much of a checkpoint a scan has decoded: for tests of how the work grows."""

    row_groups: int = 0
    stats_texts: int = 0

    def add(self, other: ScanCounters) -> None:
        """Count what another has counted."""
        self.row_groups += other.row_groups
        self.stats_texts += other.stats_texts


def scan_parts(
    parts: Iterable[ParquetPart],
    action: str,
    fields: Sequence[pa.Field],
    request: FileRequest | None = None,
    counters: ScanCounters | None = None,
) -> Iterator[pa.RecordBatch]:
    """As `scan_part` for each of some files, in order; several threads decode row groups. Raises CorruptLogError.

    Where statistics come from JSON text, the threads parse that instead.
    """
    if request is not None and request.stats_predicate is not None:
        for part in parts:
            yield from scan_part(part, action, fields, request, counters)
        return

    def decode(share: tuple[ParquetPart, list[int]]) -> tuple[list[pa.RecordBatch], ScanCounters]:
        counted = ScanCounters()
        return list(_scan_groups(*share, action, fields, request, counted)), counted

    shares = ((part, groups) for part in parts for groups in _shares(part, f"{action}.path"))
    for batches, counted in in_order(decode, shares, in_flight=worker_count()):
        if counters is not None:
            counters.add(counted)
        yield from batches


def _shares(part: ParquetPart, leaf: str) -> Iterator[list[int]]:
    """The row groups that may hold a value of the leaf, some neighbours at a time."""
    share: list[int] = []
    rows = 0
    for group in part.row_groups_with(leaf):
        size = part.metadata.row_group(group).num_rows
        if share and rows + size > _SHARE_ROWS:
            yield share
            share, rows = [], 0
        share.append(group)
        rows += size
    if share:
        yield share


def scan_part(
    part: ParquetPart,
    action: str,
    fields: Sequence[pa.Field],
    request: FileRequest | None = None,
    counters: ScanCounters | None = None,
) -> Iterator[pa.RecordBatch]:
    """The file actions of one file, with the columns of `fields` (path among them), that a request does not rule out.

    Raises CorruptLogError.
    """
    groups = part.row_groups_with(f"{action}.path")
    yield from _scan_groups(part, groups, action, fields, request, counters or ScanCounters())


def _scan_groups(
    part: ParquetPart,
    groups: list[int],
    action: str,
    fields: Sequence[pa.Field],
    request: FileRequest | None,
    counters: ScanCounters,
) -> Iterator[pa.RecordBatch]:
    if not groups:
        return
    scan = _PartScan(part, action, fields, request or FileRequest(columns=()), counters)
    groups = [g for g in groups if scan.may_keep(g)]
    if not groups:
        return
    with part.reading(_map_leaves(part, action, fields)) as file:
        for group in groups:
            yield from scan.read(file, group)


def scan_stats(
    part: ParquetPart,
    leaves: tuple[Column, ...],
    fields: Sequence[pa.Field] = (),
    required: tuple[Column, ...] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Statistics of all files of one file, in the order of `scan_part`: `fields`, then one column for each leaf.

    The columns of leaves are named by their numbers. `stats_parsed` is read where it has the `required` leaves (all by
    default); the others are null where it lacks them. Raises CorruptLogError.
    """
    groups = part.row_groups_with("add.path")
    if not groups:
        return
    scan = _PartScan(part, "add", fields, FileRequest(columns=()), ScanCounters())
    with part.reading() as file:
        for group in groups:
            yield from scan.stats(file, group, leaves, leaves if required is None else required)


class _Texts(NamedTuple):
    """Statistics of some files as text, their partition columns, and which of the files are still in question."""

    texts: pa.Array
    partitions: Mapping[str, pa.Array]
    mask: pa.BooleanArray | None


class _PartScan:
    def __init__(
        self,
        part: ParquetPart,
        action: str,
        fields: Sequence[pa.Field],
        request: FileRequest,
        counters: ScanCounters,
    ) -> None:
        self._part, self._action, self._fields, self._request, self._counters = part, action, fields, request, counters
        self._partitions = request.partition_columns()
        self._mixed = request.mixed_columns()
        self._leaves = request.stats_leaves()

    # ------------------------------------------------------------------------------------------- by the footer
    def may_keep(self, group: int) -> bool:
        """Whether some file of the row group may be kept."""
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
        return None if name is None else self._range(name, group, leaf.type)

    def _range(self, leaf: str, group: int, data_type: DataType) -> Range | None:
        index, path = self._part.leaf(leaf), self._part.leaf(f"{self._action}.path")
        assert index is not None
        assert path is not None
        row_group = self._part.metadata.row_group(group)
        statistics, paths = row_group.column(index).statistics, row_group.column(path).statistics
        if statistics is None or paths is None or not (statistics.has_null_count and paths.has_null_count):
            return None
        nulls = statistics.null_count > paths.null_count  # more than the rows that hold another action
        values = statistics.null_count < row_group.num_rows
        if not statistics.has_min_max:
            return Range(None, None, nulls, values)
        high = None if data_type in (FLOAT, DOUBLE) else statistics.max  # NaN is the greatest, and never in there
        return Range(statistics.min, high, nulls, values)

    def _parsed_partition_leaf(self, name: str, data_type: DataType, group: int) -> str | None:
        if "." in name or data_type == TIMESTAMP:
            return None
        leaf = f"{self._action}.partitionValues_parsed.{name}"
        return leaf if self._part.leaf(leaf) is not None and not self._part.all_null(group, leaf) else None

    def _stats_leaf(self, leaf: Column) -> str | None:
        if any("." in part for part in leaf.path):
            return None
        for first in (leaf.path[0], "nullCounts") if leaf.path[0] == "nullCount" else (leaf.path[0],):
            name = ".".join((self._action, "stats_parsed", first, *leaf.path[1:]))
            if self._part.leaf(name) is not None:
                return name
        return None

    # --------------------------------------------------------------------------------------- by the predicates
    def read(self, file: pq.ParquetFile, group: int) -> Iterator[pa.RecordBatch]:
        """The kept files of one row group."""
        self._counters.row_groups += 1
        mask = self._partition_mask(file, group)
        if mask is not None and not pc.any(mask).as_py():
            return
        if self._request.stats_predicate is not None:
            mask = self._stats_mask(file, group, self._request.stats_predicate, mask)
            if mask is not None and not pc.any(mask).as_py():
                return
        yield from self._answer(file, group, mask)

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
        maps = extract(struct, [PARTITION_VALUES], self._part.path).column(0)
        return {n: partition_column(maps, n, t, self._request.time_zone) for n, t in types.items()}

    def _parsed_leaves(self, group: int, leaves: Sequence[Column], required: Sequence[Column]) -> list[str]:
        """The columns of `stats_parsed` to read; none where the JSON text has to be, or where there is neither."""
        present = [name for leaf in leaves if (name := self._stats_leaf(leaf)) is not None]
        needed = [self._stats_leaf(leaf) for leaf in required]
        usable = not all(name is None or self._part.all_null(group, name) for name in needed)
        return present if (usable and None not in needed) or not self._has_texts() else []

    def _has_texts(self) -> bool:
        return self._part.leaf(f"{self._action}.stats") is not None

    def _stats_mask(
        self, file: pq.ParquetFile, group: int, predicate: Expression, mask: pa.BooleanArray | None
    ) -> pa.BooleanArray | None:
        names = self._parsed_leaves(group, self._leaves, self._leaves)
        if names:
            struct = self._read(file, group, names)
            parsed = pc.struct_field(struct, ["stats_parsed"])
            partitions = self._partition_columns(file, group, self._mixed)
            own = kept_by_stats(predicate, stats_batch(parsed, self._leaves, len(struct)), partitions)
            return own if mask is None else pc.and_(mask, own)
        return self._text_mask(file, group, predicate, mask) if self._has_texts() else mask

    def stats(
        self, file: pq.ParquetFile, group: int, leaves: tuple[Column, ...], required: tuple[Column, ...]
    ) -> Iterator[pa.RecordBatch]:
        """The files of one row group: the fields, and one column for each leaf."""
        fields = self._fields if any(f.name == "path" for f in self._fields) else [*self._fields, PATH]
        columns = leaf_columns(self._part, self._action, fields, group)
        names = self._parsed_leaves(group, leaves, required)
        if names or not self._has_texts():
            struct = self._read(file, group, [*columns, *names])
            parsed = pc.struct_field(struct, ["stats_parsed"]) if names else None
            found = leaf_columns_of(stats_batch(parsed, leaves, len(struct)), leaves)
            yield self._with_stats(extract(struct, fields, self._part.path), found)
            return

        def texts() -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
            names = [*columns, f"{self._action}.stats"]
            for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=names):
                found = extract(batch.column(self._action), [*fields, STATS], self._part.path)
                yield found.select([f.name for f in fields]), found.column(len(fields))

        def parsed_batch(item: tuple[pa.RecordBatch, pa.Array]) -> pa.RecordBatch:
            return self._with_stats(item[0], leaf_columns_of(parse_stats(item[1], leaves), leaves))

        yield from in_order(parsed_batch, texts())

    def _with_stats(self, files: pa.RecordBatch, stats: pa.RecordBatch) -> pa.RecordBatch:
        """Both side by side, without the rows that hold another action."""
        paths = files.column("path")
        both = pa.RecordBatch.from_arrays(
            [*(files.column(f.name) for f in self._fields), *stats.columns],
            names=[*(f.name for f in self._fields), *stats.schema.names],
        )
        if paths.null_count:
            both = chosen_rows(both, paths.is_valid())
        both.validate(full=True)  # neither Parquet nor JSON readers look whether text is UTF-8
        return both

    def _text_mask(
        self, file: pq.ParquetFile, group: int, predicate: Expression, mask: pa.BooleanArray | None
    ) -> pa.BooleanArray:
        partitions = self._partition_columns(file, group, self._mixed)

        def texts() -> Iterator[_Texts]:
            start = 0
            for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=[f"{self._action}.stats"]):
                own = None if mask is None else mask.slice(start, len(batch))
                values = {name: column.slice(start, len(batch)) for name, column in partitions.items()}
                start += len(batch)
                yield _Texts(extract(batch.column(self._action), [STATS], self._part.path).column(0), values, own)

        return pa.concat_arrays(list(in_order(lambda item: self._kept_by_text(item, predicate), texts())))

    def _kept_by_text(self, files: _Texts, predicate: Expression) -> pa.BooleanArray:
        texts, partitions, mask = files
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
        names = leaf_columns(self._part, self._action, self._fields, group)
        start = 0
        for batch in file.iter_batches(_ANSWER_ROWS, row_groups=[group], columns=names, use_threads=False):
            files = extract(batch.column(self._action), self._fields, self._part.path)
            keep = None if mask is None else mask.slice(start, len(batch))
            start += len(batch)
            paths = files.column("path")
            if paths.null_count:
                valid = paths.is_valid()
                keep = valid if keep is None else pc.and_(keep, valid)
            if keep is not None:
                files = chosen_rows(files, keep)
            if len(files):
                files.validate(full=True)  # Parquet readers take any bytes for text
                yield files

    def _read(self, file: pq.ParquetFile, group: int, names: list[str]) -> pa.StructArray:
        column: Any = file.read_row_group(group, columns=names).column(self._action)
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _map_leaves(part: ParquetPart, action: str, fields: Sequence[pa.Field]) -> list[str]:
    """The leaves of the partition values, which repeat: decoded as codes of few texts in a quarter of the time."""
    if all(field.name != "partition_values" for field in fields):
        return []
    struct = part.schema.field(action).type
    position = struct.get_field_index("partitionValues") if pa.types.is_struct(struct) else -1
    if position < 0 or not pa.types.is_map(struct.field(position).type):
        return []
    return part.leaves_below(f"{action}.partitionValues")
