"""Whether a write is optimized: by its option, the session and the table, with delta-spark and here."""

from __future__ import annotations

from typing import NamedTuple

SETTING = "spark.databricks.delta.optimizeWrite.enabled"
PROPERTY = "delta.autoOptimize.optimizeWrite"
TASKS, PARTITIONS = 4, 3
ROWS = f"select id, id % {PARTITIONS} as p from range(400)"


class Case(NamedTuple):
    """What the option, the session and the property say, None if nothing, and what follows."""

    option: str | None
    session: str | None
    table: str | None
    is_optimized: bool

    @property
    def files(self) -> int:
        """The files of `ROWS` in `TASKS` tasks, written to a partitioned table."""
        return PARTITIONS if self.is_optimized else PARTITIONS * TASKS


CASES = (
    Case(None, None, "true", True),
    Case(None, None, "false", False),
    Case(None, "false", "true", False),
    Case(None, "true", "false", True),
    Case("false", "true", "true", False),
    Case("true", "false", "false", True),
)
