"""Cost models that tests give to sessions: they choose the engine, and change small tables as large ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from pyspark_delta.spark.conf.limits import COST_MODEL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SetCost: TypeAlias = Callable[..., None]

TASKS = {"driver_files": 0, "driver_rewritten_files": 0}
"""Tasks read, change and rewrite every file, with Arrow."""
SPARK = {"uses_arrow": False}
"""Spark runs every statement."""
ENGINES: dict[str, dict[str, int | bool]] = {"Arrow in the driver": {}, "Arrow in tasks": {**TASKS}, "Spark": {**SPARK}}
"""What chooses each engine for a small table, by the name that a commit gives the engine."""


def engine_of(location: str) -> str:
    """The engine that ran the newest commit of a table, as it says itself."""
    newest = max(Path(location, "_delta_log").glob("*.json"))
    infos = [
        action["commitInfo"] for action in map(json.loads, newest.read_text().splitlines()) if "commitInfo" in action
    ]
    return str(infos[0].get("operationEngine"))


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
