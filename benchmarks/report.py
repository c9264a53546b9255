"""Tables of results: for the terminal, and for docs/developers/performance.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.model import Scale, Workload
from benchmarks.registry import MODULES, load
from benchmarks.verdicts import Row, Verdict, judge

BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"
_HEADER = ["", "", "ms", "CPU ms", "MiB", "time / ours", "lowest to highest", "goals"]


def terminal(workload: Workload, rows: Sequence[Row]) -> str:
    """One workload as lines of fixed width."""
    lines = [_HEADER, *_cells(workload, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADER) - 1)]
    text = (
        "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]) for line in lines
    )
    return "\n".join([f"{workload.id} {workload.title}", *(line.rstrip() for line in text)])


def markdown(results: Mapping[str, Any], scale: Scale) -> str:
    """All workloads that have results, for the documentation."""
    machine = "; ".join(f"{name} {value}" for name, value in results["machine"].items())
    parts = [f"Measured on: {machine}.\n"]
    for name in MODULES:
        result = results["workloads"].get(name)
        if result is None:
            continue
        workload = load(name, scale)
        parts.append(f"### {name}: {workload.title}\n")
        parts.append(f"The machine's speed moved by {result['drift']:.0%} from the first to the last minute.\n")
        lines = [["workload", "implementation", *_HEADER[2:]], ["---", "---", "--:", "--:", "--:", "--:", "--:", "---"]]
        lines += _cells(workload, result["rows"])
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")
    return "\n".join(parts)


def write(document: Path, text: str) -> None:
    """Put the text between the markers of the document. Raises ValueError when it has none."""
    before, begin, rest = document.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{document} has no '{BEGIN}' and '{END}'")
    document.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")


def _cells(workload: Workload, rows: Sequence[Row]) -> list[list[str]]:
    verdicts = judge(workload, rows)
    lines: list[list[str]] = []
    before = ""
    for row in rows:
        name = row["variant"] if row["variant"] != before else ""
        before = row["variant"]
        lines.append([name, row["peer"], *_figures(row), _goals(row, rows, verdicts)])
    return lines


def _figures(row: Row) -> list[str]:
    if "seconds" not in row:
        return ["-", "-", "-", "-", ""]
    ratio = f"{row['ratio']:.3g}" if "ratio" in row else ""
    spread = " to ".join(f"{bound:.3g}" for bound in row.get("ratios", []))
    return [_ms(row["seconds"]), _ms(row["cpu_seconds"]), f"{row['added_mib']:.0f}", ratio, spread]


def _goals(row: Row, rows: Sequence[Row], verdicts: Sequence[Verdict]) -> str:
    """Goals stand in the first line of a variant, reasons in the line of their peer."""
    notes = []
    if "skipped" in row:
        notes.append(f"left out: {row['skipped']}")
    if "differs" in row:
        notes.append(f"ANSWER DIFFERS: {row['differs']}")
    if row is next(r for r in rows if r["variant"] == row["variant"]):
        notes += [str(verdict) for verdict in verdicts if verdict.variant == row["variant"]]
    return "; ".join(notes).replace("|", "/").replace("\n", " ")


def _ms(seconds: float) -> str:
    milliseconds = seconds * 1000
    return f"{milliseconds:.0f}" if milliseconds >= 100 else f"{milliseconds:.1f}"


def summary(workload: Workload, rows: Sequence[Row]) -> list[str]:
    """The goals that are not met, one line each."""
    return [f"{workload.id} {v.variant}: {v}" for v in judge(workload, rows) if v.met is not True]
