"""`python -m benchmarks [B1 B2 ...]`: runs workloads beside their peers and reports medians, ratios and goals."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import earlier, report
from benchmarks.calibration import SECONDS, calibrate, drift
from benchmarks.datasets import Datasets
from benchmarks.machine import commit, describe
from benchmarks.model import FULL, QUICK, Dataset, Goal, Scale, Workload
from benchmarks.registry import MODULES, load
from benchmarks.run import ROOT, default_environments, peer_jars, run_workload

CACHE = ROOT / ".cache" / "bench"
DOCUMENT = ROOT / "docs" / "developers" / "performance.md"


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for. Returns 1 when an answer differs or ours fails."""
    options = _parser().parse_args(arguments)
    scale = QUICK if options.quick else FULL
    if options.earlier:
        return compare(options.earlier, options.workloads or list(MODULES), scale, options.only, options.turns)
    path = CACHE / ("results-quick.json" if options.quick else "results.json")
    results = load_results(path)
    environments = default_environments()
    results["machine"] = describe(environments, peer_jars())
    measured = commit(ROOT)
    failed = False
    if not options.table:
        for name in options.workloads or MODULES:
            if options.resume and is_done(results, name, measured):
                say(f"{name} is done")
                continue
            workload = load(name, scale)
            if options.without_spark:
                workload = without_sessions(workload)
            workload = only(workload, options.only)
            result = run_one(workload, Datasets(CACHE, say), environments, 1.0 if options.quick else SECONDS)
            if not (options.without_spark or options.only):  # a part of a result
                results["workloads"][name] = {**result, "commit": measured}
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(results, indent=1))
            say(report.terminal(workload, result["rows"]) + "\n")
            failed = failed or bool(problems(workload, result))
    for name in (options.workloads or MODULES) if not (options.without_spark or options.only) else ():
        if name in results["workloads"]:
            workload, result = load(name, scale), results["workloads"][name]
            for line in [*problems(workload, result), *report.summary(workload, result["rows"])]:
                say(line)
    if options.write:
        report.write(DOCUMENT, report.markdown(results, scale))
        say(f"The tables are in {DOCUMENT.relative_to(ROOT)}.")
    return int(failed)


def without_sessions(workload: Workload) -> Workload:
    """Return the workload with the peers that need no Spark session, and the goals that concern only these."""
    peers = tuple(peer for peer in workload.peers if not peer.session)
    names = {peer.name for peer in peers}
    variants = [
        replace(
            variant,
            goals=tuple(goal for goal in variant.goals if isinstance(goal, Goal) and goal.peer in names),
            peers=tuple(name for name in variant.peers if name in names),
        )
        for variant in workload.variants
        if not variant.peers or names.intersection(variant.peers)
    ]
    return replace(workload, peers=peers, variants=tuple(variants))


def only(workload: Workload, text: str) -> Workload:
    """Return the workload with the variants whose name contains a text, all if it is empty."""
    return replace(workload, variants=tuple(variant for variant in workload.variants if text in variant.name))


def compare(commit: str, workloads: Sequence[str], scale: Scale, text: str, turns: int) -> int:
    """Run the package and an earlier commit of it in turns, and print one table. Returns 1 if an answer differs.

    Only variants whose name contains `text` run. A peer with a session runs in as many processes as there are turns.
    """
    root = earlier.check_out(ROOT, commit, CACHE / "earlier")
    path = CACHE / f"earlier-{root.name}-{scale.name}.json"
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    failed = False
    for name in workloads:
        workload = earlier.against_earlier(only(load(name, scale), text), root, turns)
        results[name] = run_one(workload, Datasets(CACHE, say), default_environments(), 1.0)
        path.write_text(json.dumps(results, indent=1))
        found = problems(workload, results[name])
        failed = failed or bool(found)
        for line in found:
            say(line)
    say(earlier.table(results, scale))
    return int(failed)


def run_one(
    workload: Workload, datasets: Datasets, environments: dict[str, str], calibration_seconds: float
) -> dict[str, Any]:
    """The rows of one workload, and how far the machine's speed moved meanwhile."""
    start = time.time()
    say(f"{workload.id} {workload.title}")
    for dataset in needed(workload):
        datasets(dataset)
    before = calibrate(calibration_seconds)
    rows = run_workload(workload, datasets, environments, say)
    after = calibrate(calibration_seconds)
    moved = drift(before, after)
    say(f"  {time.time() - start:.0f} s; calibration {before * 1000:.0f} ms before, {after * 1000:.0f} ms after")
    return {"rows": rows, "calibration": [before, after], "drift": moved}


def needed(workload: Workload) -> list[Dataset]:
    """The datasets of a workload."""
    return list(dict.fromkeys(d for v in workload.variants for d in (v.dataset, *v.others.values())))


def problems(workload: Workload, result: dict[str, Any]) -> list[str]:
    """What makes a result worthless, one line each."""
    found = []
    for row in result["rows"]:
        if "differs" in row:
            found.append(f"{workload.id} {row['variant']}: {row['peer']} gives another ANSWER: {row['differs']}")
        if "skipped" in row and row["peer"].startswith("pyspark-delta"):
            found.append(f"{workload.id} {row['variant']}: ours FAILED: {row['skipped']}")
    return found


def load_results(path: Path) -> dict[str, Any]:
    """Earlier results, or none."""
    if path.exists():
        loaded: dict[str, Any] = json.loads(path.read_text())
        return loaded
    return {"machine": {}, "workloads": {}}


def is_done(results: dict[str, Any], name: str, measured: str) -> bool:
    """Whether there is a result of this commit."""
    result = results["workloads"].get(name)
    return result is not None and result["commit"] == measured


def say(line: str) -> None:
    print(line, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(MODULES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything works")
    parser.add_argument("--resume", action="store_true", help="leave out what has a result of this commit")
    parser.add_argument("--table", action="store_true", help="run nothing, report the results there are")
    parser.add_argument("--earlier", metavar="COMMIT", help="compare with this earlier commit instead of with peers")
    parser.add_argument("--turns", type=int, default=2, help="of processes with a session, beside an earlier commit")
    parser.add_argument("--only", default="", metavar="TEXT", help="run cases whose name contains this; keep no result")
    parser.add_argument("--without-spark", action="store_true", help="leave out what needs a session; keep no result")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/developers/performance.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
