"""Whether measurements meet the goals of their workload."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from benchmarks.model import ARROW, OURS, AtMost, Goal, Growth, Variant, Workload

Row: TypeAlias = dict[str, Any]  # a median of one peer in one variant; keys as in results.json

_MEASURES = {"seconds": "", "cpu_seconds": " in CPU", "added_mib": " in memory"}


@dataclass(frozen=True)
class Verdict:
    """A goal of a variant, what was found, and whether that is enough; `met` is None when it could not be measured.

    `sure` says that every single turn agrees with the median.
    """

    variant: str
    goal: str
    found: str
    met: bool | None
    sure: bool = True

    def __str__(self) -> str:
        if self.met is None:
            return f"{self.goal}: not measured"
        return f"{self.goal}: {self.found}, {'met' if self.met else 'NOT met'}{'' if self.sure else ' by the median'}"


def judge(workload: Workload, rows: Sequence[Row]) -> list[Verdict]:
    """The verdict on every goal of a workload."""
    return [_verdict(workload, variant, goal, rows) for variant in workload.variants for goal in variant.goals]


def _verdict(workload: Workload, variant: Variant, goal: Goal | Growth | AtMost, rows: Sequence[Row]) -> Verdict:
    if isinstance(goal, Goal):
        against = next((p.against for p in workload.peers if p.name == goal.peer), OURS)
        text = f"{goal.peer}{_MEASURES[goal.measure]} at least {goal.ratio:.3g}"
        text += f", or {goal.slack * 1000:g} ms" if goal.slack else ""
        theirs = _value(rows, variant.name, [goal.peer], goal.measure)
        ours = _value(rows, variant.name, [against], goal.measure)
        if theirs is None or ours is None:
            return Verdict(variant.name, text, "", None)
        if goal.slack and ours - theirs <= goal.slack:
            return Verdict(variant.name, text, f"{(ours - theirs) * 1000:.3g} ms more", True)
        ratio = theirs / max(ours, 1e-9)
        turns = _turns(rows, variant.name, goal.peer, against) if goal.measure == "seconds" else []
        sure = len({turn >= goal.ratio for turn in (*turns, ratio)}) == 1
        return Verdict(variant.name, text, f"{ratio:.3g}", ratio >= goal.ratio, sure)
    whose = [goal.peer] if isinstance(goal, Growth) and goal.peer else [OURS, ARROW]
    seconds = _value(rows, variant.name, whose, "seconds")
    if isinstance(goal, AtMost):
        text = f"at most {goal.seconds:g} s"
        if seconds is None:
            return Verdict(variant.name, text, "", None)
        return Verdict(variant.name, text, f"{seconds:.3g} s", seconds <= goal.seconds)
    text = f"{goal.peer}{' ' if goal.peer else ''}at most {goal.factor:g} times the time of '{goal.base}'"
    base = _value(rows, goal.base, whose, "seconds")
    if seconds is None or base is None:
        return Verdict(variant.name, text, "", None)
    return Verdict(variant.name, text, f"{seconds / base:.2f}", seconds <= base * goal.factor + goal.slack)


def _turns(rows: Sequence[Row], variant: str, peer: str, against: str) -> list[float]:
    """The lowest and the highest ratio of a peer's turns; without turns, of any two runs."""
    theirs, ours = (
        next((r for r in rows if r["variant"] == variant and r["peer"] == name), {}) for name in (peer, against)
    )
    if "ratios" in theirs:
        return list(theirs["ratios"])
    if "fastest" in theirs and "fastest" in ours:
        return [theirs["fastest"] / ours["slowest"], theirs["slowest"] / ours["fastest"]]
    return []


def _value(rows: Iterable[Row], variant: str, peers: Sequence[str], measure: str) -> float | None:
    for peer in peers:
        for row in rows:
            if row["variant"] == variant and row["peer"] == peer and measure in row and "differs" not in row:
                return float(row[measure])
    return None
