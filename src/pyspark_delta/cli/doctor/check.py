"""One finding of doctor."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Check:
    """A finding. `remedy` is a command or a sentence; empty if nothing has to be done.

    `failed` keeps something from working, `warning` may surprise, `optional` is an extra that is not installed.
    """

    name: str
    status: Literal["ok", "failed", "warning", "optional"]
    found: str
    remedy: str = ""

    def as_row(self) -> tuple[str, str, str, str]:
        """Return the finding as a row of a table."""
        return self.status, self.name, self.found, self.remedy

    def as_dict(self) -> dict[str, str]:
        """Return the finding for JSON."""
        return asdict(self)
