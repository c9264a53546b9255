"""Lines of commit files: what was encoded is decoded again, and is what a JSON encoder would have written."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.actions.decode import decode_action
from pyspark_delta.actions.encode import encode_action
from pyspark_delta.actions.encode_files import encode_adds, encode_removes
from pyspark_delta.actions.model import AddFile, CommitInfo, DomainMetadata, Metadata, Protocol, SetTransaction

_TEXT = st.text(alphabet=st.characters(blacklist_categories=["Cs"]), max_size=8)
_LONG = st.integers(0, 2**63 - 1)
_VECTOR = st.fixed_dictionaries(
    {
        "storage_type": st.sampled_from(["u", "i", "p"]),
        "path_or_inline_dv": _TEXT,
        "offset": st.none() | st.integers(0, 2**31 - 1),
        "size_in_bytes": st.integers(0, 2**31 - 1),
        "cardinality": _LONG,
    }
)
_MAP = st.dictionaries(_TEXT, st.none() | _TEXT, max_size=3)
_FILE = st.fixed_dictionaries(
    {
        "path": _TEXT,
        "partition_values": _MAP,
        "size": _LONG,
        "modification_time": _LONG,
        "stats": st.none() | _TEXT,
        "deletion_vector": st.none() | _VECTOR,
        "base_row_id": st.none() | _LONG,
        "default_row_commit_version": st.none() | _LONG,
        "tags": st.none() | _MAP,
        "clustering_provider": st.none() | _TEXT,
    }
)


def columns(files: list[dict[str, Any]]) -> pa.Table:
    rows = [{**f, "partition_values": list(f["partition_values"].items())} for f in files]
    for row in rows:
        row["tags"] = None if row["tags"] is None else list(row["tags"].items())
    return pa.Table.from_pylist(rows, pa.schema(FILE_FIELDS))


@given(files=st.lists(_FILE, max_size=4), start=st.integers(0, 2))
def test_c138_c142_adds_are_read_back(files: list[dict[str, Any]], start: int) -> None:
    table = columns(files).slice(start)
    text = b"".join(encode_adds(table, data_change=True))
    assert text.count(b"\n") == max(0, len(files) - start)
    for line, file in zip(text.split(b"\n"), files[start:], strict=False):
        action = decode_action(json.loads(line), path="x", line=1)
        assert isinstance(action, AddFile)
        assert action.path == file["path"]
        assert action.partition_values == file["partition_values"]
        assert (action.size, action.modification_time, action.data_change) == (
            file["size"],
            file["modification_time"],
            True,
        )
        assert action.stats == file["stats"]
        assert (action.tags or None) == (file["tags"] or None)
        assert action.base_row_id == file["base_row_id"]
        assert action.default_row_commit_version == file["default_row_commit_version"]
        assert action.clustering_provider == file["clustering_provider"]
        expected = file["deletion_vector"]
        if expected is None:
            assert action.deletion_vector is None
        else:
            assert action.deletion_vector is not None
            assert {name: getattr(action.deletion_vector, name) for name in expected} == expected


@given(file=_FILE)
def test_c153_c161_a_remove_has_the_key_of_its_add(file: dict[str, Any]) -> None:
    table = columns([file])
    [line] = b"".join(encode_removes(table, data_change=False, deletion_timestamp=5)).split(b"\n")[:-1]
    [added] = b"".join(encode_adds(table, data_change=False)).split(b"\n")[:-1]
    remove, add = json.loads(line)["remove"], json.loads(added)["add"]
    for key in ("path", "partitionValues", "size", "deletionVector", "baseRowId", "defaultRowCommitVersion"):
        assert remove.get(key) == add.get(key)
    assert (remove["deletionTimestamp"], remove["dataChange"], remove["extendedFileMetadata"]) == (5, False, True)
    assert "stats" not in remove


def test_absent_columns_are_left_out() -> None:
    table = columns(
        [{**dict.fromkeys(pa.schema(FILE_FIELDS).names), "path": "a", "partition_values": {}, "size": 1}]
    ).select(["path", "partition_values", "size"])
    table = table.append_column("modification_time", pa.array([2], pa.int64()))
    [line] = b"".join(encode_adds(table, data_change=True)).splitlines()
    assert json.loads(line) == {
        "add": {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 2, "dataChange": True}
    }


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (
            Protocol(min_reader_version=1, min_writer_version=2),
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        ),
        (
            Protocol(
                min_reader_version=3,
                min_writer_version=7,
                reader_features=frozenset(["b", "a"]),
                writer_features=frozenset(),
            ),
            {
                "protocol": {
                    "minReaderVersion": 3,
                    "minWriterVersion": 7,
                    "readerFeatures": ["a", "b"],
                    "writerFeatures": [],
                }
            },
        ),
        (
            Metadata(id="i", schema_string="{}", partition_columns=("p",), configuration={"k": "v"}, created_time=7),
            {
                "metaData": {
                    "id": "i",
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": "{}",
                    "partitionColumns": ["p"],
                    "configuration": {"k": "v"},
                    "createdTime": 7,
                }
            },
        ),
        (SetTransaction(app_id="a", version=3), {"txn": {"appId": "a", "version": 3}}),
        (
            DomainMetadata(domain="d", configuration="{}", removed=True),
            {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": True}},
        ),
        (CommitInfo(values={"operation": "WRITE"}), {"commitInfo": {"operation": "WRITE"}}),
    ],
)
def test_c130_c177_c184_c192_single_actions(action: Any, expected: dict[str, Any]) -> None:
    line = encode_action(action)
    assert b"\n" not in line
    assert json.loads(line) == expected
    if not isinstance(action, CommitInfo):
        assert decode_action(json.loads(line), path="x", line=1) == action
