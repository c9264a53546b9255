"""Implementations for tests of the benchmark harness, which runs them in processes of their own."""

from __future__ import annotations

from benchmarks.model import Prepared


def steady(location: str, value: int = 1) -> Prepared:
    return Prepared(lambda: value, lambda result: [result, location])


def uncertain(location: str, value: int = 1) -> Prepared:
    """Knows half of the answer."""
    return Prepared(lambda: value, lambda result: [result, None])


def wrong(location: str, value: int = 1) -> Prepared:
    return Prepared(lambda: value + 1, lambda result: [result, location])


def failing(location: str, value: int = 1) -> Prepared:
    if value > 1:
        raise ValueError("values above 1 are too large")
    return steady(location, value)
