"""File actions as the lines of a commit, made by Arrow from columns without a Python object per file (C011)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

_CHUNK = 50_000  # files whose lines are made at once
_CONTROL = r"[\x00-\x1f]"


def encode_adds(files: pa.Table, *, data_change: bool) -> Iterator[bytes]:
    """The lines, each with its newline, of adding `files`; columns as in `actions.columns`, absent ones left out."""
    for chunk in _chunks(files):
        members = [
            _member("path", quote(chunk["path"])),
            _member("partitionValues", _objects(chunk["partition_values"])),
            _member("size", chunk["size"]),
            _member("modificationTime", chunk["modification_time"]),
            f',"dataChange":{_boolean(data_change)}',
            *_optional(chunk, stats=True),
        ]
        yield _lines("add", members)


def encode_removes(files: pa.Table, *, data_change: bool, deletion_timestamp: int) -> Iterator[bytes]:
    """The lines, each with its newline, of removing `files`; paths and deletion vectors as they were added (C161).

    `deletion_timestamp` is in ms since the epoch. Statistics are left out.
    """
    for chunk in _chunks(files):
        members = [
            _member("path", quote(chunk["path"])),
            f',"deletionTimestamp":{deletion_timestamp},"dataChange":{_boolean(data_change)}',
            ',"extendedFileMetadata":true',
            _member("partitionValues", _objects(chunk["partition_values"])),
            _member("size", chunk["size"]),
            *_optional(chunk, stats=False),
        ]
        yield _lines("remove", members)


def encode_changes(files: pa.Table) -> Iterator[bytes]:
    """The lines, each with its newline, of change data files; they never change the data themselves (C164, C165)."""
    for chunk in _chunks(files):
        members = [
            _member("path", quote(chunk["path"])),
            _member("partitionValues", _objects(chunk["partition_values"])),
            _member("size", chunk["size"]),
            ',"dataChange":false',
            *([_member("tags", _objects(chunk["tags"]))] if "tags" in chunk else []),
        ]
        yield _lines("cdc", members)


def _optional(chunk: Mapping[str, pa.Array], *, stats: bool) -> Iterator[Any]:
    if stats and "stats" in chunk:
        yield _member("stats", quote(chunk["stats"]))
    if "tags" in chunk:
        yield _member("tags", _objects(chunk["tags"]))
    if "deletion_vector" in chunk:
        yield _member("deletionVector", _deletion_vectors(chunk["deletion_vector"]))
    for name, column in (("baseRowId", "base_row_id"), ("defaultRowCommitVersion", "default_row_commit_version")):
        if column in chunk:
            yield _member(name, chunk[column])
    if stats and "clustering_provider" in chunk:
        yield _member("clusteringProvider", quote(chunk["clustering_provider"]))


def _chunks(files: pa.Table) -> Iterator[dict[str, pa.Array]]:
    for start in range(0, files.num_rows, _CHUNK):
        part = files.slice(start, _CHUNK).combine_chunks()
        yield {name: _flat(part.column(name)) for name in part.column_names}


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _lines(name: str, members: list[Any]) -> bytes:
    """`{"name":{...}}` per row: the members begin with a comma, which the first one loses."""
    body = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*members, ""), 1)
    text = pc.binary_join_element_wise(f'{{"{name}":{{', body, "}}\n", "")
    offsets = memoryview(text.buffers()[1]).cast("i")
    return bytes(memoryview(text.buffers()[2])[offsets[text.offset] : offsets[text.offset + len(text)]])


def _member(name: str, values: pa.Array) -> pa.Array:
    """`,"name":value`, or nothing where the value is null."""
    text = pc.binary_join_element_wise(f',"{name}":', values.cast(pa.string()), "")
    return pc.fill_null(text, "")


def quote(text: pa.Array) -> pa.Array:
    """Texts as JSON strings; null stays null."""
    if pc.any(pc.match_substring_regex(text, _CONTROL)).as_py():
        encoded = text.dictionary_encode()
        quoted = [orjson.dumps(value).decode() for value in encoded.dictionary.to_pylist()]
        return pa.array(quoted, pa.string()).take(encoded.indices)
    escaped = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    return pc.binary_join_element_wise('"', escaped, '"', "")


def _objects(maps: pa.Array) -> pa.Array:
    """JSON objects of maps from text to text; a null map stays null."""
    entries = maps.cast(pa.map_(pa.string(), pa.string()))
    offsets = entries.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    keys = entries.keys.slice(first, last - first) if len(entries.keys) != last - first else entries.keys
    items = entries.items.slice(first, last - first) if len(entries.items) != last - first else entries.items
    pairs = pc.binary_join_element_wise(quote(keys), pc.fill_null(quote(items), "null"), ":")
    lists = pa.ListArray.from_arrays(pc.subtract(offsets, first), pairs.cast(pa.string()))
    objects = pc.binary_join_element_wise("{", pc.binary_join(lists, ","), "}", "")
    return pc.if_else(entries.is_null(), pa.scalar(None, pa.string()), objects)


def _deletion_vectors(vectors: pa.Array) -> pa.Array:
    storage, path, offset, size, cardinality = vectors.flatten()
    text = pc.binary_join_element_wise(
        _member("storageType", quote(storage)),
        _member("pathOrInlineDv", quote(path)),
        _member("offset", offset),
        _member("sizeInBytes", size),
        _member("cardinality", cardinality),
        "",
    )
    objects = pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(text, 1), "}", "")
    return pc.if_else(pc.is_null(storage), pa.scalar(None, pa.string()), objects)


def _boolean(value: bool) -> str:
    return "true" if value else "false"
