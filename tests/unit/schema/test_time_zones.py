"""Local times of offsets, which Arrow knows as zones only from release 22 on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pyspark_delta.schema.time_zones import instants, local_times

HOUR = 3_600_000_000  # microseconds


@pytest.mark.parametrize(
    ("time_zone", "hours"),
    [("+05:00", 5), ("-3", -3), ("UTC+0530", 5.5), ("GMT-18:00", -18), ("Z", 0), ("Asia/Kolkata", 5.5)],
)
def test_offsets_in_the_spellings_of_spark(time_zone: str, hours: float) -> None:
    noon = np.array([12 * HOUR])
    assert instants(noon, time_zone).tolist() == [(12 - hours) * HOUR]
    assert local_times(noon, time_zone).tolist() == [(12 + hours) * HOUR]


@pytest.mark.parametrize("time_zone", ["+05:60", "Mars/Olympus"])
def test_what_is_no_zone(time_zone: str) -> None:
    with pytest.raises(pa.ArrowInvalid):
        instants(np.array([0]), time_zone)
