"""Scan the file actions of a checkpoint: several threads read its files, row group by row group, in order.

Footer statistics exclude row groups; `part_scan` reads the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

import pyarrow as pa

from pyspark_delta.expressions.tree import Column
from pyspark_delta.log.parquet_part import ParquetPart
from pyspark_delta.log.part_scan import PartScan, ScanCounters
from pyspark_delta.log.request import FileRequest
from pyspark_delta.log.scanner import CheckpointShare, scanner_for
from pyspark_delta.parallel import map_ordered, map_ordered_eagerly, worker_count

_REMOTE_ROWS = 500_000  # of a task, which costs some 50 ms
_SHARE_ROWS = 65536  # bytes of adjacent row groups that one thread decodes


def scan_parts(
    parts: Iterable[ParquetPart],
    action: str,
    fields: Sequence[pa.Field],
    request: FileRequest | None = None,
    counters: ScanCounters | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the results of `scan_part` for some files. Raises CorruptLogError.

    Several threads decode row groups, in order; they start during this call. If statistics come from JSON, the threads
    parse the JSON instead. A registered scanner reads what is too much for this process, if predicates exclude files.
    """
    parts = list(parts)
    if request is not None and (request.partition_predicate or request.stats_predicate) is not None:
        actions = sum(part.metadata.num_rows for part in parts)
        if (scanner := scanner_for(actions)) is not None:
            return scanner.scan(_remote_shares(parts, action, fields, request), action, fields, request)
    if request is not None and request.stats_predicate is not None:
        return chain.from_iterable(scan_part(part, action, fields, request, counters) for part in parts)

    def decode(share: tuple[ParquetPart, list[int]]) -> tuple[list[pa.RecordBatch], ScanCounters]:
        counted = ScanCounters()
        return list(_scan_groups(*share, action, fields, request, counted)), counted

    shares = ((part, groups) for part in parts for groups in _shares(part, f"{action}.path"))
    return _counted(map_ordered_eagerly(decode, shares, in_flight=worker_count()), counters)


def scan_share(
    share: CheckpointShare, action: str, fields: Sequence[pa.Field], request: FileRequest
) -> Iterator[pa.RecordBatch]:
    """Yield the columns of `fields` of the file actions of a share that a request keeps. Raises CorruptLogError."""
    yield from _scan_groups(share.part, list(share.groups), action, fields, request, ScanCounters())


def _remote_shares(
    parts: Sequence[ParquetPart], action: str, fields: Sequence[pa.Field], request: FileRequest
) -> Iterator[CheckpointShare]:
    """Yield the row groups that may hold requested files, a few of one file at a time."""
    for part in parts:
        scan = PartScan(part, action, fields, request, ScanCounters())
        share: list[int] = []
        rows = 0
        for group in filter(scan.may_keep, part.row_groups_with(f"{action}.path")):
            share.append(group)
            rows += part.metadata.row_group(group).num_rows
            if rows >= _REMOTE_ROWS:
                yield CheckpointShare(part.store, part.file, tuple(share))
                share, rows = [], 0
        if share:
            yield CheckpointShare(part.store, part.file, tuple(share))


def _counted(
    decoded: Iterable[tuple[list[pa.RecordBatch], ScanCounters]], counters: ScanCounters | None
) -> Iterator[pa.RecordBatch]:
    for batches, counted in decoded:
        if counters is not None:
            counters.add(counted)
        yield from batches


def _shares(part: ParquetPart, leaf: str) -> Iterator[list[int]]:
    """Yield the row groups that may hold a value of the leaf, several adjacent ones at a time."""
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
    """Yield the columns of `fields` (including path) of the file actions of one file that a request keeps.

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
    request = request or FileRequest(columns=())
    scan = PartScan(part, action, fields, request, counters)
    groups = [g for g in groups if scan.may_keep(g)]
    if not groups:
        return
    with part.reading(_map_leaves(part, action, fields, request)) as file:
        for by_text, run in groupby(groups, key=scan.needs_texts):
            if by_text:
                yield from scan.read_by_text(file, run)
            else:
                for group in run:
                    yield from scan.read(file, group)


def scan_stats(
    parts: Iterable[ParquetPart],
    leaves: tuple[Column, ...],
    fields: Sequence[pa.Field] = (),
    required: tuple[Column, ...] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield statistics of all files, in the order of `scan_part`: `fields`, then one column for each leaf.

    The columns of leaves are named by their numbers. `stats_parsed` is read if it has the `required` leaves (all by
    default); other leaves that it lacks are null. Several threads decode row groups or parse texts. Raises
    CorruptLogError.
    """
    wanted = leaves if required is None else required

    def shares() -> Iterator[_StatsShare]:
        for part in parts:
            scan = PartScan(part, "add", fields, FileRequest(columns=()), ScanCounters())
            for groups in _shares(part, "add.path"):
                for parsed, run in groupby(groups, key=lambda group: scan.has_parsed(group, leaves, wanted)):
                    yield _StatsShare(scan, list(run), parsed)

    for parsed, run in groupby(shares(), key=lambda share: share.parsed):
        if parsed:
            for batches in map_ordered(lambda share: share.decode(leaves), run, in_flight=worker_count()):
                yield from batches
        else:
            texts = (text for share in run for text in share.texts())
            yield from map_ordered(lambda text: text[0].with_parsed_text(leaves, *text[1:]), texts)


@dataclass(frozen=True, slots=True)
class _StatsShare:
    """Some row groups of a file, whose statistics all come from `stats_parsed`, or all from text."""

    scan: PartScan
    groups: list[int]
    parsed: bool

    def decode(self, leaves: tuple[Column, ...]) -> list[pa.RecordBatch]:
        """Return the files, with their statistics from `stats_parsed`."""
        with self.scan.part.reading() as file:
            return [self.scan.parsed_stats(file, group, leaves) for group in self.groups]

    def texts(self) -> Iterator[tuple[PartScan, pa.RecordBatch, pa.Array]]:
        """Yield the files with their statistics as text, and the reader that parses them."""
        with self.scan.part.reading() as file:
            for group in self.groups:
                for files, texts in self.scan.stats_texts(file, group):
                    yield self.scan, files, texts


def _map_leaves(part: ParquetPart, action: str, fields: Sequence[pa.Field], request: FileRequest) -> list[str]:
    """Return the leaves of the partition values, which repeat: dictionary codes decode four times as fast."""
    decided_by = request.partition_columns() or request.mixed_columns()
    if not decided_by and all(field.name != "partition_values" for field in fields):
        return []
    struct = part.schema.field(action).type
    position = struct.get_field_index("partitionValues") if pa.types.is_struct(struct) else -1
    if position < 0 or not pa.types.is_map(struct.field(position).type):
        return []
    return part.leaves_below(f"{action}.partitionValues")
