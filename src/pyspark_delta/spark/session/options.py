"""Options that a user gives to a reader or writer, one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pyspark.sql.utils import to_str


class GivenOptions:
    """Options in the order in which they were given; keys are case-insensitive, and the last value counts."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[str, str]] = {}

    def add(self, key: str, value: Any) -> None:
        if value is not None:
            self._given[key.lower()] = (key, cast(str, to_str(value)))

    def items(self, more: Mapping[str, Any]) -> dict[str, str]:
        """Return all options, overridden by `more`."""
        both = GivenOptions()
        both._given = dict(self._given)
        for key, value in more.items():
            both.add(key, value)
        return dict(both._given.values())
