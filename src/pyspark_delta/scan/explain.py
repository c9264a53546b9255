"""A scan plan in words: how many files each stage of skipping kept, on what condition, and what could not be used."""

from __future__ import annotations

from pyspark_delta.expressions.text import to_sql
from pyspark_delta.scan.plan import PruningStage, ScanPlan


def explain_plan(plan: ScanPlan) -> str:
    """The plan as lines of text.

    12 of 20,000 files after partition pruning on date = DATE '2024-01-01'
    3 of 20,000 files after data skipping on id > 5L
    rows are checked for id > 5L
    """
    lines = [f"Scan of version {plan.version}, columns {', '.join(plan.context.output) or 'none'}"]
    lines += _stages(plan)
    if not plan.stages:
        lines.append(f"{_files(plan.files.num_rows)}: no condition, none skipped")
    if plan.context.residual is not None:
        lines.append(f"rows are checked for {to_sql(plan.context.residual)}")
    return "\n".join(lines)


def _stages(plan: ScanPlan) -> list[str]:
    lines: list[str] = []
    earlier: list[str] = []
    for stage in plan.stages:
        if stage.files_after is None:
            earlier.append(_done(stage))
            continue
        after = " and ".join([*earlier, *([_done(stage)] if stage.predicate else [])])
        if after:
            lines.append(f"{stage.files_after:,} of {_files(stage.files_before)} after {after}")
        elif len(plan.stages) == 1:
            lines.append(f"{stage.files_after:,} of {_files(stage.files_before)}: {stage.name} was not possible")
        if stage.note:
            lines.append(f"not used for {stage.name}: {stage.note}")
    return lines


def _done(stage: PruningStage) -> str:
    return f"{stage.name} on {stage.predicate}"


def _files(count: int) -> str:
    return f"{count:,} {'file' if count == 1 else 'files'}"
