"""B3: which files can hold rows of some partitions, with the table just opened and with it loaded."""

from __future__ import annotations

from benchmarks.model import Goal, Scale, Variant, Workload, size
from benchmarks.workloads.logs import log
from benchmarks.workloads.plans import COLD, LOADED, LOADED_PEERS, PEERS

_EQUAL = "p_date = '2024-01-15'"
_IN = "p_date in ('2024-01-05', '2024-01-09', '2024-02-01')"
_RANGE = "p_date >= '2024-01-05' and p_date < '2024-02-05'"


def workload(scale: Scale) -> Workload:
    """Equality at every size; IN and a range, and a loaded table, at the largest."""
    small, middle, large = scale.files
    at_large = size(large)
    without_polars = COLD[:2]
    return Workload(
        "B3",
        "Plan by partition",
        (*PEERS, *LOADED_PEERS),
        (
            Variant(f"{size(small)} files, =", log(small), {"where": _EQUAL}, (Goal("deltalake", 3),), peers=COLD),
            Variant(f"{size(middle)} files, =", log(middle), {"where": _EQUAL}, (Goal("deltalake", 6),), peers=COLD),
            Variant(f"{at_large} files, =", log(large), {"where": _EQUAL}, (Goal("deltalake", 12),), 3, peers=COLD),
            Variant(
                f"{at_large} files, IN", log(large), {"where": _IN}, (Goal("deltalake", 12),), 3, peers=without_polars
            ),
            Variant(
                f"{at_large} files, range",
                log(large),
                {"where": _RANGE},
                (Goal("deltalake", 12),),
                3,
                peers=without_polars,
            ),
            Variant(
                f"{at_large} files, =, struct statistics",
                log(large, struct_stats=True),
                {"where": _EQUAL},
                (Goal("deltalake", 40),),
                3,
                peers=without_polars,
            ),
            Variant(
                f"{at_large} files, =, loaded", log(large), {"where": _EQUAL}, (Goal(LOADED[1], 3),), 1, peers=LOADED
            ),
        ),
    )
