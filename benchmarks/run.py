"""Runs workloads: peers interleaved in fresh processes, medians and ratios, and a check that their answers agree."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.case import MARKER
from benchmarks.model import OURS, Dataset, Measurement, Peer, Variant, Workload
from benchmarks.verdicts import Row

ROOT = Path(__file__).parents[1]
TIMEOUT_SECONDS = 300  # of each variant in a process
LONG_SECONDS = 20  # what takes a peer that long gets no second process
Locate = Callable[[Dataset], str]


def run_workload(
    workload: Workload, locate: Locate, environments: Mapping[str, str], report: Callable[[str], None]
) -> list[Row]:
    """Run all variants of one workload, its peers in turn, and return a row per variant and peer."""
    outcomes = Outcomes()
    for variant in workload.variants:
        peers = [peer for peer in taking_part(workload, variant) if not peer.session]
        for repetition in range(max([p.processes or variant.repetitions for p in peers], default=0)):
            for peer in peers:
                if repetition < (peer.processes or variant.repetitions):
                    run_peer(peer, [variant], locate, environments, outcomes)
        if peers:
            report(f"  {workload.id} {variant.name}: {outcomes.brief(variant, peers)}")
    sessions = [peer for peer in workload.peers if peer.session]
    for repetition in range(max([p.processes or 1 for p in sessions], default=0)):
        for peer in sessions:
            variants = [variant for variant in workload.variants if peer in taking_part(workload, variant)]
            if repetition < (peer.processes or 1):
                run_peer(peer, variants, locate, environments, outcomes)
                for variant in variants:
                    report(f"  {workload.id} {variant.name}: {outcomes.brief(variant, [peer])}")
    return [row for v in workload.variants for row in make_rows(workload, v, taking_part(workload, v), outcomes)]


def taking_part(workload: Workload, variant: Variant) -> list[Peer]:
    """The peers that run a variant."""
    return [peer for peer in workload.peers if not variant.peers or peer.name in variant.peers]


class Outcomes:
    """What was measured, and what failed, by variant and peer."""

    def __init__(self) -> None:
        self.measured: dict[tuple[str, str], list[Measurement]] = defaultdict(list)
        self.skipped: dict[tuple[str, str], str] = {}

    def wants_more(self, variant: str, peer: str) -> bool:
        """Whether another process of the peer is worth its time."""
        key = variant, peer
        return key not in self.skipped and all(run.seconds < LONG_SECONDS for run in self.measured[key])

    def brief(self, variant: Variant, peers: Sequence[Peer]) -> str:
        """The medians so far, in one line."""
        parts = []
        for peer in peers:
            key = variant.name, peer.name
            if self.measured[key]:
                parts.append(f"{peer.name} {statistics.median(r.seconds for r in self.measured[key]) * 1000:.1f} ms")
            if key in self.skipped:
                parts.append(f"{peer.name} left out: {self.skipped[key]}")
        return ", ".join(parts)


def run_peer(
    peer: Peer, variants: Sequence[Variant], locate: Locate, environments: Mapping[str, str], outcomes: Outcomes
) -> None:
    """One fresh process of one peer for some variants; those that failed or took long before are left out."""
    variants = [variant for variant in variants if outcomes.wants_more(variant.name, peer.name)]
    if not variants:
        return
    python = environments.get(peer.environment)
    if python is None:
        outcomes.skipped |= {(v.name, peer.name): f"no environment '{peer.environment}'" for v in variants}
        return
    cases = json.dumps([arguments_of(variant, locate) for variant in variants])
    root = Path(peer.root) if peer.root else ROOT
    found, reason = run_process(python, [peer.function, cases, str(peer.inner)], TIMEOUT_SECONDS * len(variants), root)
    for number, variant in enumerate(variants):
        outcome = found.get(number, {"error": reason})
        if "error" in outcome:
            outcomes.skipped[variant.name, peer.name] = " ".join(str(outcome["error"]).split())[:300]
        else:
            outcomes.measured[variant.name, peer.name] += [Measurement(**run) for run in outcome["runs"]]


def arguments_of(variant: Variant, locate: Locate) -> dict[str, Any]:
    """The arguments of the functions, with the locations of the datasets."""
    others = {name: locate(other) for name, other in variant.others.items()}
    return {**variant.arguments, **others, "location": locate(variant.dataset)}


def run_process(
    python: str, arguments: list[str], timeout: float, root: Path = ROOT
) -> tuple[dict[int, dict[str, Any]], str]:
    """The outcome of each case of a fresh process, and why those that are missing have none."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)]),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
    }
    environment.pop("SPARK_REMOTE", None)
    command = [python, "-m", "benchmarks.case", *arguments]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        try:
            done = subprocess.run(
                command, cwd=root, env=environment, stdout=output, stderr=errors, timeout=timeout, check=False
            )
            reason = f"the process ended with {done.returncode}: "
        except subprocess.TimeoutExpired:
            reason = f"took more than {timeout:g} s: "
        output.seek(0)
        errors.seek(0)
        lines = output.read().splitlines()
        reason += reason_in(errors.read(), "")
    outcomes = [json.loads(line.removeprefix(MARKER)) for line in lines if line.startswith(MARKER)]
    return {outcome["case"]: outcome for outcome in outcomes}, reason


def reason_in(stderr: str, stdout: str) -> str:
    """The line of a failed process's output that says why: the last that names an error, or the last of all."""
    lines = [line.strip() for line in (stderr.strip() or stdout.strip() or "no output").splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line.split(" ")[0] or "Exception" in line.split(" ")[0]]
    return (errors or lines)[-1][:300]


def make_rows(workload: Workload, variant: Variant, peers: Sequence[Peer], outcomes: Outcomes) -> list[Row]:
    """The medians of each peer, its ratio to ours, and whether its answer is that of ours."""
    rows: list[Row] = []
    measured = {peer.name: outcomes.measured[variant.name, peer.name] for peer in peers}
    ours = next((measured[peer.name] for peer in peers if peer.name.startswith(OURS) and measured[peer.name]), [])
    for peer in peers:
        runs = measured[peer.name]
        row: Row = {"id": workload.id, "variant": variant.name, "peer": peer.name}
        if (variant.name, peer.name) in outcomes.skipped:
            row["skipped"] = outcomes.skipped[variant.name, peer.name]
        if runs:
            row |= {
                "seconds": statistics.median(r.seconds for r in runs),
                "cpu_seconds": statistics.median(r.cpu_seconds for r in runs),
                "added_mib": statistics.median(r.added_mib for r in runs),
                "fastest": min(r.seconds for r in runs),
                "slowest": max(r.seconds for r in runs),
                "runs": len(runs),
                "answer": runs[0].answer,
            }
            against = measured.get(peer.against)
            if against and not peer.name.startswith(OURS):
                row["ratio"] = row["seconds"] / statistics.median(r.seconds for r in against)
                row["ratios"] = spread(runs, against)
            expected = (ours or runs)[0].answer
            wrong = [r.answer for r in runs if peer.checked and not agree(r.answer, expected)]
            if wrong:
                row["differs"] = f"{json.dumps(wrong[0])[:200]}, expected {json.dumps(expected)[:200]}"
        rows.append(row)
    return rows


def spread(theirs: Sequence[Measurement], ours: Sequence[Measurement]) -> list[float]:
    """The lowest and the highest ratio of runs that took turns."""
    ratios = [their.seconds / our.seconds for their, our in zip(theirs, ours, strict=False)]
    return [min(ratios), max(ratios)]


def agree(answer: Any, expected: Any) -> bool:
    """Whether two answers are equal; None within a list stands for what an implementation does not tell."""
    if isinstance(answer, list) and isinstance(expected, list):
        return len(answer) == len(expected) and all(map(agree, answer, expected))
    return answer is None or expected is None or bool(answer == expected)


def default_environments() -> dict[str, str]:
    """The Python of this process, and the one with delta-spark's PySpark where it has been set up."""
    environments = {"main": sys.executable}
    python = Path(os.environ.get("PYSPARK_DELTA_PEER_PYTHON") or ROOT / ".venv-4.2" / "bin" / "python")
    if python.exists() and any(peer_jars()):
        environments["delta-spark"] = str(python)
    return environments


def peer_jars() -> list[Path]:
    """delta-spark's JARs."""
    return sorted(Path(os.environ.get("PYSPARK_DELTA_PEER_JARS") or ROOT / ".cache" / "jars").glob("*.jar"))
