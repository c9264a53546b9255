"""Thrift's compact protocol: footers and pages of Arrow pass unchanged, damaged data are refused."""

from __future__ import annotations

import contextlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_delta.parquet import thrift
from pyspark_delta.parquet.thrift import BINARY, BYTE, DOUBLE, I64, LIST, STRUCT, TRUE, Elements, Field, ThriftError


def footer() -> bytes:
    table = pa.table({"a": [1, None, 3], "b": ["x", "y", None], "c": [[{"d": 1.5}], [], None]})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=2, write_page_index=True, version="2.6")
    data = sink.getvalue().to_pybytes()
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


FOOTER = footer()


def test_a_footer_is_written_as_it_was_read() -> None:
    struct, end = thrift.read_struct(FOOTER)
    assert end == thrift.skip(FOOTER, 0, STRUCT) == len(FOOTER)
    assert struct[3] == Field(I64, 3)
    assert thrift.write_struct(struct) == FOOTER


integers = st.integers(-(1 << 63), (1 << 63) - 1)
elements = st.one_of(
    st.lists(integers, max_size=20).map(lambda values: Elements(I64, values)),
    st.lists(st.binary(max_size=200), max_size=20).map(lambda values: Elements(BINARY, values)),
    st.lists(st.integers(1, 2), max_size=20).map(lambda values: Elements(TRUE, values)),
)
leaves = st.one_of(
    integers.map(lambda value: Field(I64, value)),
    st.binary(max_size=300).map(lambda value: Field(BINARY, value)),
    st.integers(1, 2).map(lambda kind: Field(kind, kind)),
    st.integers(0, 255).map(lambda value: Field(BYTE, value)),
    st.binary(min_size=8, max_size=8).map(lambda value: Field(DOUBLE, value)),
    elements.map(lambda value: Field(LIST, value)),
)
structs = st.recursive(
    st.dictionaries(st.integers(1, 40), leaves, max_size=6),
    lambda inner: st.dictionaries(
        st.integers(1, 40), st.one_of(leaves, inner.map(lambda s: Field(STRUCT, s))), max_size=4
    ),
    max_leaves=20,
)


@given(structs)
def test_every_struct_is_read_as_it_was_written(struct: thrift.Struct) -> None:
    data = thrift.write_struct(struct)
    assert thrift.read_struct(data) == (struct, len(data))
    assert thrift.skip(b"\7" + data, 1, STRUCT) == len(data) + 1


@given(at=st.integers(0, len(FOOTER) - 1), data=st.binary(max_size=12), cut=st.booleans())
def test_damage_is_an_error_of_the_protocol_or_another_struct(at: int, data: bytes, cut: bool) -> None:
    damaged = FOOTER[:at] + data + (b"" if cut else FOOTER[at + len(data) :])
    with contextlib.suppress(ThriftError):
        _, end = thrift.read_struct(damaged)
        assert end <= len(damaged)
    with contextlib.suppress(ThriftError):
        assert thrift.skip(damaged, 0, STRUCT) <= len(damaged)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x15",
        b"\x15" + b"\xff" * 20,
        b"\x18\xff\xff\xff\xff\x0f",
        b"\x19\xf8\xff\xff\xff\xff\x0f",
        b"\x1b\x00",
        b"\x15\x02\x05\x02\x02\x00",
        b"\x1c" * 100_000,
        (b"\x19\x19" * 100_000),
    ],
)
def test_what_no_footer_has_is_refused(data: bytes) -> None:
    """No data, an end within a value, long integers, lengths beyond the end, maps, a field twice, deep nesting."""
    with pytest.raises(ThriftError):
        thrift.read_struct(data)
