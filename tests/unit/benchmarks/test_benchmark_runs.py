from __future__ import annotations

import sys

import pytest
from benchmarks.__main__ import problems
from benchmarks.model import OURS, Dataset, Goal, Peer, Variant, Workload, dataset
from benchmarks.run import agree, run_workload
from benchmarks.verdicts import Row

_MODULE = "tests.unit.benchmarks.stand_ins"
_SOME = dataset("log", files=1)


def _run(*peers: Peer, values: tuple[int, ...] = (1,)) -> list[Row]:
    variants = tuple(
        Variant(f"value {value}", _SOME, {"value": value}, (Goal("other", 0),), repetitions=2) for value in values
    )
    workload = Workload("B0", "Nothing", peers, variants)
    return run_workload(workload, _locate, {"main": sys.executable}, lambda line: None)


def _locate(made_of: Dataset) -> str:
    return f"/{made_of.name}"


def test_each_repetition_is_a_process_and_the_peer_has_a_ratio_to_ours():
    ours, other = _run(Peer(OURS, f"{_MODULE}:steady"), Peer("other", f"{_MODULE}:steady"))
    assert ours["runs"] == other["runs"] == 2
    assert ours["answer"] == other["answer"] == [1, "/log-files_1"]
    assert other["ratio"] == pytest.approx(other["seconds"] / ours["seconds"])
    assert "ratio" not in ours


def test_a_session_runs_all_variants_in_one_process_and_repeats_after_warming_up():
    rows = _run(Peer(OURS, f"{_MODULE}:steady", inner=3, session=True), values=(1, 2))
    assert [(row["variant"], row["runs"], row["answer"][0]) for row in rows] == [("value 1", 3, 1), ("value 2", 3, 2)]


def test_what_takes_long_is_not_repeated(monkeypatch: pytest.MonkeyPatch):
    peers = [Peer(name, f"{_MODULE}:steady", inner=2, processes=3, session=True) for name in (OURS, "other")]
    assert [row["runs"] for row in _run(*peers)] == [6, 6]
    monkeypatch.setattr("benchmarks.run.LONG_SECONDS", 0)
    assert [row["runs"] for row in _run(*peers)] == [2, 2]


def test_a_different_answer_is_a_problem():
    ours, uncertain, wrong, bound = _run(
        Peer(OURS, f"{_MODULE}:steady"),
        Peer("uncertain", f"{_MODULE}:uncertain"),
        Peer("wrong", f"{_MODULE}:wrong"),
        Peer("lower bound", f"{_MODULE}:wrong", checked=False),
    )
    assert "differs" not in ours | uncertain | bound
    assert wrong["differs"].startswith("[2,")
    result = {"rows": [ours, wrong], "drift": 0.0}
    assert [line for line in problems(Workload("B0", "Nothing", (), ()), result) if "another ANSWER" in line]


def test_a_failing_case_leaves_the_others_alone():
    peers = Peer(OURS, f"{_MODULE}:steady", session=True), Peer("other", f"{_MODULE}:failing", session=True)
    rows = _run(*peers, values=(1, 2))
    others = [row for row in rows if row["peer"] == "other"]
    assert "seconds" in others[0]
    assert others[1]["skipped"] == "ValueError: values above 1 are too large"
    assert "seconds" not in others[1]


def test_a_peer_without_its_environment_is_left_out():
    _, other = _run(Peer(OURS, f"{_MODULE}:steady"), Peer("other", f"{_MODULE}:steady", "absent"))
    assert other["skipped"] == "no environment 'absent'"


@pytest.mark.parametrize(
    ("answer", "expected", "equal"),
    [
        ([1, [2, None]], [1, [2, 3]], True),
        ([1, 2], [1, 3], False),
        ([1], [1, 2], False),
        (1, 1, True),
        (1, "1", False),
    ],
)
def test_answers_agree_where_both_tell(answer: object, expected: object, equal: bool):
    assert agree(answer, expected) is equal
