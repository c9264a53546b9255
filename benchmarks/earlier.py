"""Compares the package with an earlier commit: both take turns in the same run, each with its own benchmarks."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.model import OURS, Peer, Scale, Workload
from benchmarks.registry import MODULES, load
from benchmarks.verdicts import Row

EARLIER = "earlier "  # begins the name of a peer that runs the earlier commit


def check_out(root: Path, commit: str, folder: Path) -> Path:
    """Return the files of a commit, unpacked in `folder` if they are not there.

    Raises subprocess.CalledProcessError if the commit does not exist.
    """
    git = ["git", "-C", str(root)]
    found = subprocess.run(
        [*git, "rev-parse", "--short", f"{commit}^{{commit}}"], check=True, capture_output=True, text=True
    ).stdout.strip()
    place = folder / found
    if not place.exists():
        packed = subprocess.run([*git, "archive", found], check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(place, filter="data")
    return place


def against_earlier(workload: Workload, root: Path, turns: int) -> Workload:
    """Return the workload with this package and the one in the checkout `root` as its only peers, without goals.

    A peer with a session runs in `turns` processes.
    """
    ours = [peer for peer in workload.peers if peer.name.startswith(OURS)]
    peers: list[Peer] = []
    for peer in ours:
        now = replace(peer, processes=turns) if peer.session else peer
        peers += [now, replace(now, name=EARLIER + peer.name, root=str(root), against=peer.name)]
    variants = [
        replace(variant, goals=(), peers=tuple(name for given in variant.peers for name in (given, EARLIER + given)))
        for variant in workload.variants
        if not variant.peers or any(peer.name in variant.peers for peer in ours)
    ]
    return replace(workload, peers=tuple(peers), variants=tuple(variants))


def table(results: Mapping[str, Any], scale: Scale) -> str:
    """Return the results of all workloads as one table, in milliseconds."""
    lines = [
        "| Workload | Case | Earlier (ms) | Now (ms) | Earlier / now | Lowest to highest |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for name in MODULES:
        if name in results:
            lines += _lines(load(name, scale), results[name]["rows"])
    return "\n".join(lines) + "\n"


def _lines(workload: Workload, rows: Sequence[Row]) -> list[str]:
    lines = []
    for row in rows:
        name = str(row["peer"])
        if not name.startswith(EARLIER):
            continue
        now = next(r for r in rows if (r["variant"], r["peer"]) == (row["variant"], name.removeprefix(EARLIER)))
        case = row["variant"] + name.removeprefix(EARLIER + OURS)
        spread = " to ".join(f"{bound:.2f}" for bound in row.get("ratios", []))
        ratio = f"{row['ratio']:.2f}" if "ratio" in row else "-"
        lines.append(f"| {workload.id} {workload.title} | {case} | {_ms(row)} | {_ms(now)} | {ratio} | {spread} |")
    return lines


def _ms(row: Row) -> str:
    return f"{row['seconds'] * 1000:.1f}" if "seconds" in row else "left out"
