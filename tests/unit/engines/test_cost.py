"""Cost models are read from settings, and refuse what they do not know."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

from pyspark_delta.engines.cost import CostModel
from pyspark_delta.errors import InvalidOptionError


def files(*sizes: int) -> pa.Table:
    return pa.table({"size": pa.array(sizes, pa.int64())})


def test_limits_that_are_given_replace_the_defaults() -> None:
    parsed = CostModel.parse('{"driver_files": 3, "uses_arrow": false}')
    assert parsed == CostModel(driver_files=3, uses_arrow=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("driver_files=3", "JSON object"),
        ("[1]", "JSON object"),
        ('{"driver_file": 3}', "no limit 'driver_file'.*driver_files"),
        ('{"driver_files": -1}', "whole number from 0 on, found -1"),
        ('{"driver_files": true}', "whole number from 0 on, found True"),
        ('{"uses_arrow": 1}', "true or false, found 1"),
    ],
)
def test_a_model_that_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        CostModel.parse(text)


def test_the_driver_reads_few_files_of_few_bytes() -> None:
    model = CostModel(driver_files=2, driver_local_bytes=10, driver_remote_bytes=5)
    local = 10 * (os.cpu_count() or 1)
    assert model.reads_in_driver("/t", files(local // 2, local // 2))
    assert not model.reads_in_driver("/t", files(local, 1))
    assert model.reads_in_driver("/t", files(local, local), 0.5)
    assert not model.reads_in_driver("/t", files(1, 1, 1))
    assert model.reads_in_driver("s3://bucket/t", files(5))
    assert not model.reads_in_driver("s3://bucket/t", files(6))
    assert model.reads_in_driver("/t", files())


def test_the_driver_rewrites_few_small_files() -> None:
    model = CostModel(driver_rewritten_files=2, driver_rewritten_bytes=10)
    assert model.rewrites_in_driver(files(5, 5))
    assert not model.rewrites_in_driver(files(5, 6))
    assert not model.rewrites_in_driver(files(1, 1, 1))


def test_a_source_is_collected_by_rows_and_by_values() -> None:
    model = CostModel(source_rows=100, source_values=300)
    assert [model.collected_rows(columns) for columns in (0, 1, 3, 4, 300, 301)] == [100, 100, 100, 75, 1, 0]
