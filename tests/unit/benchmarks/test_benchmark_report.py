from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks import report
from benchmarks.calibration import drift
from benchmarks.model import (
    ARROW,
    FULL,
    OURS,
    QUICK,
    AtMost,
    Goal,
    Growth,
    Measurement,
    Peer,
    Variant,
    Workload,
    dataset,
)
from benchmarks.registry import MODULES, load
from benchmarks.run import spread
from benchmarks.verdicts import Row, judge

_SOME = dataset("log", files=1)


def _row(variant: str, peer: str, seconds: float, **more: Any) -> Row:
    return {"variant": variant, "peer": peer, "seconds": seconds, "cpu_seconds": seconds, "added_mib": 10, **more}


def _workload(*goals: Goal | Growth | AtMost) -> Workload:
    peers = (Peer(OURS, ""), Peer("other", ""), Peer(ARROW, ""), Peer("native", "", against=ARROW))
    return Workload("B0", "Nothing", peers, (Variant("small", _SOME), Variant("large", _SOME, goals=goals)))


@pytest.mark.parametrize(
    ("goal", "met"),
    [
        (Goal("other", 4), True),
        (Goal("other", 4.1), False),
        (Goal("other", 1, "added_mib"), True),
        (Goal("other", 1.1, "added_mib"), False),
        (Goal("native", 0.5), True),
        (Goal("native", 0.6), False),
        (Goal("absent", 1), None),
        (Growth("small", 2), True),
        (Growth("small", 1.5), False),
        (Growth("absent", 2), None),
        (Growth("small", 1.4, peer="other"), True),
        (Growth("small", 1.3, peer="other"), False),
        (Growth("small", 2, peer="native"), None),
        (AtMost(1), True),
        (AtMost(0.9), False),
    ],
)
def test_goals_are_judged_by_medians(goal: Goal | Growth | AtMost, met: bool | None):
    rows = [
        _row("small", OURS, 0.5),
        _row("small", "other", 3.0),
        _row("large", OURS, 1.0),
        _row("large", "other", 4.0),
        _row("large", ARROW, 0.2),
        _row("large", "native", 0.1),
    ]
    (verdict,) = judge(_workload(goal), rows)
    assert verdict.met is met


def test_a_different_answer_meets_no_goal():
    rows = [_row("large", OURS, 1.0), _row("large", "other", 4.0, differs="2, expected 1")]
    (verdict,) = judge(_workload(Goal("other", 1)), rows)
    assert verdict.met is None


@pytest.mark.parametrize(
    ("ratio", "turns", "said"),
    [
        (4.0, [3.1, 5.0], "4, met"),
        (4.0, [2.9, 5.0], "4, met by the median"),
        (2.0, [1.0, 2.9], "2, NOT met"),
        (2.0, [1.0, 3.1], "2, NOT met by the median"),
    ],
)
def test_a_goal_says_whether_every_turn_agrees(ratio: float, turns: list[float], said: str):
    rows = [_row("large", OURS, 1.0), _row("large", "other", ratio, ratios=turns)]
    (verdict,) = judge(_workload(Goal("other", 3)), rows)
    assert str(verdict) == f"other at least 3: {said}"


def test_without_turns_the_extremes_of_all_runs_decide():
    rows = [_row("large", OURS, 1.0, fastest=0.5, slowest=2.0), _row("large", "other", 4.0, fastest=4.0, slowest=4.0)]
    (verdict,) = judge(_workload(Goal("other", 3)), rows)
    assert (verdict.met, verdict.sure) == (True, False)


def test_how_far_the_speed_moved_has_no_direction():
    assert drift(1.0, 1.2) == pytest.approx(drift(1.2, 1.0)) == pytest.approx(0.2)


def test_the_spread_is_that_of_runs_that_took_turns():
    theirs = [Measurement(seconds, 0.0, 0.0) for seconds in (2.0, 6.0, 3.0)]
    ours = [Measurement(seconds, 0.0, 0.0) for seconds in (1.0, 2.0)]
    assert spread(theirs, ours) == [2.0, 3.0]


@pytest.mark.parametrize("name", list(MODULES))
def test_workloads_are_well_formed(name: str):
    workload, quick = load(name, FULL), load(name, QUICK)
    peers = {peer.name for peer in workload.peers}
    variants = {variant.name for variant in workload.variants}
    assert workload.id == name
    assert len(variants) == len(workload.variants) == len(quick.variants)
    for variant in workload.variants:
        assert set(variant.peers) <= peers
        assert {goal.peer for goal in variant.goals if isinstance(goal, Goal)} <= set(variant.peers or peers)
        assert {goal.base for goal in variant.goals if isinstance(goal, Growth)} <= variants
    assert not any(variant.goals for variant in quick.variants)


def test_tables_go_between_the_markers(tmp_path: Path):
    document = tmp_path / "performance.md"
    document.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    workload = load("B1", FULL)
    name = workload.variants[0].name
    rows = [_row(name, OURS, 0.01), _row(name, "deltalake", 0.1, ratio=10.0, ratios=[9.0, 11.5])]
    results = {"machine": {"Python": "3"}, "workloads": {"B1": {"rows": rows, "drift": 0.0}}}
    report.write(document, report.markdown(results, FULL))
    text = document.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert f"| {name} | pyspark-delta | 10.0 | 10.0 | 10 |  |  | deltalake at least 5: 10, met;" in text
    assert "|  | deltalake | 100 | 100 | 10 | 10 | 9 to 11.5 |  |" in text


def test_a_document_without_markers_is_refused(tmp_path: Path):
    document = tmp_path / "performance.md"
    document.write_text("nothing")
    with pytest.raises(ValueError, match="has no"):
        report.write(document, "text")
