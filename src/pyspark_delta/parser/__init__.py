"""Text of SQL statements to frozen values, without Spark."""

from __future__ import annotations

from pyspark_delta.parser.anything import Statement, parse_any, split
from pyspark_delta.parser.delta import parse

__all__ = ["Statement", "parse", "parse_any", "split"]
