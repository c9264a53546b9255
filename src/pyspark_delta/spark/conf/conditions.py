"""The error condition of an exception of PySpark, which PySpark 3.5 calls its error class."""

from __future__ import annotations

from typing import Any


def condition_of(error: Any) -> str:
    """Return the error condition of a `PySparkException`; empty if it has none."""
    ask = getattr(error, "getCondition", None) or error.getErrorClass
    return ask() or ""
