"""Explain a scan plan: how many files each stage of skipping kept, by which condition, and what could not be used."""

from __future__ import annotations

from dataclasses import replace

from pyspark_delta.expressions.text import to_sql
from pyspark_delta.scan.bounds import NEVER
from pyspark_delta.scan.plan import PruningStage, ScanPlan
from pyspark_delta.scan.planner import file_request
from pyspark_delta.snapshot import Snapshot


def explain_plan(plan: ScanPlan, snapshot: Snapshot) -> str:
    """Return the plan as lines of text; `snapshot` is the one it was made for, and supplies the counts.

    12 of 20,000 files after partition pruning on date = DATE '2024-01-01'
    3 of 12 files after data skipping on id > 5L
    rows are filtered by id > 5L
    """
    lines = [f"Scan of version {plan.version}, columns {', '.join(plan.context.output) or 'none'}"]
    stages = count_stages(plan, snapshot)
    lines += [
        f"{stage.files_after:,} of {_files(stage.files_before)} after {stage.name} on {stage.predicate}"
        for stage in stages
        if stage.pushed is not None
    ]
    if len(lines) == 1:
        reason = "no condition could skip files" if stages or plan.context.residual else "no condition"
        lines.append(f"{_files(plan.files.num_rows)}: {reason}")
    lines += [f"not used for {stage.name}: {stage.note}" for stage in stages if stage.note]
    if plan.context.residual is not None:
        lines.append(f"rows are filtered by {to_sql(plan.context.residual)}")
    return "\n".join(lines)


def count_stages(plan: ScanPlan, snapshot: Snapshot) -> tuple[PruningStage, ...]:
    """Return the stages of a plan with the number of files before and after each."""
    counted: list[PruningStage] = []
    before = snapshot.num_files() if plan.stages else plan.files.num_rows
    for stage in plan.stages:
        last = stage is plan.stages[-1]
        after = plan.files.num_rows if last else _count(plan, stage, snapshot)
        counted.append(replace(stage, files_before=before, files_after=after))
        before = after
    return tuple(counted)


def _count(plan: ScanPlan, stage: PruningStage, snapshot: Snapshot) -> int:
    """Return the files that partition pruning alone keeps."""
    if stage.pushed == NEVER:
        return 0
    request = file_request(snapshot.configuration, ("size",), stage.pushed, None, plan.context.time_zone)
    return sum(batch.num_rows for batch in snapshot.read_files(request))


def _files(count: int | None) -> str:
    return f"{count:,} {'file' if count == 1 else 'files'}"
