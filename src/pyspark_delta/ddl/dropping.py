"""DROP TABLE of a table that has no name in a catalog."""

from __future__ import annotations

from pyspark_delta.errors import InvalidOperationError


def no_name_to_drop(table: str) -> InvalidOperationError:
    """Return the error for DROP TABLE of a path: only a name can be dropped, and files are never deleted by it.

    delta-spark carries the statement out without an effect, and without an error.
    """
    return InvalidOperationError(
        f"{table} is not in a catalog, so that there is no name to drop. Nothing was deleted. To delete the rows, use "
        "DELETE FROM; to delete the table, delete its folder.",
        error_class="DELTA_OPERATION_NOT_ALLOWED",
        sqlstate="0AKDC",
        operation="DROP TABLE",
    )
