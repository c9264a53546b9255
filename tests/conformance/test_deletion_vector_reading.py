"""Deletion vectors: descriptors, the bitmap, the file framing (DV)."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap, BitMap64
from tests.unit.data.planned import rows_of, schema_of, write

from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.deletion_vectors import (
    deletion_vector_path,
    encode_inline,
    of_indexes,
    read_deletion_vector,
    read_deletion_vectors,
    to_indexes,
    write_deletion_vectors,
    z85,
)
from pyspark_delta.deletion_vectors.bitmap import deserialize, serialize
from pyspark_delta.errors import DeletionVectorError
from pyspark_delta.schema.types import LONG
from pyspark_delta.storage import store_for

EXAMPLE_ROWS = [3, 4, 7, 11, 18, 29]
OLD_SAMPLE = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
DOCUMENTED_SAMPLE = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
UUID_TEXT = "d2c639aa-8816-431a-aaf6-d3fe2512ff61"


def descriptor(
    kind: str, text: str, *, offset: int | None = None, size: int = 40, rows: int = 6
) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor(
        storage_type=kind, path_or_inline_dv=text, offset=offset, size_in_bytes=size, cardinality=rows
    )


def indexes(*values: int) -> BitMap64:
    return of_indexes(np.array(values, np.int64))


def read(table: Path, one: DeletionVectorDescriptor) -> list[int]:
    return to_indexes(read_deletion_vector(store_for, str(table), one, data_file="part-0.parquet")).tolist()


def test_c253_c255_vectors_in_the_log_are_applied_whatever_the_property_says(tmp_path: Path) -> None:
    file = write(tmp_path, pa.table({"x": list(range(6))})) | {"deletion_vector": encode_inline(indexes(0, 5))}
    assert [r["x"] for r in rows_of(tmp_path, schema_of(x=LONG), [file])] == [1, 2, 3, 4]


def test_c257_other_storage_types_are_refused() -> None:
    with pytest.raises(DeletionVectorError, match="storage type 'r' of a deletion vector is not known"):
        deletion_vector_path("/t", descriptor("r", "x"))


def test_c258_c264_c267_c268_a_relative_path_has_an_optional_prefix_and_an_encoded_uuid() -> None:
    example = descriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", offset=4)
    expected = f"s3://mytable/ab/deletion_vector_{UUID_TEXT}.bin"
    assert deletion_vector_path("s3://mytable", example) == expected
    bare = replace(example, path_or_inline_dv="^-aqEH.-t@S}K{vb[*k^")
    assert deletion_vector_path("s3://mytable", bare) == f"s3://mytable/deletion_vector_{UUID_TEXT}.bin"


@pytest.mark.parametrize("text", ["too-short", "../^-aqEH.-t@S}K{vb[*k^", "^-aqEH.-t@S}K{vb[*k\x7f"])
def test_c258_a_relative_path_without_a_uuid_is_refused(text: str) -> None:
    with pytest.raises(DeletionVectorError):
        deletion_vector_path("/t", descriptor("u", text))


def test_c260_c269_an_absolute_path_is_encoded_like_the_path_of_an_add() -> None:
    location = f"s3://mytable/deletion_vector_{UUID_TEXT}.bin"
    assert deletion_vector_path("/elsewhere", descriptor("p", location, offset=4)) == location
    assert deletion_vector_path("/t", descriptor("p", "file:///a%20b/dv.bin")) == "/a b/dv.bin"


def test_c259_c261_c270_the_documented_inline_sample(tmp_path: Path) -> None:
    one = descriptor("i", DOCUMENTED_SAMPLE, size=44)
    assert deletion_vector_path("/t", one) is None
    assert read(tmp_path, one) == EXAMPLE_ROWS
    assert encode_inline(indexes(*EXAMPLE_ROWS)) == one


def test_c270_c274_the_inline_sample_of_the_text_is_in_an_older_layout(tmp_path: Path) -> None:
    assert read(tmp_path, descriptor("i", OLD_SAMPLE, size=40)) == EXAMPLE_ROWS


def test_c261_a_missing_offset_means_the_first_vector(tmp_path: Path) -> None:
    (one,) = write_deletion_vectors(store_for("/"), str(tmp_path), [indexes(1, 2)])
    assert one.offset == 1
    assert read(tmp_path, replace(one, offset=None)) == [1, 2]


def test_c262_the_size_is_that_of_the_bitmap_alone() -> None:
    one = encode_inline(indexes(*EXAMPLE_ROWS))
    assert one.size_in_bytes == len(serialize(indexes(*EXAMPLE_ROWS))) == 44


def test_c264_z85_known_answer() -> None:
    assert z85.encode(bytes.fromhex("864fd26fb559f75b")) == "HelloWorld"
    assert z85.decode("HelloWorld") == bytes.fromhex("864fd26fb559f75b")


def test_c265_inline_data_is_zero_padded_and_cut_back(tmp_path: Path) -> None:
    bitmap = of_indexes(np.arange(100))
    one = encode_inline(bitmap)
    assert one.size_in_bytes % 4
    assert len(one.path_or_inline_dv) % 5 == 0
    assert read(tmp_path, one) == list(range(100))


def test_c265_a_short_last_group_may_be_marked_instead(tmp_path: Path) -> None:
    data = serialize(of_indexes(np.arange(100)))
    whole, rest = data[: len(data) // 4 * 4], data[len(data) // 4 * 4 :]
    value = int.from_bytes(rest, "big")
    digits = ""
    for _ in range(len(rest) + 1):
        value, digit = divmod(value, 85)
        digits = z85.ALPHABET[digit] + digits
    text = z85.encode(whole) + digits.rjust(5, "#")
    assert read(tmp_path, descriptor("i", text, size=len(data), rows=100)) == list(range(100))


@pytest.mark.parametrize("text", ["abc", "ab\u00e9de", "ab de", "#####", "%nSc1", "####$"])
def test_c264_text_that_is_not_z85_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DeletionVectorError, match="is not Z85"):
        read(tmp_path, descriptor("i", text, size=4))


def test_c266_the_unique_id_has_the_offset_where_there_is_one() -> None:
    assert descriptor("u", "abc", offset=4).unique_id == "uabc@4"
    assert descriptor("i", "abc").unique_id == "iabc"


def test_c271_rows_beyond_32_bits_are_addressed() -> None:
    wide = [0, 1, 2**32 - 1, 2**32, 5 * 2**32 + 7, 2**63 - 1]
    assert to_indexes(deserialize(serialize(indexes(*wide)))).tolist() == wide


def test_c272_the_layout_is_little_endian_with_ascending_keys() -> None:
    data = serialize(indexes(1, 2**32 + 2))
    magic, buckets, first = struct.unpack_from("<iqI", data)
    assert (magic, buckets, first) == (1681511377, 2, 0)
    assert data[16:].startswith(BitMap([1]).serialize())
    assert data.endswith(struct.pack("<I", 1) + BitMap([2]).serialize())


def test_c273_a_key_with_its_top_bit_set_is_neither_written_nor_read() -> None:
    beyond = BitMap64([2**63])
    with pytest.raises(DeletionVectorError, match="beyond 63 bits"):
        serialize(beyond)
    with pytest.raises(DeletionVectorError, match="beyond 63 bits"):
        deserialize((1681511377).to_bytes(4, "little") + beyond.serialize())


def test_c274_an_unknown_magic_number_is_refused() -> None:
    data = bytearray(serialize(indexes(1)))
    data[:4] = (1681511378).to_bytes(4, "little")
    with pytest.raises(DeletionVectorError, match="1681511378, which is not a known format"):
        deserialize(bytes(data))


def test_c274_the_native_layout_is_read() -> None:
    parts = [BitMap([5, 6]), BitMap(), BitMap([7])]
    data = struct.pack("<ii", 1681511376, len(parts))
    for part in parts:
        raw = part.serialize()
        data += struct.pack("<i", len(raw)) + raw
    assert to_indexes(deserialize(data)).tolist() == [5, 6, 2 * 2**32 + 7]
    with pytest.raises(DeletionVectorError, match="ends"):
        deserialize(data[:-1])


def test_c275_array_bitmap_and_run_containers_are_read() -> None:
    array = [1, 5, 9]
    dense = list(range(65536, 2 * 65536, 2))
    run = list(range(2 * 65536, 2 * 65536 + 40_000))
    bitmap = BitMap64([*array, *dense, *run])
    bitmap.run_optimize()
    kinds = bitmap.get_statistics()
    assert [kinds[f"n_{kind}_containers"] for kind in ("array", "bitset", "run")] == [1, 1, 1]
    data = (1681511377).to_bytes(4, "little") + bitmap.serialize()
    assert to_indexes(deserialize(data)).tolist() == [*array, *dense, *run]


def test_c276_c277_the_framing_is_big_endian_and_the_offset_is_that_of_the_size(tmp_path: Path) -> None:
    vectors = [indexes(1, 2), indexes(10), of_indexes(np.arange(10_000))]
    found = write_deletion_vectors(store_for("/"), str(tmp_path), vectors, prefix="x1")
    path = deletion_vector_path(str(tmp_path), found[0])
    assert path is not None
    assert path.startswith(f"{tmp_path}/x1/deletion_vector_")
    content = Path(path).read_bytes()
    assert (content[0], found[0].offset) == (1, 1)
    for one, vector in zip(found, vectors, strict=True):
        assert one.offset is not None
        (size,) = struct.unpack_from(">i", content, one.offset)
        data = content[one.offset + 4 : one.offset + 4 + size]
        assert (size, data) == (one.size_in_bytes, serialize(vector))
        assert struct.unpack_from(">I", content, one.offset + 4 + size)[0] == zlib.crc32(data)
    assert read_deletion_vectors(store_for, str(tmp_path), found[::-1]) == vectors[::-1]


def test_vectors_of_one_file_are_read_at_once(tmp_path: Path) -> None:
    found = write_deletion_vectors(store_for("/"), str(tmp_path), [indexes(i) for i in range(50)])
    reads: list[str] = []

    class Counting:
        def read(self, path: str, byte_range: tuple[int, int]) -> bytes:
            reads.append(path)
            return store_for(path).read(path, byte_range)

    vectors = read_deletion_vectors(lambda _: Counting(), str(tmp_path), found)  # type: ignore[arg-type, return-value]
    assert [to_indexes(v).tolist() for v in vectors] == [[i] for i in range(50)]
    assert len(reads) == 1


def damaged(tmp_path: Path, change: slice, content: bytes) -> DeletionVectorDescriptor:
    (one,) = write_deletion_vectors(store_for("/"), str(tmp_path), [indexes(1, 2, 3)])
    path = Path(str(deletion_vector_path(str(tmp_path), one)))
    data = bytearray(path.read_bytes())
    data[change] = content
    path.write_bytes(data)
    return one


@pytest.mark.parametrize(
    ("change", "content", "reason"),
    [
        (slice(0, 1), b"\x02", "format version"),
        (slice(1, 5), b"\0\0\0\x07", "has 7 bytes at offset 1"),
        (slice(20, 21), b"\xff", "checksum"),
        (slice(-1, None), b"", "ends inside the vector"),
        (slice(0, None), b"", "format version"),
    ],
)
def test_c277_damage_is_found_and_named(tmp_path: Path, change: slice, content: bytes, reason: str) -> None:
    one = damaged(tmp_path, change, content)
    with pytest.raises(DeletionVectorError, match=reason) as raised:
        read(tmp_path, one)
    assert all(part in str(raised.value) for part in (str(tmp_path), "deletion_vector_", "part-0.parquet"))


def test_c263_c280_the_cardinality_must_be_the_number_of_rows(tmp_path: Path) -> None:
    one = replace(encode_inline(indexes(1, 2, 3)), cardinality=2)
    with pytest.raises(DeletionVectorError, match="contains 3 rows, but its descriptor says 2"):
        read(tmp_path, one)


def test_a_missing_vector_is_an_error_that_names_table_data_file_and_path(tmp_path: Path) -> None:
    (one,) = write_deletion_vectors(store_for("/"), str(tmp_path), [indexes(1)])
    path = Path(str(deletion_vector_path(str(tmp_path), one)))
    path.unlink()
    file = write(tmp_path, pa.table({"x": [1, 2]})) | {"deletion_vector": one}
    with pytest.raises(DeletionVectorError, match="does not exist") as raised:
        rows_of(tmp_path, schema_of(x=LONG), [file])
    assert all(part in str(raised.value) for part in (str(tmp_path), str(path), "f.parquet"))


def test_c281_positions_are_those_before_any_filter(tmp_path: Path) -> None:
    table = pa.table({"x": list(range(300))})
    file = write(tmp_path, table, row_group_size=100) | {"deletion_vector": encode_inline(indexes(0, 250, 299))}
    rows = rows_of(tmp_path, schema_of(x=LONG), [file], where="x >= 248 AND x <> 249")
    assert [r["x"] for r in rows] == [248, *range(251, 299)]
