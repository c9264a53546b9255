"""Damaged tables through Spark's doors: the Python Data Source, and the native scan of an enabled session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.faults.damage import DAMAGES, ROWS, matches, sound
from tests.lengths import FULL

from pyspark_delta import errors
from pyspark_delta.errors import DataFileError, DeltaError
from pyspark_delta.spark.session.enable import enable

# Where the damage shows differs by door: in the log, in the schema, in paths, in data files, in deletion vectors. At
# the usual length, the Python Data Source, which reads the log as the native scan does, is asked for one commit, one
# checkpoint and one vector.
BOTH = (
    "log_is_empty",
    "commit_is_cut_off",
    "schema_names_an_unknown_type",
    "columns_differ_only_in_case",
    "checkpoint_is_cut_off",
    "path_climbs_out",
    "vector_file_is_missing",
    "vector_checksum_is_wrong",
    "vector_cardinality_is_wrong",
    "vector_of_few_bytes_marks_many_rows",
)
SOURCE = (
    "data_file_is_missing",
    "data_file_is_cut_off",
    "data_file_holds_another_type",
    "vector_marks_rows_beyond_the_file",
)
NATIVE = (
    "commit_in_the_middle_is_missing",
    "bytes_are_not_utf8",
    "partition_value_of_another_type",
    "partition_column_outside_the_schema",
    "reader_feature_of_the_future",
    "sidecar_is_missing",
    "path_climbs_out_encoded",
    "vector_file_is_cut_off",
    "vector_path_climbs_out",
)
# Data files are read by Spark in the native scan: the error is Spark's own, and names the file.
READ_BY_SPARK = (
    "data_file_is_missing",
    "data_file_is_cut_off",
    "data_file_is_text",
    "data_file_is_empty",
    "data_pages_are_scrambled",
    "data_file_holds_another_type",
    "data_file_holds_a_wider_type",
    # PySpark 3.5 fails with a ClassCastException, which names no file.
    pytest.param("data_file_holds_a_struct_for_a_number", marks=pytest.mark.since("4.0")),
)
BY_NAME = {damage.name: damage for damage in DAMAGES}


@pytest.fixture(scope="module")
def native(plain_spark: SparkSession) -> SparkSession:
    """A session of its own that pyspark-delta is enabled in."""
    return enable(plain_spark.newSession())


def rows(spark: SparkSession, path: Path) -> list[tuple[Any, ...]]:
    """The rows by id."""
    return sorted((tuple(row) for row in spark.read.format("delta").load(str(path)).collect()), key=lambda row: row[0])


def check(read: Callable[[], Any], tells: tuple[str, ...]) -> None:
    """Reading raises a DeltaError that tells the damage."""
    with pytest.raises(DeltaError) as caught:
        read()
    message = caught.value.message
    assert [pattern for pattern in tells if not matches(pattern, message)] == [], message


@pytest.mark.since("4.0")  # for the Python Data Source
def test_sound_table_is_read_through_both_doors(
    plain_spark: SparkSession, native: SparkSession, tmp_path: Path
) -> None:
    path = sound(tmp_path / "damaged").path
    assert rows(plain_spark, path) == ROWS
    assert rows(native, path) == ROWS


@pytest.mark.since("4.0")
@pytest.mark.parametrize("name", BOTH + SOURCE if FULL else BOTH[1::3] + SOURCE)
def test_python_data_source_tells_the_damage(plain_spark: SparkSession, tmp_path: Path, name: str) -> None:
    table = sound(tmp_path / "damaged")
    BY_NAME[name].apply(table)

    def read() -> None:
        with errors.translate():
            rows(plain_spark, table.path)

    check(read, BY_NAME[name].tells)


@pytest.mark.parametrize("name", BOTH + NATIVE)
def test_native_scan_tells_the_damage(native: SparkSession, tmp_path: Path, name: str) -> None:
    table = sound(tmp_path / "damaged")
    BY_NAME[name].apply(table)

    def read() -> None:
        with errors.translate():
            rows(native, table.path)

    check(read, BY_NAME[name].tells)


@pytest.mark.parametrize("name", READ_BY_SPARK)
def test_native_scan_names_the_data_file(native: SparkSession, tmp_path: Path, name: str) -> None:
    table = sound(tmp_path / "damaged")
    BY_NAME[name].apply(table)
    with pytest.raises(DataFileError, match=r"second\.parquet' of version 1 "):
        rows(native, table.path)
