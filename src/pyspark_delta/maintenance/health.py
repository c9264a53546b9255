"""The health of a table: figures that say whether reading it costs more than it must, and what to do about it.

Everything comes from the log; no data file is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.display import counted, html_rows
from pyspark_delta.log.listing import list_log
from pyspark_delta.protocol.properties import CHECKPOINT_INTERVAL, DELETED_FILE_RETENTION, LOG_RETENTION
from pyspark_delta.scan.statistics import StatisticsLeaf, statistics_leaves
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.record_count import NUM_RECORDS

SMALL = 32 << 20
"""Bytes below which a file counts as small."""

_MERGED = 128 << 20
_FEW = 16  # files; the layout of so few does not matter
_MUCH_READ = 0.5  # of the files, for one value
_MUCH_DELETED = 0.1  # of the rows
_MOST_COLUMNS = 8


@dataclass(frozen=True, slots=True)
class HealthTopic:
    """One topic: its figures by name, and what to do; `advice` is empty if nothing needs to be done."""

    name: str
    figures: Mapping[str, object] = field(hash=False)
    advice: str = ""

    @property
    def is_good(self) -> bool:
        """True if nothing needs to be done."""
        return not self.advice


@dataclass(frozen=True, repr=False)
class HealthReport:
    """The health of a version: files, skipping, deleted rows, log, checkpoints and retention, each a topic."""

    location: str
    version: int
    topics: tuple[HealthTopic, ...]

    @property
    def is_good(self) -> bool:
        """True if nothing needs to be done."""
        return all(topic.is_good for topic in self.topics)

    def facts(self) -> dict[str, object]:
        """Return all figures, by `topic.figure`, and advice by `topic.advice`."""
        found: dict[str, object] = {"location": self.location, "version": self.version}
        for topic in self.topics:
            found |= {f"{topic.name}.{name}": value for name, value in topic.figures.items()}
            if topic.advice:
                found[f"{topic.name}.advice"] = topic.advice
        return found

    def __repr__(self) -> str:
        bad = [topic.name for topic in self.topics if not topic.is_good]
        return f"HealthReport({self.location!r}, {'good' if not bad else 'see ' + ', '.join(bad)})"

    def __str__(self) -> str:
        lines = [f"Health of '{self.location}', version {self.version}:"]
        for topic in self.topics:
            figures = ", ".join(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in topic.figures.items())
            lines.append(f"  {topic.name}: {figures or 'nothing to measure'}")
            if topic.advice:
                lines.append(f"    {topic.advice}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (topic.name, ", ".join(f"{name} {_shown(value)}" for name, value in topic.figures.items()), topic.advice)
            for topic in self.topics
        ]
        return html_rows(repr(self), ("topic", "figures", "what to do"), rows)


def table_health(snapshot: Snapshot) -> HealthReport:
    """Return the health of a version. Raises CorruptLogError."""
    topics = (_files(snapshot), _skipping(snapshot), _deleted(snapshot), *_log(snapshot), _retention(snapshot))
    return HealthReport(snapshot.location, snapshot.version, topics)


def _files(snapshot: Snapshot) -> HealthTopic:
    sizes = pc.fill_null(snapshot.files(("size",))["size"], 0)
    small = sizes.filter(pc.less(sizes, SMALL))
    total = pc.sum(sizes).as_py() or 0
    merged = max(1, -(-(pc.sum(small).as_py() or 0) // _MERGED))
    figures = {
        "files": len(sizes),
        "bytes": total,
        "mean_bytes": total // len(sizes) if len(sizes) else 0,
        "small_files": len(small),
    }
    advice = ""
    if len(small) >= _FEW and merged * 2 <= len(small):
        advice = f"Compact the table: {counted(merged, 'file')} could hold the rows of {len(small):,} small ones."
    return HealthTopic("files", figures, advice)


def _skipping(snapshot: Snapshot) -> HealthTopic:
    """Return for each column which part of the files a search for one value reads, by minimum and maximum."""
    leaves = {leaf.physical.path: leaf for leaf in statistics_leaves(snapshot.configuration)}
    columns = [leaf for path, leaf in leaves.items() if path[0] == "minValues"][:_MOST_COLUMNS]
    pairs = [(leaf, leaves["maxValues", *leaf.physical.path[1:]]) for leaf in columns]
    wanted = tuple(leaf.physical for pair in pairs for leaf in pair)
    batches = list(snapshot.statistics(wanted, ("path",))) if wanted else []
    number = sum(map(len, batches))
    shares: dict[str, float] = {}
    for at, (leaf, _) in enumerate(pairs):
        share = _share_read([batch.column(1 + 2 * at) for batch in batches], [b.column(2 + 2 * at) for b in batches])
        if share is not None:
            shares[_name(leaf)] = round(share, 3)
    advice = ""
    if number >= _FEW:
        lacking = [_name(leaf) for leaf, _ in pairs if _name(leaf) not in shares]
        if shares and min(shares.values()) > _MUCH_READ:
            advice = "No column lets a search skip half of the files. Cluster the table by the columns of searches."
        elif lacking and not shares:
            advice = "The files have no statistics. Compute them, so that searches skip files."
    return HealthTopic("skipping", {f"files_read_by_{name}": share for name, share in shares.items()}, advice)


def _name(leaf: StatisticsLeaf) -> str:
    return ".".join(leaf.logical.path[1:])


def _share_read(lows: list[pa.Array], highs: list[pa.Array]) -> float | None:
    """Return the mean part of files whose bounds include the minimum of a file; None without bounds."""
    if not lows:
        return None
    low, high = pa.chunked_array(lows), pa.chunked_array(highs)
    known = pc.and_(low.is_valid(), high.is_valid()).combine_chunks()
    number = len(low)
    low, high = low.filter(known), high.filter(known)
    if not len(low) or pa.types.is_boolean(low.type):
        return None
    try:
        both = pa.concat_arrays([*low.chunks, *high.chunks])
        ranks = np.asarray(pc.rank(both, tiebreaker="dense")).astype(np.int64)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return None
    starts, ends = ranks[: len(low)], ranks[len(low) :]
    begun = np.searchsorted(np.sort(starts), starts, side="right")
    ended = np.searchsorted(np.sort(ends), starts, side="left")
    unknown = number - len(low)
    return float(((begun - ended) + unknown).mean() / number)


def _deleted(snapshot: Snapshot) -> HealthTopic:
    vectors = deleted = records = 0
    for batch in snapshot.statistics((NUM_RECORDS,), ("deletion_vector",)):
        column = batch.column(0)
        vectors += len(column) - column.null_count
        deleted += pc.sum(pc.struct_field(column, "cardinality")).as_py() or 0
        records += pc.sum(batch.column(1)).as_py() or 0
    share = deleted / records if records else 0.0
    advice = "Purge the deleted rows: readers read and discard them." if share >= _MUCH_DELETED else ""
    figures = {"files_with_vectors": vectors, "deleted_rows": deleted, "deleted_share": round(share, 3)}
    return HealthTopic("deleted rows", figures, advice)


def _log(snapshot: Snapshot) -> tuple[HealthTopic, HealthTopic]:
    listing = list_log(snapshot.store, snapshot.location)
    checkpoints = listing.checkpoints()
    last = checkpoints[0].version if checkpoints else None
    interval = CHECKPOINT_INTERVAL.of(snapshot.properties)
    since = snapshot.version - last if last is not None else snapshot.version + 1
    size = sum(file.size for file in listing.commits.values())
    log = HealthTopic("log", {"commits": len(listing.commits), "commit_bytes": size})
    advice = "Write a checkpoint: every reader replays the commits since the last one." if since > 5 * interval else ""
    figures: dict[str, object] = {"checkpoints": len(checkpoints), "commits_since": since, "interval": interval}
    if last is not None:
        figures["bytes"] = sum(file.size for file in checkpoints[0].files)
    return log, HealthTopic("checkpoints", figures, advice)


def _retention(snapshot: Snapshot) -> HealthTopic:
    properties = snapshot.properties
    kept, removed = LOG_RETENTION.of(properties), DELETED_FILE_RETENTION.of(properties)
    tombstones = snapshot.tombstones(("path", "size"))
    figures: dict[str, object] = {
        "log_days": kept.total_seconds() / 86_400,
        "removed_file_days": removed.total_seconds() / 86_400,
        "removed_files": tombstones.num_rows,
        "removed_bytes": pc.sum(tombstones["size"]).as_py() or 0,
    }
    advice = ""
    if kept < removed:
        advice = "Set delta.logRetentionDuration to at least delta.deletedFileRetentionDuration."
    return HealthTopic("retention", figures, advice)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
