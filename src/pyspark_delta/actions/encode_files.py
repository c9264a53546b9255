"""File actions as the lines of a commit, made by Arrow from columns without a Python object per file (C011)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.parallel import map_ordered

_CHUNK = 8192  # files encoded together: their text fits the processor's cache
_QUOTE, _BACKSLASH = b'"\\'


def encode_adds(files: pa.Table, *, data_change: bool) -> Iterator[bytes]:
    """Yield lines of `add` actions, with newlines; columns as in `actions.columns`, absent ones are left out."""

    def encode(chunk: Mapping[str, pa.Array]) -> bytes:
        members = [
            *_member("path", _escaped(chunk["path"]), '"'),
            *_member("partitionValues", _objects(chunk["partition_values"])),
            *_member("size", chunk["size"]),
            *_member("modificationTime", chunk["modification_time"]),
            f',"dataChange":{_boolean(data_change)}',
            *_optional(chunk, stats=True),
        ]
        return _lines("add", members)

    return _encoded(files, encode)


def encode_removes(files: pa.Table, *, data_change: bool, deletion_timestamp: int) -> Iterator[bytes]:
    """Yield lines of `remove` actions, with newlines; paths and deletion vectors as in their adds (C161).

    `deletion_timestamp` is in ms since the epoch. Statistics are left out.
    """

    def encode(chunk: Mapping[str, pa.Array]) -> bytes:
        members = [
            *_member("path", _escaped(chunk["path"]), '"'),
            f',"deletionTimestamp":{deletion_timestamp},"dataChange":{_boolean(data_change)}',
            # Files that never were data files, such as those of deletion vectors, have no size (C157).
            *([] if chunk["size"].null_count == len(chunk["size"]) else [',"extendedFileMetadata":true']),
            *_member("partitionValues", _objects(chunk["partition_values"])),
            *_member("size", chunk["size"]),
            *_optional(chunk, stats=False),
        ]
        return _lines("remove", members)

    return _encoded(files, encode)


def encode_changes(files: pa.Table) -> Iterator[bytes]:
    """Yield lines of `cdc` actions, with newlines; their `dataChange` is always false (C164, C165)."""

    def encode(chunk: Mapping[str, pa.Array]) -> bytes:
        members = [
            *_member("path", _escaped(chunk["path"]), '"'),
            *_member("partitionValues", _objects(chunk["partition_values"])),
            *_member("size", chunk["size"]),
            ',"dataChange":false',
            *(_member("tags", _objects(chunk["tags"])) if "tags" in chunk else []),
        ]
        return _lines("cdc", members)

    return _encoded(files, encode)


def _optional(chunk: Mapping[str, pa.Array], *, stats: bool) -> Iterator[Any]:
    if stats and "stats" in chunk:
        yield from _member("stats", _escaped(chunk["stats"]), '"')
    if "tags" in chunk:
        yield from _member("tags", _objects(chunk["tags"]))
    if "deletion_vector" in chunk:
        yield from _member("deletionVector", _deletion_vectors(chunk["deletion_vector"]))
    for name, column in (("baseRowId", "base_row_id"), ("defaultRowCommitVersion", "default_row_commit_version")):
        if column in chunk:
            yield from _member(name, chunk[column])
    if stats and "clustering_provider" in chunk:
        yield from _member("clusteringProvider", _escaped(chunk["clustering_provider"]), '"')


def _encoded(files: pa.Table, encode: Callable[[Mapping[str, pa.Array]], bytes]) -> Iterator[bytes]:
    """Yield the lines of the chunks of files, in order; several are encoded at the same time."""
    return (map if files.num_rows <= _CHUNK else map_ordered)(encode, _chunks(files))


def _chunks(files: pa.Table) -> Iterator[dict[str, pa.Array]]:
    for start in range(0, files.num_rows, _CHUNK):
        part = files.slice(start, _CHUNK)
        yield {name: _flat(part.column(name)) for name in part.column_names}


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _lines(name: str, members: list[Any]) -> bytes:
    """Return `{"name":{...}}` per row: the members begin with a comma, and the first comma is removed."""
    pieces = [f'{{"{name}":{{{members[0][1:]}', *members[1:], "}}\n"]
    text = pc.binary_join_element_wise(*_merged(pieces), "")
    offsets = memoryview(text.buffers()[1]).cast("i")
    return bytes(memoryview(text.buffers()[2])[offsets[text.offset] : offsets[text.offset + len(text)]])


def _merged(pieces: list[Any]) -> list[Any]:
    """Return the pieces with adjacent constants joined."""
    merged: list[Any] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged


def _member(name: str, values: pa.Array, quote: str = "") -> list[Any]:
    """Return the pieces of `,"name":value`, which are empty if the value is null."""
    if values.null_count == len(values):
        return []
    pieces = [f',"{name}":{quote}', values.cast(pa.string()), quote]
    if not values.null_count:
        return pieces
    return [pc.fill_null(pc.binary_join_element_wise(*pieces, ""), "")]


def quote(text: pa.Array) -> pa.Array:
    """Return strings as quoted and escaped JSON strings; null stays null."""
    return pc.binary_join_element_wise('"', _escaped(text), '"', "")


def _escaped(text: pa.Array) -> pa.Array:
    """Return the contents of JSON strings without quotes; null stays null."""
    if text.null_count == len(text):
        return text
    text = text.cast(pa.string())
    offsets = np.frombuffer(text.buffers()[1], dtype=np.int32)[text.offset : text.offset + len(text) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    if first == last:
        return text
    data = np.frombuffer(text.buffers()[2], dtype=np.uint8)[first:last]
    if data.min() < 0x20:
        encoded = text.dictionary_encode()
        distinct = [orjson.dumps(value)[1:-1].decode() for value in encoded.dictionary.to_pylist()]
        return pa.array(distinct, pa.string()).take(encoded.indices)
    special = np.flatnonzero((data == _QUOTE) | (data == _BACKSLASH))
    if not len(special):
        return text
    # Without control characters an escape is one more byte, so all strings can be escaped as one.
    whole = orjson.dumps(data.tobytes().decode())
    starts = offsets.astype(np.int64) - first
    starts += np.searchsorted(special, starts) + 1  # the quote that all of them begin with
    if starts[-1] >= 2**31:
        return pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    escaped = pa.StringArray.from_buffers(len(text), pa.py_buffer(starts.astype(np.int32)), pa.py_buffer(whole))
    return pc.if_else(text.is_valid(), escaped, pa.scalar(None, pa.string())) if text.null_count else escaped


def _objects(maps: pa.Array) -> pa.Array:
    """Return maps from string to string as JSON objects; a null map stays null."""
    entries = maps.cast(pa.map_(pa.string(), pa.string()))
    offsets = entries.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    keys = entries.keys.slice(first, last - first) if len(entries.keys) != last - first else entries.keys
    items = entries.items.slice(first, last - first) if len(entries.items) != last - first else entries.items
    values = pc.binary_join_element_wise('"', _escaped(items), '"', "")
    values = pc.fill_null(values, "null") if values.null_count else values
    pairs = pc.binary_join_element_wise('"', _escaped(keys), '":', values, "")
    lists = pa.ListArray.from_arrays(pc.subtract(offsets, first), pairs.cast(pa.string()))
    objects = pc.binary_join_element_wise("{", pc.binary_join(lists, ","), "}", "")
    return pc.if_else(entries.is_null(), pa.scalar(None, pa.string()), objects) if entries.null_count else objects


def _deletion_vectors(vectors: pa.Array) -> pa.Array:
    storage, path, offset, size, cardinality = vectors.flatten()
    if storage.null_count == len(storage):
        return pa.nulls(len(storage), pa.string())
    members = [
        *_member("storageType", _escaped(storage), '"'),
        *_member("pathOrInlineDv", _escaped(path), '"'),
        *_member("offset", offset),
        *_member("sizeInBytes", size),
        *_member("cardinality", cardinality),
    ]
    text = pc.binary_join_element_wise(*_merged(members), "")
    objects = pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(text, 1), "}", "")
    return pc.if_else(pc.is_null(storage), pa.scalar(None, pa.string()), objects)


def _boolean(value: bool) -> str:
    return "true" if value else "false"
