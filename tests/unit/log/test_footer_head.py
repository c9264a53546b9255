"""The beginning of a long Parquet footer, beside the footer as Arrow reads it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_delta.log.footer_head import LONG, first_row_group
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


def test_the_first_row_group_is_the_one_that_arrow_sees(tmp_path: Path) -> None:
    path = a_checkpoint(tmp_path / "x.parquet").path
    whole = pq.read_metadata(path)
    assert whole.serialized_size > LONG
    with pa.OSFile(path) as file:
        head = first_row_group(file)
    assert head is not None
    assert (head.num_row_groups, head.num_rows) == (1, ROWS)
    assert head.row_group(0) == whole.row_group(0)
    assert head.schema.equals(whole.schema)


def test_a_short_footer_is_left_to_arrow(tmp_path: Path) -> None:
    with pa.OSFile(a_checkpoint(tmp_path / "x.parquet", groups=3).path) as file:
        assert first_row_group(file) is None
    short = tmp_path / "short"
    short.write_bytes(b"PAR1")
    with pa.OSFile(str(short)) as file:
        assert first_row_group(file) is None


@pytest.mark.parametrize(("protocol_at", "metadata_at"), [(0, 1), (0, 0), (400, 0), (599, 300)])
@pytest.mark.parametrize("groups", [ROWS, ROWS // 2])
def test_c038_protocol_and_metadata_are_found_wherever_they_are(
    tmp_path: Path, protocol_at: int, metadata_at: int, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = a_checkpoint(tmp_path / "x.parquet", protocol_at, metadata_at, groups)
    read = []
    take = ParquetPart._take_footer
    monkeypatch.setattr(ParquetPart, "_take_footer", lambda part, file: read.append(1) or take(part, file))
    table = part.read_present(LEAVES, once=LEAVES)
    assert table is not None
    found = {name: [row for row in table.column(name).to_pylist() if row] for name in LEAVES}
    assert found == {
        "protocol": [{"minReaderVersion": 3}],
        "metaData": [{"id": "x", "partitionColumns": ["é"]}],
    }
    in_first = max(protocol_at, metadata_at) < ROWS // groups
    assert len(read) == (not in_first)
    assert part.read_present({"add": "add.path"}) is not None


@settings(max_examples=200, deadline=None)
@given(at=st.integers(0, 2000), value=st.integers(0, 255), cut=st.booleans())
def test_damage_is_no_other_error(tmp_path_factory: pytest.TempPathFactory, at: int, value: int, cut: bool) -> None:
    whole = _whole(tmp_path_factory)
    begin = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    damaged = bytearray(whole)
    if cut:
        del damaged[begin + at : begin + at + value]
    else:
        damaged[begin + at] = value
    head = first_row_group(pa.BufferReader(bytes(damaged)))
    assert head is None or head.num_row_groups == 1


_made: list[bytes] = []


def _whole(folder: pytest.TempPathFactory) -> bytes:
    if not _made:
        _made.append(Path(a_checkpoint(folder.mktemp("damage") / "x.parquet").path).read_bytes())
    return _made[0]
