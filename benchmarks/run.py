"""Runs workloads: peers interleaved in fresh processes, medians and ratios, and a check that their answers agree."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.model import ARROW, OURS, Dataset, Measurement, Peer, Variant, Workload
from benchmarks.verdicts import Row

ROOT = Path(__file__).parents[1]
TIMEOUT_SECONDS = 300
Locate = Callable[[Dataset], str]


class Skipped(Exception):
    """A peer cannot run here; the message is the reason."""


def run_workload(
    workload: Workload, locate: Locate, environments: Mapping[str, str], report: Callable[[str], None]
) -> list[Row]:
    """Run all variants of one workload and return a row per variant and peer."""
    return [
        row for variant in workload.variants for row in run_variant(workload, variant, locate, environments, report)
    ]


def run_variant(
    workload: Workload,
    variant: Variant,
    locate: Locate,
    environments: Mapping[str, str],
    report: Callable[[str], None],
) -> list[Row]:
    """Run one variant, its peers in turn."""
    peers = [peer for peer in workload.peers if not variant.peers or peer.name in variant.peers]
    arguments = {
        **variant.arguments,
        **{name: locate(other) for name, other in variant.others.items()},
        "location": locate(variant.dataset),
    }
    measured: dict[str, list[Measurement]] = defaultdict(list)
    skipped: dict[str, str] = {}
    for repetition in range(max((p.processes or variant.repetitions) for p in peers)):
        for peer in peers:
            if peer.name in skipped or repetition >= (peer.processes or variant.repetitions):
                continue
            try:
                measured[peer.name] += run_peer(peer, arguments, environments)
            except Skipped as reason:
                skipped[peer.name] = str(reason)
                report(f"  {workload.id} {variant.name}: {peer.name} left out: {reason}")
    rows = make_rows(workload, variant, peers, measured, skipped)
    for row in rows:
        if "seconds" in row:
            ratio = f", {row['ratio']:.2f}x ours" if "ratio" in row else ""
            wrong = f", ANSWER DIFFERS: {row['differs']}" if "differs" in row else ""
            report(f"  {workload.id} {variant.name}: {row['peer']} {row['seconds'] * 1000:.1f} ms{ratio}{wrong}")
    return rows


def run_peer(peer: Peer, arguments: Mapping[str, Any], environments: Mapping[str, str]) -> list[Measurement]:
    """One fresh process of one peer. Raises Skipped when its environment is absent or the process fails."""
    python = environments.get(peer.environment)
    if python is None:
        raise Skipped(f"no environment '{peer.environment}'")
    command = [python, "-m", "benchmarks.case", peer.function, json.dumps(arguments), str(peer.inner)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
    }
    environment.pop("SPARK_REMOTE", None)
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise Skipped(f"took more than {TIMEOUT_SECONDS} s") from None
    if done.returncode != 0:
        raise Skipped(reason_in(done.stderr, done.stdout))
    return [Measurement(**run) for run in json.loads(done.stdout.strip().splitlines()[-1])]


def reason_in(stderr: str, stdout: str) -> str:
    """The line of a failed process's output that says why: the last that names an error, or the last of all."""
    lines = [line.strip() for line in (stderr.strip() or stdout.strip() or "no output").splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line.split(" ")[0] or "Exception" in line.split(" ")[0]]
    return (errors or lines)[-1][:300]


def make_rows(
    workload: Workload,
    variant: Variant,
    peers: list[Peer],
    measured: Mapping[str, list[Measurement]],
    skipped: Mapping[str, str],
) -> list[Row]:
    """The medians of each peer, its ratio to ours, and whether its answer is that of ours."""
    rows: list[Row] = []
    ours = next((measured[name] for name in (OURS, ARROW) if measured.get(name)), [])
    for peer in peers:
        runs = measured.get(peer.name, [])
        row: Row = {"id": workload.id, "variant": variant.name, "peer": peer.name}
        if peer.name in skipped:
            row["skipped"] = skipped[peer.name]
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
            if against and peer.name not in (OURS, ARROW):
                row["ratio"] = row["seconds"] / statistics.median(r.seconds for r in against)
            expected = (ours or runs)[0].answer
            wrong = [r.answer for r in runs if peer.checked and not agree(r.answer, expected)]
            if wrong:
                row["differs"] = f"{json.dumps(wrong[0])[:200]}, expected {json.dumps(expected)[:200]}"
        rows.append(row)
    return rows


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
