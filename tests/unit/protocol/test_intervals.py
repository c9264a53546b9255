"""Intervals: what is read, what is refused, and that writing one gives it back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_delta.protocol.intervals import format_interval, parse_interval


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("interval 1 week", timedelta(weeks=1)),
        ("interval 30 days", timedelta(days=30)),
        ("INTERVAL 24 HOURS", timedelta(hours=24)),
        ("7 days", timedelta(days=7)),
        ("interval '2' days", timedelta(days=2)),
        ("  interval 1 day 2 hours  3 minutes ", timedelta(days=1, hours=2, minutes=3)),
        ("interval 1.5 seconds", timedelta(milliseconds=1500)),
        ("interval 5 milliseconds 7 microseconds", timedelta(microseconds=5007)),
        ("interval 0 days", timedelta()),
        ("interval 2 days -1 hours", timedelta(hours=47)),
    ],
)
def test_reads(text: str, expected: timedelta) -> None:
    assert parse_interval(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not an interval"),
        ("interval", "not an interval"),
        ("30", "not an interval"),
        ("interval days", "not an interval"),
        ("interval 1 month", "no fixed length"),
        ("interval 2 years", "no fixed length"),
        ("interval 3 fortnights", "unit 'fortnights'"),
        ("interval -1 days", "negative"),
        ("interval 1 day and more", "not an interval"),
    ],
)
def test_refuses_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_interval(text)


@given(st.timedeltas(min_value=timedelta(), max_value=timedelta(days=10_000_000)))
def test_what_is_written_is_read_back(value: timedelta) -> None:
    assert parse_interval(format_interval(value)) == value
