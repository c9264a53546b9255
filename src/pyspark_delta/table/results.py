"""What a change of a table returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark_delta.display import html_facts


@dataclass(frozen=True)
class ChangeResult:
    """The committed version of a change, and its metrics by the names of the table's history.

    `version` is None if nothing was committed: no row changed, or the table already had the application transaction.
    """

    version: int | None
    metrics: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.metrics.items() if value)
        return f"ChangeResult(version={self.version}{', ' if shown else ''}{shown})"

    def _repr_html_(self) -> str:
        return html_facts("ChangeResult", {"version": self.version, **self.metrics})
