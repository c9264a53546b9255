"""Rows of a checkpoint that occur once are found in any row group."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_delta.log.parquet_part import ParquetPart
from pyspark_delta.storage import store_for

ROWS = 600
LEAVES = {"protocol": "protocol.minReaderVersion", "metaData": "metaData.id"}


def a_checkpoint(path: Path, protocol_at: int = 0, metadata_at: int = 1, groups: int = ROWS) -> ParquetPart:
    """A file of so many row groups, with a protocol and metadata in two of its rows."""
    rows = [{"add": {"path": f"{row}", "size": row, "tags": [("a", "b")]}} for row in range(ROWS)]
    columns = {
        "add": [row["add"] for row in rows],
        "protocol": [{"minReaderVersion": 3} if row == protocol_at else None for row in range(ROWS)],
        "metaData": [{"id": "x", "partitionColumns": ["é"]} if row == metadata_at else None for row in range(ROWS)],
    }
    add = pa.struct([("path", pa.string()), ("size", pa.int64()), ("tags", pa.map_(pa.string(), pa.string()))])
    metadata = pa.struct([("id", pa.string()), ("partitionColumns", pa.list_(pa.string()))])
    protocol = pa.struct([("minReaderVersion", pa.int32())])
    schema = pa.schema([("add", add), ("protocol", protocol), ("metaData", metadata)])
    pq.write_table(pa.table(columns, schema), path, row_group_size=ROWS // groups)
    return ParquetPart(store_for(str(path)), store_for(str(path)).status(str(path)))


@pytest.mark.parametrize(("protocol_at", "metadata_at"), [(0, 1), (0, 0), (400, 0), (599, 300)])
@pytest.mark.parametrize("groups", [ROWS, ROWS // 2])
def test_c038_protocol_and_metadata_are_found_wherever_they_are(
    tmp_path: Path, protocol_at: int, metadata_at: int, groups: int
) -> None:
    part = a_checkpoint(tmp_path / "x.parquet", protocol_at, metadata_at, groups)
    table = part.read_present(LEAVES, once=LEAVES)
    assert table is not None
    found = {name: [row for row in table.column(name).to_pylist() if row] for name in LEAVES}
    assert found == {
        "protocol": [{"minReaderVersion": 3}],
        "metaData": [{"id": "x", "partitionColumns": ["é"]}],
    }
    assert part.read_present({"add": "add.path"}) is not None
