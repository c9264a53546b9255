"""Choices of files that Spark may take for one another: plans over equal listings share their results."""

from __future__ import annotations

import pyarrow as pa

from pyspark_delta.spark.scan.listings import ChosenListing


def chosen(version: str, *, selects: bool = False) -> str:
    constants = pa.array([[("_commit_version", version)]], pa.map_(pa.string(), pa.string()))
    files = {"path": ["a.parquet"], "deletion_vector": pa.nulls(1), "selects_rows": [selects]}
    return ChosenListing("/table", pa.table({**files, "partition_values": constants})).identity


def test_files_are_told_apart_by_their_constants_and_by_what_their_vectors_mean() -> None:
    assert chosen("1") == chosen("1")
    assert len({chosen("1"), chosen("2"), chosen("1", selects=True)}) == 3
