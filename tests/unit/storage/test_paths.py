"""Paths of the log, locations, and what users type."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_delta.errors import CorruptLogError, InvalidOperationError, UnsupportedTableError
from pyspark_delta.storage import normalize_location, store_for
from pyspark_delta.storage.paths import (
    encode_path,
    file_name,
    join,
    parent,
    resolve_file,
    split,
    to_hadoop,
    to_uri,
)

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=10).filter(
    lambda name: name not in (".", "..")
)
RELATIVE = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
TABLES = st.sampled_from(["/t", "/a b/ü%20", "s3://bucket/t", "gs://b", "abfss://c@a.dfs.core.windows.net/t/u", "/"])


# ------------------------------------------------------------------------------------------------- round trips
@given(TABLES, RELATIVE)
def test_c138_written_paths_are_read_back(table: str, relative: str) -> None:
    assert resolve_file(table, encode_path(relative)) == join(table, relative)


@given(TABLES, RELATIVE)
def test_c138_uris_name_their_location(table: str, relative: str) -> None:
    location = join(table, relative)
    assert resolve_file("/elsewhere", to_uri(location)) == location


@given(RELATIVE)
def test_encoding_is_ascii_safe_where_uris_demand_it(relative: str) -> None:
    assert not set(encode_path(relative)) & set(' "#<>?[\\]^`{|}\x7f\n\t')


# ----------------------------------------------------------------------------------------------------- reading
@pytest.mark.parametrize(
    ("raw", "location"),
    [
        ("part-0.parquet", "/t/part-0.parquet"),
        ("p=a%2520b/x", "/t/p=a%20b/x"),
        ("test%25file%25prefix-x", "/t/test%file%prefix-x"),
        ("_2=bar+%252521/p", "/t/_2=bar+%2521/p"),
        ("letter=%252F%252520%2525f/x", "/t/letter=%2F%2520%25f/x"),
        ("date=2021-01-01%2000%253A00%253A00/x", "/t/date=2021-01-01 00%3A00%3A00/x"),
        ("time=10:30/x", "/t/time=10:30/x"),
        ("a%3Ab/c", "/t/a:b/c"),
        ("/some/unqualified/with%20space/p@%23h", "/some/unqualified/with space/p@#h"),
        ("file:/some/with%20space/p@%23h", "/some/with space/p@#h"),
        ("file:///some/x", "/some/x"),
        ("file://localhost/some/x", "/some/x"),
        ("FILE:/x", "/x"),
        ("s3://b/k%25", "s3://b/k%"),
        ("s3a://b/k/l", "s3://b/k/l"),
        ("abfss://c@a.dfs.core.windows.net/k", "abfss://c@a.dfs.core.windows.net/k"),
        ("a//b/./c/", "/t/a/b/c"),
        ("100%", "/t/100%"),
        ("ü/中", "/t/ü/中"),
        ("..x/y..", "/t/..x/y.."),
    ],
)
def test_c138_c153_resolve(raw: str, location: str) -> None:
    assert resolve_file("/t", raw) == location


def test_c260_absolute_paths_without_a_scheme_lie_on_the_tables_store() -> None:
    assert resolve_file("s3://bucket/t", "/k/deletion_vector.bin") == "s3://bucket/k/deletion_vector.bin"
    assert resolve_file("s3://bucket/t", "/k/a%20b") == "s3://bucket/k/a b"


@pytest.mark.parametrize(
    "raw",
    ["../x", "a/../b", "a/%2e%2E/b", "/a/../b", "file:/a/../b", "s3://b/../c", "..", "a/.."],
)
def test_climbing_paths_are_refused_by_name(raw: str) -> None:
    with pytest.raises(CorruptLogError) as caught:
        resolve_file("/t", raw)
    assert raw in str(caught.value)
    assert caught.value.path == raw


@pytest.mark.parametrize("raw", ["", "/", ".", "a\0b", "a%00b", "file:x", "file://host/x", "s3:x", "s3:/b/k", "%FF"])
def test_paths_that_name_no_file_are_refused(raw: str) -> None:
    with pytest.raises(CorruptLogError):
        resolve_file("/t", raw)


def test_c138_every_golden_file_is_found(golden: Path) -> None:
    """Files that real writers named in their commits lie where the paths say."""
    odd = checked = 0
    for commit in golden.glob("*/*/_delta_log/*.json"):
        if not commit.stem.isdigit():
            continue
        table = str(commit.parent.parent)
        for line in commit.read_text().splitlines():
            raw = json.loads(line).get("add", {}).get("path", "") if line.startswith('{"add"') else ""
            if "%" not in raw or raw.startswith("/"):
                continue
            checked += 1
            location = resolve_file(table, raw)
            if os.path.isdir(os.path.dirname(location)) and os.path.exists(location):
                odd += 1
                assert encode_path(os.path.relpath(location, table)) == raw
    assert checked > 50
    assert odd > 20


# ------------------------------------------------------------------------------------------------------ locations
def test_parts() -> None:
    assert split("/a/b") == ("file", "", "/a/b")
    assert split("s3://b/k/l") == ("s3", "b", "/k/l")
    assert split("s3://b") == ("s3", "b", "")
    assert join("/", "a", "b") == "/a/b"
    assert join("s3://b", "a") == "s3://b/a"
    assert file_name("s3://b/k/l.json") == "l.json"
    assert parent("/a/b") == "/a"
    assert parent("/a") == parent("/") == "/"
    assert parent("s3://b/k/l") == "s3://b/k"
    assert parent("s3://b/k") == parent("s3://b") == "s3://b"


def test_to_hadoop_encodes_nothing() -> None:
    assert to_hadoop("/a b/p=a%20b") == "file:/a b/p=a%20b"
    assert to_hadoop("s3://b/k k") == "s3a://b/k k"
    assert to_hadoop("gs://b/k") == "gs://b/k"


# ------------------------------------------------------------------------------------------------ what users give
def test_bare_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert normalize_location("t") == f"{tmp_path}/t"
    assert normalize_location("./t/../u/") == f"{tmp_path}/u"
    assert normalize_location(Path("t")) == f"{tmp_path}/t"
    assert normalize_location("/a//b/") == "/a/b"
    assert normalize_location("//a") == "/a"
    assert normalize_location("/") == "/"
    assert normalize_location("~/t") == f"{tmp_path}/~/t"
    assert normalize_location("a b%20c") == f"{tmp_path}/a b%20c"
    assert normalize_location("a:b") == f"{tmp_path}/a:b"
    assert normalize_location(Path("s3:/b")) == f"{tmp_path}/s3:/b"


def test_file_uris_are_literal_unless_only_the_decoded_path_exists(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "c%20d").mkdir()
    (tmp_path / "c d").mkdir()
    assert normalize_location(f"file:{tmp_path}/a%20b") == f"{tmp_path}/a b"
    assert normalize_location(f"file://{tmp_path}/c%20d/") == f"{tmp_path}/c%20d"
    assert normalize_location(f"file:{tmp_path}/e%20f") == f"{tmp_path}/e%20f"
    assert normalize_location(f"file://{tmp_path}/a b") == f"{tmp_path}/a b"


@pytest.mark.parametrize(
    ("given_uri", "location"),
    [
        ("s3://b/t/", "s3://b/t"),
        ("s3a://b//t/../u", "s3://b/u"),
        ("S3://B/T", "s3://B/T"),
        ("gs://b", "gs://b"),
        ("gs://b/", "gs://b"),
        ("azure://c/t", "az://c/t"),
        ("abfss://c@a.dfs.core.windows.net/t", "abfss://c@a.dfs.core.windows.net/t"),
        ("s3://b/a%20b", "s3://b/a%20b"),
    ],
)
def test_remote_uris(given_uri: str, location: str) -> None:
    assert normalize_location(given_uri) == location


@pytest.mark.parametrize("text", ["", "a\0b", "file://host/x", "s3:///t", "s3:/b/t", "file://"])
def test_unusable_locations(text: str) -> None:
    with pytest.raises(InvalidOperationError):
        normalize_location(text)


@pytest.mark.parametrize("text", ["ftp://name/t", "https://example.org/t"])
def test_unknown_schemes_are_named(text: str) -> None:
    scheme = text.partition(":")[0]
    with pytest.raises(UnsupportedTableError, match=f"scheme '{scheme}'"):
        normalize_location(text)
    with pytest.raises(UnsupportedTableError, match="scheme 'nfs'"):
        store_for("nfs://c/t")


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("hdfs://name:8020/a//b/", "hdfs://name:8020/a/b"),
        ("hdfs:/t", "hdfs:///t"),
        ("dbfs:/t", "dbfs:///t"),
        ("viewfs:///t", "viewfs:///t"),
        ("wasbs://c@a.blob.core.windows.net/t", "wasbs://c@a.blob.core.windows.net/t"),
    ],
)
def test_file_systems_of_hadoop(text: str, location: str) -> None:
    assert normalize_location(text) == location
    assert resolve_file(location, "p=1/f") == f"{location}/p=1/f"
