"""Cost models that tests give to sessions, so that small tables are changed as large ones are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import pytest

from pyspark_delta.spark.conf.cost import COST_MODEL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SetCost: TypeAlias = Callable[..., None]

TASKS = {"driver_files": 0, "driver_rewritten_files": 0}
"""Tasks read, change and rewrite every file, with Arrow."""
SPARK = {"uses_arrow": False}
"""Spark runs every statement."""


def set_cost(session: SparkSession, **limits: int | bool) -> None:
    """Set limits that differ from the defaults for a session; without any, the defaults hold again."""
    if limits:
        session.conf.set(COST_MODEL, json.dumps(limits))
    else:
        session.conf.unset(COST_MODEL)


@pytest.fixture
def cost() -> Iterator[SetCost]:
    """Sets the limits of a session for the length of a test."""
    changed: dict[int, SparkSession] = {}

    def change(session: SparkSession, **limits: int | bool) -> None:
        changed[id(session)] = session
        set_cost(session, **limits)

    yield change
    for session in changed.values():
        set_cost(session)
