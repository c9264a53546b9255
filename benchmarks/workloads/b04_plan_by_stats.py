"""B4: which files can hold rows for a predicate on columns with statistics, as JSON text or as structs too."""

from __future__ import annotations

from benchmarks.model import Goal, Scale, Variant, Workload, size
from benchmarks.synthetic_log import ROWS_PER_FILE
from benchmarks.workloads.logs import log
from benchmarks.workloads.plans import COLD, LOADED, LOADED_PEERS, PEERS


def predicates(files: int) -> dict[str, str]:
    """A few files in the middle of the log, by columns of several types."""
    low = files // 2 * ROWS_PER_FILE + 500
    high = low + 20 * ROWS_PER_FILE
    seconds, rest = divmod(low, 1000)
    begin = f"2024-01-{1 + seconds // 86400:02d}T{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}"
    return {
        "id range": f"id between {low} and {high}",
        "three columns": f"id >= {low} and price < {high * 0.25} and name >= 'customer {low:014d}'",
        "string": f"name = 'customer {low:014d}'",
        "timestamp": f"at >= '{begin}:{seconds % 60:02d}.{rest:03d}Z' and at < '{begin}:59.500Z'",
    }


def workload(scale: Scale) -> Workload:
    """The range at every size; all predicates, both forms of statistics, and a loaded table, at the largest."""
    small, middle, large = scale.files
    at_large, without_polars = size(large), COLD[:2]
    variants = [
        Variant(
            f"{size(files)} files, id range",
            log(files),
            {"where": predicates(files)["id range"]},
            (Goal("deltalake", 2),),
            peers=without_polars,
        )
        for files in (small, middle)
    ]
    for name, where in predicates(large).items():
        peers = COLD if name == "id range" else without_polars
        variants += [
            Variant(
                f"{at_large} files, {name}", log(large), {"where": where}, (Goal("deltalake", 3.5),), 3, peers=peers
            ),
            Variant(
                f"{at_large} files, {name}, struct statistics",
                log(large, struct_stats=True),
                {"where": where},
                (Goal("deltalake", 50),),
                3,
                peers=without_polars,
            ),
        ]
    variants.append(
        Variant(
            f"{at_large} files, id range, loaded",
            log(large),
            {"where": predicates(large)["id range"]},
            (Goal(LOADED[1], 10),),
            1,
            peers=LOADED,
        )
    )
    return Workload("B4", "Plan by statistics", (*PEERS, *LOADED_PEERS), tuple(variants))
