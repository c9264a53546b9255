"""Columns of paths are decoded and resolved as single paths are."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_delta.errors import CorruptLogError
from pyspark_delta.storage.paths import decode, encode_path, join, resolve_file, to_absolute_path
from pyspark_delta.storage.percent import (
    absolute_path_column,
    decode_column,
    encode_column,
    is_absolute,
    resolve_column,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ESCAPES = st.sampled_from(
    [
        "%25",
        "%2F",
        "%2f",
        "%41",
        "%34",
        "%",
        "%%",
        "%4",
        "%zz",
        "%C3%BC",
        "%F0%9F%98%80",
        "%e4%b8%ad",
        "%20",
        "25",
        "41",
    ]
)
RAW_PATHS = st.lists(TEXTS | ESCAPES, max_size=8).map("".join)


@given(st.lists(RAW_PATHS | st.none(), max_size=20))
def test_column_equals_one_by_one(raw: list[str | None]) -> None:
    array = pa.array(raw, pa.string())
    try:
        expected = [None if text is None else decode(text) for text in raw]
    except CorruptLogError:  # '%' and '80' may have met
        with pytest.raises(CorruptLogError):
            decode_column(array)
        return
    assert decode_column(array).to_pylist() == expected
    assert decode_column(array.cast(pa.large_string())).to_pylist() == expected
    chunked = pa.chunked_array([array, array.slice(len(raw) // 2)])
    assert decode_column(chunked).to_pylist() == expected + expected[len(raw) // 2 :]
    encoded = array.dictionary_encode()
    assert decode_column(encoded).to_pylist() == expected
    assert decode_column(encoded).type == encoded.type


@given(st.lists(TEXTS, max_size=20))
def test_encoding_is_undone(decoded: list[str]) -> None:
    assert decode_column(pa.array([encode_path(text) for text in decoded], pa.string())).to_pylist() == decoded


def test_no_escape_returns_the_very_column() -> None:
    array = pa.array(["a", None, "b/c"])
    assert decode_column(array) is array


@pytest.mark.parametrize(
    ("raw", "decoded"),
    [
        ("p=a%2520b/x", "p=a%20b/x"),
        ("test%25file%25prefix-x", "test%file%prefix-x"),
        ("%2541", "%41"),
        ("%%341", "%41"),
        ("100%", "100%"),
        ("a+b", "a+b"),
        ("%C3%BC%2F%E4%B8%AD", "ü/中"),
    ],
)
def test_vectors(raw: str, decoded: str) -> None:
    assert decode(raw) == decoded
    assert decode_column(pa.array([raw, "%41", "%25"])).to_pylist() == [decoded, "A", "%"]


def test_bytes_that_are_not_utf8_are_refused_by_name() -> None:
    with pytest.raises(CorruptLogError, match="part%C3-1"):
        decode_column(pa.array(["ok%20", "part%C3-1"]))


@given(st.lists(RAW_PATHS.filter(bool), max_size=20), st.sampled_from(["/t", "/", "s3://b/t", "s3://b"]))
def test_resolved_column_equals_one_by_one(raw: list[str], table: str) -> None:
    expected = []
    refused = False
    for text in raw:
        try:
            expected.append(resolve_file(table, text))
        except CorruptLogError:
            refused = True
    if refused:
        with pytest.raises(CorruptLogError):
            resolve_column(table, pa.array(raw, pa.string()))
        return
    assert resolve_column(table, pa.array(raw, pa.string())).to_pylist() == expected


def test_absolute_and_relative_paths_mix() -> None:
    raw = ["a%20b", None, "/x/y%25", "file:/x%20y", "s3a://b/k", "a//b", "./c"]
    assert resolve_column("/t", pa.array(raw)).to_pylist() == [
        "/t/a b",
        None,
        "/x/y%",
        "/x y",
        "s3://b/k",
        "/t/a/b",
        "/t/c",
    ]


@pytest.mark.parametrize(
    "root", ["file:/", "file:///", "file://localhost/", "s3a://b/", "abfss://c@a.net/", "file://x/"]
)
@given(st.lists(RAW_PATHS.filter(bool), min_size=1, max_size=20))
def test_absolute_paths_of_one_store_are_resolved_as_one_by_one(root: str, raw: list[str]) -> None:
    texts = [f"{root}{text}" for text in raw]
    try:
        expected = [resolve_file("/t", text) for text in texts]
    except CorruptLogError:
        with pytest.raises(CorruptLogError):
            resolve_column("/t", pa.array(texts, pa.string()))
        return
    assert resolve_column("/t", pa.array(texts, pa.string())).to_pylist() == expected


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1), min_size=1, max_size=20))
def test_encoded_columns_equal_one_by_one_and_are_decoded_to_the_same(names: list[str]) -> None:
    below = pa.array([f"d/{name}" for name in names] + names)
    assert encode_column(below).to_pylist() == [encode_path(path) for path in below.to_pylist()]
    assert is_absolute(encode_column(below)).to_pylist() == [False] * len(below)
    for location in ("/t a", "s3://b/ü"):
        locations = pa.array([join(location, name) for name in names])
        texts = absolute_path_column(locations)
        assert texts.to_pylist() == [to_absolute_path(path) for path in locations.to_pylist()]
        if not {".", ".."}.intersection(names):
            assert resolve_column("/other", texts).to_pylist() == locations.to_pylist()
            assert resolve_column(location, encode_column(pa.array(names))).to_pylist() == locations.to_pylist()


def test_a_hidden_climb_is_refused() -> None:
    with pytest.raises(CorruptLogError, match="climbs"):
        resolve_column("/t", pa.array(["a", "x/%2e%2e/y"]))
