"""What a change of a table returns."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field


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
        facts = {"version": self.version, **self.metrics}
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{value}</td></tr>"
            for name, value in facts.items()
        )
        return f"<table>{rows}</table>"
