"""Choices of files that Spark may take for one another: plans over equal listings share their results."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyspark_delta.actions.columns import DELETION_VECTOR
from pyspark_delta.spark.frames.catalyst.deleted_rows import CHANGES, NUMBERS
from pyspark_delta.spark.frames.catalyst.listings import ChosenListing

VECTOR = {"storage_type": "i", "path_or_inline_dv": "x", "offset": None, "size_in_bytes": 1, "cardinality": 1}


def chosen(version: str, **other: Any) -> ChosenListing:
    values = {"path": "a.parquet", "deletion_vector": None, "size": 3, **other}
    types = {"deletion_vector": DELETION_VECTOR.type}
    columns = {name: pa.array([value], types.get(name)) for name, value in values.items()}
    constants = pa.array([[("_commit_version", version)]], pa.map_(pa.string(), pa.string()))
    return ChosenListing("/table", pa.table({**columns, "partition_values": constants}))


def test_files_are_told_apart_by_their_constants_and_by_the_changes_of_their_rows() -> None:
    marks = [{NUMBERS.name: numbers, CHANGES.name: changes} for numbers in (b"a", b"b") for changes in (b"a", b"b")]
    others = [*marks, {"path": "b.parquet"}, {"deletion_vector": VECTOR}]
    found = [chosen("1"), chosen("2"), *(chosen("1", **other) for other in others)]
    assert len({one.identity for one in found}) == len(found)
    assert chosen("1").identity == chosen("1").identity


def test_the_size_is_that_of_all_files() -> None:
    both = pa.concat_tables([chosen("1").files, chosen("2", size=4).files])
    assert ChosenListing("/table", both).size_in_bytes() == 7
    assert ChosenListing("/table", both.slice(0, 0)).size_in_bytes() == 0
