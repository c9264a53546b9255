"""Wrong arguments are named, with what was found, before anything else happens."""

from __future__ import annotations

import pytest

from pyspark_delta.spark.conf import arguments


@pytest.mark.parametrize(
    ("values", "error", "said"),
    [
        (None, ValueError, "set is needed, .* found None"),
        ({}, ValueError, "set needs at least one column"),
        ("a = 1", TypeError, r"set is a dict .*, found str 'a = 1'"),
        ({1: "x"}, TypeError, "set takes the names of columns as str, found int 1"),
        ({"a": 1}, TypeError, "set takes SQL text or a Column for 'a', found int 1"),
        ({"a": None}, TypeError, "set takes SQL text or a Column for 'a', found NoneType None"),
    ],
    ids=str,
)
def test_values_of_columns(values: object, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        arguments.check_values("set", values)


def test_right_values_pass() -> None:
    assert arguments.check_values("set", {"a": "b + 1"}) == {"a": "b + 1"}
    arguments.check_condition("condition", "a = 1")
    arguments.check_condition("condition", None)
    assert arguments.check_text("path", "/t") == "/t"


def test_conditions_sources_texts_and_versions() -> None:
    with pytest.raises(TypeError, match="condition is SQL text or a Column, found bool True"):
        arguments.check_condition("condition", True)
    with pytest.raises(TypeError, match="source is a DataFrame, found str 's'"):
        arguments.check_source("source", "s")
    with pytest.raises(TypeError, match="path is a str, found NoneType None"):
        arguments.check_text("path", None)
    for version in ("2", 2.0, True, None):
        with pytest.raises(ValueError, match=f"readerVersion is an int, found {type(version).__name__}"):
            arguments.check_protocol_version("readerVersion", version)
