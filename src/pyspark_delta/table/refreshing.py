"""Open the newest version after a change, without making a change that is done look as if it had failed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

from pyspark_delta.errors import DeltaError, DeltaWarning

T = TypeVar("T")


def show_change(refresh: Callable[[], object]) -> None:
    """Refresh what shows a table that was changed.

    An error becomes a DeltaWarning: if it were raised, the caller would make the change again.
    """
    try:
        refresh()
    except Exception as error:
        reason = error.message if isinstance(error, DeltaError) else f"{type(error).__name__}: {error}"
        warnings.warn(DeltaWarning(f"{_done(reason)} Call refresh() to see it."), stacklevel=4)


def open_changed(open_table: Callable[[], T]) -> T:
    """Open a table that was written. The message of an error says that the rows are written."""
    try:
        return open_table()
    except DeltaError as error:
        error.message = f"{_done(error.message)} Open the table again."
        raise


def _done(reason: str) -> str:
    return (
        f"The table is changed, but its newest version could not be opened: {reason} Do not repeat the change, which "
        "would be made twice."
    )
