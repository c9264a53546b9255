from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.earlier import EARLIER, against_earlier, check_out
from benchmarks.model import ARROW, OURS, Peer, Variant, Workload, dataset
from benchmarks.run import run_workload

_FUNCTION = "stand_in:answer"
_STAND_IN = """
from benchmarks.model import Prepared

def answer(location):
    return Prepared(lambda: {value})
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two commits, whose stand-in answers 1 and then 2."""
    root = tmp_path / "repository"
    root.mkdir()
    git = ["git", "-C", str(root), "-c", "user.name=test", "-c", "user.email=test@localhost"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    source = Path(__file__).parents[3] / "benchmarks"
    (root / "benchmarks").mkdir()
    for name in ("__init__.py", "case.py", "model.py", "processes.py"):
        (root / "benchmarks" / name).write_bytes((source / name).read_bytes())
    for value in (1, 2):
        (root / "stand_in.py").write_text(_STAND_IN.format(value=value))
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "--quiet", "-m", f"answer {value}"], check=True)
    return root


def test_an_earlier_commit_runs_with_its_own_code(repository: Path, tmp_path: Path):
    root = check_out(repository, "HEAD~1", tmp_path / "earlier")
    assert check_out(repository, "HEAD~1", tmp_path / "earlier") == root
    now = Peer(OURS, _FUNCTION, root=str(repository))
    workload = Workload("B0", "Nothing", (now,), (Variant("case", dataset("log")),))
    rows = run_workload(against_earlier(workload, root, 2), lambda _: "/", {"main": sys.executable}, lambda _: None)
    assert [(row["peer"], row["answer"], row["runs"]) for row in rows] == [(OURS, 2, 5), (EARLIER + OURS, 1, 5)]
    assert "differs" in rows[1]
    assert rows[1]["ratio"] > 0


def test_only_our_implementations_are_compared():
    peers = (Peer(OURS, _FUNCTION, session=True), Peer(ARROW, _FUNCTION), Peer("other", _FUNCTION))
    variants = tuple(
        Variant(name, dataset("log"), peers=who)
        for name, who in (("all", ()), ("one", (ARROW, "other")), ("none", ("other",)))
    )
    compared = against_earlier(Workload("B0", "Nothing", peers, variants), Path("/earlier"), 2)
    assert [peer.name for peer in compared.peers] == [OURS, EARLIER + OURS, ARROW, EARLIER + ARROW]
    assert [(v.name, v.peers) for v in compared.variants] == [
        ("all", ()),
        ("one", (ARROW, EARLIER + ARROW, "other", EARLIER + "other")),
    ]
