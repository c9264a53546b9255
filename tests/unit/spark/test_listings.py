"""Choices of files that Spark may take for one another: plans over equal listings share their results."""

from __future__ import annotations

import pyarrow as pa

from pyspark_delta.spark.scan.listings import ChosenListing
from pyspark_delta.spark.scan.marked_rows import CHANGES, NUMBERS


def chosen(version: str, **marks: bytes) -> str:
    constants = pa.array([[("_commit_version", version)]], pa.map_(pa.string(), pa.string()))
    files = {"path": ["a.parquet"], "deletion_vector": pa.nulls(1), "partition_values": constants}
    return ChosenListing("/table", pa.table({**files, **{name: [value] for name, value in marks.items()}})).identity


def test_files_are_told_apart_by_their_constants_and_by_the_changes_of_their_rows() -> None:
    assert chosen("1") == chosen("1")
    marked = [{NUMBERS.name: numbers, CHANGES.name: changes} for numbers in (b"a", b"b") for changes in (b"a", b"b")]
    assert len({chosen("1"), chosen("2"), *(chosen("1", **marks) for marks in marked)}) == 6
