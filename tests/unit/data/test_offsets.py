"""Arrays without elements and without offsets, as Spark before 4.2 and other writers of Arrow send them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from pyspark_delta import Table
from pyspark_delta.data.offsets import with_offsets

MAP = pa.map_(pa.int32(), pa.string())


def lists_of_maps() -> pa.Array:
    """Two null lists; their maps have no offsets, and PyArrow ends the process when it measures them."""
    entry = pa.struct([pa.field("key", pa.int32(), nullable=False), ("value", pa.string())])
    members = [pa.array([], pa.int32()), pa.array([], pa.string())]
    entries = pa.Array.from_buffers(entry, 0, [None], children=members)
    maps = pa.Array.from_buffers(MAP, 0, [None, None], children=[entries])
    offsets = pa.array([0, 0, 0], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.list_(MAP), 2, [pa.py_buffer(b"\0"), offsets], children=[maps])


def test_arrays_get_offsets() -> None:
    lists = lists_of_maps()
    batch = pa.record_batch({"id": [1, 2], "l": lists, "s": pa.StructArray.from_arrays([lists], ["l"])})
    whole = with_offsets(batch)
    assert whole.to_pydict() == {"id": [1, 2], "l": [None, None], "s": [{"l": None}, {"l": None}]}
    assert whole.schema == batch.schema
    assert whole.nbytes < 100
    assert with_offsets(whole) is whole


def test_rows_without_offsets_are_written(tmp_path: Path) -> None:
    table = Table.create(str(tmp_path / "t"), "id BIGINT, l ARRAY<MAP<INT, STRING>>")
    table.append(pa.table({"id": [1, 2], "l": lists_of_maps()}))
    assert table.to_arrow().to_pydict() == {"id": [1, 2], "l": [None, None]}
