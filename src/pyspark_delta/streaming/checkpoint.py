"""The checkpoint of a Spark query: its batches, and the offsets of its sources that read Delta tables.

Spark plans a batch with a file of offsets in `offsets`, and completes it with a file in `commits`. The files of both
have the number of the batch as their names. Offsets of other kinds of sources are ignored.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson

from pyspark_delta.errors import DeltaError, FileNotFoundInStoreError, InvalidOffsetError, InvalidOperationError
from pyspark_delta.storage import ObjectStore, store_for
from pyspark_delta.storage.paths import join, parent
from pyspark_delta.streaming.numbered_files import numbers_in
from pyspark_delta.streaming.offset import Offset

_OFFSETS, _COMMITS, _METADATA = "offsets", "commits", "metadata"
_BY_POSITION, _BY_NAME = "v1", "v2"  # formats of the offset log
_NOTHING = "-"


@dataclass(frozen=True, slots=True)
class CheckpointBatch:
    """A batch of a query. `offsets` are the ends of its Delta sources, by the number of the source."""

    number: int
    is_complete: bool
    offsets: Mapping[str, Offset]


@dataclass(frozen=True, slots=True)
class QueryCheckpoint:
    """The checkpoint of a query: `batches` are those that Spark has kept, oldest first."""

    location: str
    query_id: str
    batches: tuple[CheckpointBatch, ...]

    @property
    def latest(self) -> CheckpointBatch:
        """The newest batch."""
        return self.batches[-1]


def read_checkpoint(location: str, storage_options: Mapping[str, str] | None = None) -> QueryCheckpoint:
    """Read the checkpoint of a query.

    Raises InvalidOperationError if the location has no checkpoint or no batch, and InvalidOffsetError for a file of
    offsets that is malformed.
    """
    query_id = query_id_of(location, storage_options)
    store = store_for(location, dict(storage_options or {}))
    complete = set(numbers_in(store, join(location, _COMMITS)))
    batches = tuple(
        CheckpointBatch(number, number in complete, _delta_offsets(_read(store, location, number)))
        for number in numbers_in(store, join(location, _OFFSETS))
    )
    if not batches:
        raise InvalidOperationError(
            f"The query of the checkpoint '{location}' has not planned a batch yet.", location=location
        )
    return QueryCheckpoint(location, query_id, batches)


def batch_plan(offsets: str, planned_at: Callable[[], object]) -> str:
    """Return a text that is the same for batches of a query with the same rows.

    `offsets` are those at which the batch ends, as Spark shows them. A source of files numbers its own batches, whose
    files the offsets do not name: with it, the time at which Spark planned the batch counts too.
    """
    text = f"{offsets}{planned_at()}" if "logOffset" in offsets else offsets
    return hashlib.sha256(text.encode()).hexdigest()


def planned_batch(location: str, number: int) -> str | None:
    """Return the `batch_plan` of a batch from the checkpoint of its query; None if that cannot be read."""
    try:
        lines = _read(store_for(location, {}), location, number)
        if lines[0].strip() != _BY_POSITION:
            return None
        return batch_plan(f"[{', '.join(lines[2:])}]", lambda: orjson.loads(lines[1])["batchTimestampMs"])
    except (DeltaError, OSError, ValueError, LookupError):
        return None


def query_id_of(location: str, storage_options: Mapping[str, str] | None = None) -> str:
    """Return the id of the query of a checkpoint. Raises InvalidOperationError if the location has none."""
    store = store_for(location, dict(storage_options or {}))
    try:
        return str(orjson.loads(store.read(join(location, _METADATA)))["id"])
    except (FileNotFoundInStoreError, orjson.JSONDecodeError, KeyError, TypeError):
        raise InvalidOperationError(
            f"'{location}' is not the checkpoint of a Spark query: it has no valid file '{_METADATA}'. Give the value "
            "of the option checkpointLocation.",
            location=location,
        ) from None


def checkpoint_above(location: str, storage_options: Mapping[str, str] | None = None) -> str | None:
    """Return the nearest directory above a location that is the checkpoint of a query; None if there is none."""
    while (above := parent(location)) != location:
        try:
            query_id_of(above, storage_options)
        except InvalidOperationError:
            location = above
        else:
            return above
    return None


def reset_offset(
    checkpoint: QueryCheckpoint, source: str, offset: Offset, storage_options: Mapping[str, str] | None = None
) -> str:
    """Let the next batch of a query begin at another offset of one source, and return where the old file is kept.

    The query must not run. Raises InvalidOperationError if a batch is planned and not complete, or if there is no such
    source.
    """
    batch = checkpoint.latest
    if not batch.is_complete:
        raise InvalidOperationError(
            f"Batch {batch.number} of the query is planned and not complete: its sink may have written it already. "
            "Start the query once, so that it completes the batch, stop it, and reset the offset then.",
            batch=batch.number,
        )
    chosen_source(checkpoint, source)
    location = checkpoint.location
    store = store_for(location, dict(storage_options or {}))
    lines = _read(store, location, batch.number)
    saved = join(location, "offsets_before_reset", f"{batch.number}.{time.time_ns() // 1_000_000}")
    store.write(saved, "\n".join(lines).encode())
    store.write(join(location, _OFFSETS, str(batch.number)), "\n".join(_replaced(lines, source, offset)).encode())
    # Hadoop's checksum of the file that was replaced.
    store.delete([join(location, _OFFSETS, f".{batch.number}.crc")])
    return saved


def chosen_source(checkpoint: QueryCheckpoint, source: str | None) -> str:
    """Return the number of a Delta source, which may be left out if there is one. Raises InvalidOperationError."""
    sources = list(checkpoint.latest.offsets)
    if source is None and len(sources) == 1:
        return sources[0]
    if source is None or source not in sources:
        wanted = "several sources" if source is None else f"no Delta source {source}"
        raise InvalidOperationError(
            f"The query has {wanted if sources else 'no source'} that read Delta tables. Choose one of: "
            f"{', '.join(sources) or 'none'}."
        )
    return source


def _read(store: ObjectStore, location: str, number: int) -> list[str]:
    return store.read(join(location, _OFFSETS, str(number))).decode().split("\n")


def _delta_offsets(lines: list[str]) -> dict[str, Offset]:
    found = {}
    for name, text in _by_source(lines).items():
        try:
            is_delta = "reservoirId" in orjson.loads(text)
        except orjson.JSONDecodeError:
            continue
        if is_delta:
            found[name] = Offset.parse(text)
    return found


def _by_source(lines: list[str]) -> dict[str, str]:
    """Return the texts of offsets by the number of their source: the first two lines are the format and the query."""
    texts = lines[2:]
    match lines[0].strip():
        case "v1":  # by position
            numbered = {str(number): text for number, text in enumerate(texts)}
        case "v2":  # by name
            pairs = (text.partition(":") for text in texts)
            numbered = {name: text for name, separator, text in pairs if separator}
        case found:
            raise InvalidOffsetError(
                f"The offset log of the checkpoint has the unknown format '{found}'; formats '{_BY_POSITION}' and "
                f"'{_BY_NAME}' are known. Upgrade pyspark-delta."
            )
    return {name: text for name, text in numbered.items() if text.strip() not in ("", _NOTHING)}


def _replaced(lines: list[str], source: str, offset: Offset) -> list[str]:
    if lines[0].strip() == _BY_POSITION:
        place, text = 2 + int(source), offset.to_json()
    else:
        place = next(number for number, line in enumerate(lines) if line.partition(":")[0] == source)
        text = f"{source}:{offset.to_json()}"
    return [*lines[:place], text, *lines[place + 1 :]]
