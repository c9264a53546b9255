"""Encodes files and their constants as JSON of Spark's `PartitionDirectory`, one for each distinct row of constants.

Spark appends the row of a directory to every row that it reads from the directory's files. So partition values come
from the log, and so does any constant of a single file, such as its deletion vector or base row id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.spark.frames.catalyst.unsafe_rows import EncodedRows
from pyspark_delta.storage.paths import to_hadoop, to_uri
from pyspark_delta.storage.percent import resolve_column

Numbers = np.ndarray[Any, np.dtype[np.int64]]

_PLAIN_PATH = r"^[A-Za-z0-9_\-.=/:@]*$"
_NEEDS_ESCAPE = r'[\\"\x00-\x1f]'
_BATCH_CHARACTERS = 64_000_000


@dataclass(frozen=True, slots=True)
class Groups:
    """Files grouped by the values of their constants: the group of each file, and one file of each group."""

    of_file: Numbers
    first_file: Numbers

    def __len__(self) -> int:
        return len(self.first_file)


def group_files(columns: Sequence[pa.Array], count: int) -> Groups:
    """Group `count` files by the texts of their constants; without constants there is at most one group."""
    codes = np.zeros(count, dtype=np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = codes * max(len(encoded.dictionary), 1) + np.asarray(encoded.indices).astype(np.int64)
        _, codes = np.unique(codes, return_inverse=True)  # renumbered, so that the next product does not overflow
    _, first, of_file = np.unique(codes, return_index=True, return_inverse=True)
    return Groups(of_file.astype(np.int64), first.astype(np.int64))


def each_file(count: int) -> Groups:
    """Return groups of one file each."""
    numbers = np.arange(count, dtype=np.int64)
    return Groups(numbers, numbers)


def hadoop_paths(table_location: str, raw_paths: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column of paths of the log as texts for Hadoop's `new Path(text)`."""
    locations = resolve_column(table_location, raw_paths)
    if isinstance(locations, pa.ChunkedArray):
        locations = locations.combine_chunks()
    local = pc.starts_with(locations, "/")
    if pc.all(local).as_py():
        return pc.binary_join_element_wise("file:", locations, "")
    coded = locations.dictionary_encode()
    return pa.array([to_hadoop(one) for one in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)


def uri_texts(hadoop: pa.Array) -> pa.Array:
    """Return Hadoop paths as Spark shows them in `_metadata.file_path`: percent-encoded, `file:/` with one slash."""
    special = pc.invert(pc.match_substring_regex(hadoop, _PLAIN_PATH))
    if not pc.any(special).as_py():
        return hadoop
    encoded = [_encoded(text) for text in hadoop.filter(special).to_pylist()]
    return pc.replace_with_mask(hadoop, special, pa.array(encoded, hadoop.type))


def _encoded(hadoop: str) -> str:
    if hadoop.startswith("file:"):
        return "file:" + to_uri(hadoop.removeprefix("file:")).removeprefix("file://")
    return to_uri(hadoop)


def directories_json(files: pa.Table, paths: pa.Array, groups: Groups, rows: EncodedRows, offset: int) -> Iterator[str]:
    """Yield JSON arrays of directories, in the order of the groups; `rows` has one row per group.

    `offset` is the position of the first byte in a byte array of the JVM. A very long array is split into several.
    """
    order = np.argsort(groups.of_file, kind="stable")
    sizes = np.bincount(groups.of_file, minlength=len(groups))
    joined = comma_joined(_file_entries(files, paths).take(pa.array(order)), sizes)
    head = (
        f'{{"values":{{"numFields":{rows.num_fields},"bitSetWidthInBytes":{rows.bitmap_width},'
        f'"baseOffset":{offset},"sizeInBytes":'
    )
    texts = pc.binary_join_element_wise(
        pa.scalar(head, pa.large_string()),
        pa.array(rows.sizes).cast(pa.large_string()),
        pa.scalar(',"baseObject":["[B","', pa.large_string()),
        rows.text,
        pa.scalar('"]},"files":[', pa.large_string()),
        joined,
        pa.scalar("]}", pa.large_string()),
        pa.scalar("", pa.large_string()),
    )
    return _arrays(texts)


def rows_json(rows: EncodedRows, offset: int) -> Iterator[str]:
    """Yield JSON arrays of rows, without files. `offset` and the arrays are as in `directories_json`."""
    head = (
        f'{{"numFields":{rows.num_fields},"bitSetWidthInBytes":{rows.bitmap_width},"baseOffset":{offset},"sizeInBytes":'
    )
    texts = pc.binary_join_element_wise(
        pa.scalar(head, pa.large_string()),
        pa.array(rows.sizes).cast(pa.large_string()),
        pa.scalar(',"baseObject":["[B","', pa.large_string()),
        rows.text,
        pa.scalar('"]}', pa.large_string()),
        pa.scalar("", pa.large_string()),
    )
    return _arrays(texts)


def strings_json(texts: pa.Array) -> str:
    """Return a JSON array of strings."""
    if not len(texts):
        return "[]"
    quote = pa.scalar('"', pa.large_string())
    entries = pc.binary_join_element_wise(
        quote, json_texts(texts).cast(pa.large_string()), quote, pa.scalar("", pa.large_string())
    )
    return f"[{comma_joined(entries, np.array([len(entries)]))[0].as_py()}]"


def _file_entries(files: pa.Table, paths: pa.Array) -> pa.Array:
    times = files["modification_time"].combine_chunks().fill_null(0)
    return pc.binary_join_element_wise(
        pa.scalar('{"fileStatus":{"path":"', pa.large_string()),
        json_texts(paths).cast(pa.large_string()),
        pa.scalar('","length":', pa.large_string()),
        files["size"].combine_chunks().cast(pa.large_string()),
        pa.scalar(',"isdir":false,"modification_time":', pa.large_string()),
        times.cast(pa.large_string()),
        pa.scalar('},"metadata":{}}', pa.large_string()),
        pa.scalar("", pa.large_string()),
    )


def json_texts(texts: pa.Array) -> pa.Array:
    """Return strings escaped for JSON, without the quotes."""
    special = pc.match_substring_regex(texts, _NEEDS_ESCAPE)
    if not pc.any(special).as_py():
        return texts
    escaped = [json.dumps(text, ensure_ascii=False)[1:-1] for text in texts.filter(special).to_pylist()]
    return pc.replace_with_mask(texts, special, pa.array(escaped, texts.type))


def comma_joined(texts: pa.Array, sizes: Numbers) -> pa.Array:
    """Return runs of consecutive texts, each joined by commas. `sizes` are the lengths of the runs; none is 0."""
    ends = np.cumsum(sizes)
    separators = np.ones(len(texts), dtype=np.int8)
    separators[ends - 1] = 0
    comma = pa.DictionaryArray.from_arrays(
        pa.array(separators), pa.array(["", ","], pa.large_string())
    ).dictionary_decode()
    parts = pc.binary_join_element_wise(texts, comma, pa.scalar("", pa.large_string()))
    _, offsets, data = parts.buffers()
    positions = np.frombuffer(offsets, dtype="<i8")[parts.offset : parts.offset + len(parts) + 1]
    bounds = positions[np.concatenate([[0], ends])]
    return pa.LargeStringArray.from_buffers(len(sizes), pa.py_buffer(bounds.tobytes()), data)


def _arrays(texts: pa.Array) -> Iterator[str]:
    """Yield JSON arrays of the texts, which are JSON themselves; a very long array is split into several."""
    ends = np.cumsum(np.asarray(pc.binary_length(texts)))
    start = 0
    while start < len(texts):
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + _BATCH_CHARACTERS, side="right")))
        batch = comma_joined(texts.slice(start, stop - start), np.array([stop - start]))
        yield f"[{batch[0].as_py()}]"
        start = stop
