"""The error for rows of the table that several rows of a source would change, the same for every engine."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_delta.errors import InvalidOperationError

EXAMPLES, MOST_COLUMNS = 5, 5
"""How many rows the error shows at most, and how many columns of each."""


def repeated_match_error(shown: Sequence[str]) -> InvalidOperationError:
    """Return the error; `shown` are examples of rows, each with how many rows of the source it matched."""
    examples = "; ".join(shown) or "rows that cannot be shown: the source returns other rows when it is computed again"
    return InvalidOperationError(
        "Several rows of the source match one row of the table and would change it, so the result would be ambiguous. "
        f"Nothing was committed. Found for {examples}. Leave one of these source rows, for example "
        "with dropDuplicates or an aggregation by the key, or make the condition more specific.",
        error_class="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        sqlstate="21506",
        rows=len(shown),
    )
