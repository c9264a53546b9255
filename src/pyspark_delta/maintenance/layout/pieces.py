"""Rows that travel between tasks: pieces, which are some rows of one leaf in one binary value.

An engine exchanges pieces without knowing the types of the rows, and without converting them: a piece is a batch of the
Arrow IPC format, compressed, without its schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from pyspark_delta.maintenance.layout.order_keys import Integers

_MOST_BYTES = 4 << 20  # of rows in a piece, about
_AT_ONCE = 16 << 20  # bytes of pieces in a batch, about
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def cut_long(starts: Integers, bytes_per_row: float) -> tuple[Integers, Integers]:
    """Return where pieces start if no leaf has larger ones than allowed, and the leaf of each, counted from 0.

    `starts` says where the rows of each leaf start, and, at the end, the number of rows; so does the result.
    """
    most = max(int(_MOST_BYTES / max(bytes_per_row, 1e-9)), 1)
    pieces = -(-np.diff(starts) // most)
    leaf = np.repeat(np.arange(len(pieces)), pieces)
    number = np.arange(len(leaf)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    return np.append(starts[leaf] + number * most, starts[-1:]), leaf


def pieces_of(rows: pa.RecordBatch, starts: Integers) -> pa.BinaryArray:
    """Return the pieces of rows that start at some of them; the last number in `starts` is that of all rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_OPTIONS) as writer:
        writer.write_batch(rows.slice(0, 0))  # after the schema
        ends = [sink.tell()]
        for start, end in pairwise(starts.tolist()):
            writer.write_batch(rows.slice(start, end - start))
            ends.append(sink.tell())
    first, data = ends[0], sink.getvalue()
    offsets = pa.py_buffer((np.array(ends) - first).astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, [None, offsets, data.slice(first, ends[-1] - first)])


def rows_of(piece: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of a piece; `schema` is that of the rows."""
    return pa.ipc.read_record_batch(pa.ipc.read_message(pa.py_buffer(piece)), schema)


def in_batches(pieces: pa.RecordBatch, sizes: Integers) -> Iterator[pa.RecordBatch]:
    """Yield pieces in batches that are not much larger than a piece may be; `sizes` are the bytes of each."""
    batch = (np.cumsum(sizes) - sizes) // _AT_ONCE
    borders = np.flatnonzero(np.diff(batch, prepend=-1)).tolist()
    for start, end in pairwise([*borders, pieces.num_rows]):
        yield pieces.slice(start, end - start)
