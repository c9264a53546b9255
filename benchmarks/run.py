"""Runs workloads: peers interleaved in fresh processes, medians, ratios, and a check that the machine held still."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.model import OURS, Measurement, Peer, Variant, Workload

ROOT = Path(__file__).parents[1]
TIMEOUT_SECONDS = 900
DRIFT_LIMIT = 0.15


class Skipped(Exception):
    """A peer cannot run here; the message is the reason."""


def run_workload(
    workload: Workload, datasets: Callable[[str], str], environments: dict[str, str], report: Callable[[str], None]
) -> list[dict[str, object]]:
    """Run all variants of one workload and return a row per variant and peer."""
    rows: list[dict[str, object]] = []
    for variant in workload.variants:
        location = datasets(variant.dataset)
        measured: dict[str, list[Measurement]] = defaultdict(list)
        skipped: dict[str, str] = {}
        for _ in range(variant.repetitions):
            for peer in workload.peers:
                if peer.name in skipped:
                    continue
                try:
                    measured[peer.name] += run_peer(peer, {**variant.arguments, "location": location}, environments)
                except Skipped as reason:
                    skipped[peer.name] = str(reason)
                    report(f"  {workload.id} {variant.name}: {peer.name} left out: {reason}")
        rows += _rows(workload, variant, measured, skipped, report)
    return rows


def run_peer(peer: Peer, arguments: dict[str, object], environments: dict[str, str]) -> list[Measurement]:
    """One fresh process of one peer. Raises Skipped when its environment is absent or the process fails."""
    python = environments.get(peer.environment)
    if python is None:
        raise Skipped(f"no environment '{peer.environment}'")
    inner = peer.inner
    command = [python, "-m", "benchmarks.case", peer.function, json.dumps(arguments), str(inner)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "PYSPARK_PYTHON": python,
    }
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise Skipped(f"took more than {TIMEOUT_SECONDS} s") from None
    if done.returncode != 0:
        raise Skipped((done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1][:200])
    return [Measurement(**run) for run in json.loads(done.stdout.strip().splitlines()[-1])]


def calibrate() -> float:
    """Seconds that a fixed amount of pure computing takes; compared before and after a run."""

    def loop() -> float:
        start = time.perf_counter()
        total = 0
        for i in range(4_000_000):
            total += i & 7
        return time.perf_counter() - start

    return min(loop() for _ in range(5))


def drift(before: float, after: float) -> float:
    """How much the machine's speed moved, as a fraction."""
    return abs(after - before) / before


def _rows(
    workload: Workload,
    variant: Variant,
    measured: dict[str, list[Measurement]],
    skipped: dict[str, str],
    report: Callable[[str], None],
) -> list[dict[str, object]]:
    ours = measured.get(OURS, [])
    goals = {goal.peer: goal.ratio for goal in variant.goals}
    rows: list[dict[str, object]] = []
    for peer in workload.peers:
        runs = measured.get(peer.name, [])
        row: dict[str, object] = {
            "id": workload.id,
            "title": workload.title,
            "variant": variant.name,
            "peer": peer.name,
            "goal": goals.get(peer.name),
        }
        if peer.name in skipped:
            row["skipped"] = skipped[peer.name]
        if runs:
            row |= {
                "seconds": _median(r.seconds for r in runs),
                "cpu_seconds": _median(r.cpu_seconds for r in runs),
                "added_mib": _median(r.added_mib for r in runs),
                "runs": len(runs),
                "answer": runs[0].answer,
            }
            if ours and peer.name != OURS:
                row["ratio"] = _median(r.seconds for r in runs) / _median(r.seconds for r in ours)
        rows.append(row)
        if runs:
            ratio = f", {row['ratio']:.2f}x ours" if "ratio" in row else ""
            report(f"  {workload.id} {variant.name}: {peer.name} {float(str(row['seconds'])) * 1000:.1f} ms{ratio}")
    return rows


def _median(values: Iterable[float]) -> float:
    return statistics.median(values)


def default_environments() -> dict[str, str]:
    """The Python of this process, and the one with delta-spark's PySpark where it has been set up."""
    environments = {"main": sys.executable}
    peer = Path(os.environ.get("PYSPARK_DELTA_PEER_PYTHON") or ROOT / ".venv-4.2" / "bin" / "python")
    if peer.exists():
        environments["delta-spark"] = str(peer)
    return environments
