"""Checks of the arguments of public methods, before anything else happens.

They raise TypeError and ValueError in the same cases as delta-spark. The message has the argument's name and value.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame


def check_text(name: str, value: object) -> str:
    """Check that the value is a str, and return it. Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is a str, found {_found(value)}.")
    return value


def check_condition(name: str, value: object) -> None:
    """Check that the value is SQL text, a Column, or None. Raises TypeError."""
    if value is not None and not isinstance(value, str | Column):
        raise TypeError(f"{name} is SQL text or a Column, found {_found(value)}.")


def check_source(name: str, value: object) -> None:
    """Check that the value is a DataFrame. Raises TypeError."""
    if not isinstance(value, DataFrame):
        raise TypeError(f"{name} is a DataFrame, found {_found(value)}.")


def check_values(name: str, values: object) -> dict[str, Column | str]:
    """Check the new values of columns, SQL text or Columns by name, and return them as a dict.

    Raises ValueError if there are none, and TypeError for other types.
    """
    if values is None:
        raise ValueError(f"{name} is needed, as in {name}={{'column': 'expression'}}; found None.")
    if not isinstance(values, Mapping):
        raise TypeError(f"{name} is a dict such as {{'column': 'expression'}}, found {_found(values)}.")
    if not values:
        raise ValueError(f"{name} needs at least one column, as in {name}={{'column': 'expression'}}; found none.")
    for column, value in values.items():
        if not isinstance(column, str):
            raise TypeError(f"{name} takes the names of columns as str, found {_found(column)}.")
        if not isinstance(value, str | Column):
            raise TypeError(f"{name} takes SQL text or a Column for '{column}', found {_found(value)}.")
    return dict(values)


def check_protocol_version(name: str, value: object) -> None:
    """Check that the value is an int. Raises ValueError, as delta-spark does."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} is an int, found {_found(value)}.")


def _found(value: object) -> str:
    return f"{type(value).__name__} {value!r}"
