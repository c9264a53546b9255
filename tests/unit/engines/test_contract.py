"""Engines are asked in order, and only an answer makes a statement ask the next one."""

from __future__ import annotations

import logging

import pytest

from pyspark_delta.engines.contract import CannotRun, Done, EngineDeclined, answer, first_done
from pyspark_delta.errors import (
    ComputationError,
    ConstraintViolationError,
    InvalidOperationError,
    InvalidPredicateError,
)


def done(value: int) -> Done[int]:
    return Done(value, "Spark")


def test_the_first_engine_that_can_runs(caplog: pytest.LogCaptureFixture) -> None:
    engines = [("Arrow", CannotRun("the condition is not exact")), ("Spark", done(1)), ("other", done(2))]
    with caplog.at_level(logging.INFO, "pyspark_delta"):
        found = first_done("DELETE", engines, lambda engine: engine)
    assert (found.value, found.engine) == (1, "Spark")
    assert found.reason == "Arrow: the condition is not exact"
    assert caplog.messages == ["DELETE: Spark (Arrow: the condition is not exact)"]


def test_the_engines_after_it_are_not_asked() -> None:
    asked: list[int] = []

    def ask(engine: int) -> Done[int]:
        asked.append(engine)
        return done(engine)

    assert first_done("DELETE", [("a", 1), ("b", 2)], ask).reason == ""
    assert asked == [1]


@pytest.mark.parametrize("error", [EngineDeclined("too many rows."), ComputationError("1 / 0")])
def test_what_arrow_does_not_compute_is_an_answer(error: Exception) -> None:
    def run() -> Done[int]:
        raise error

    found = answer(run)
    assert isinstance(found, CannotRun)
    assert str(error.args[0]).rstrip(".") in found.reason


@pytest.mark.parametrize("error", [InvalidPredicateError("no column"), ConstraintViolationError("n > 0"), OSError()])
def test_a_fault_ends_the_statement(error: Exception) -> None:
    def run() -> Done[int]:
        raise error

    with pytest.raises(type(error)):
        answer(run)


def test_the_reasons_are_named_where_no_engine_runs() -> None:
    engines = [("Arrow", CannotRun("the condition is not exact")), ("other", CannotRun("too many rows"))]
    with pytest.raises(InvalidOperationError, match="Arrow: the condition is not exact; other: too many rows") as error:
        first_done("DELETE", engines, lambda engine: engine)
    assert error.value.facts["reasons"] == {"Arrow": "the condition is not exact", "other": "too many rows"}
