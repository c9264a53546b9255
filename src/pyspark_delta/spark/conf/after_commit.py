"""Steps that follow a commit: an error of one becomes a warning, because the change is made."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark_delta.errors import DeltaError, DeltaWarning


@contextmanager
def change_is_made(failure: str, remedy: str = "") -> Iterator[None]:
    """Turn an error of the block into a warning, as `warn_of_failure`."""
    try:
        yield
    except Exception as error:
        warn_of_failure(failure, error, remedy)


def warn_of_failure(failure: str, error: Exception, remedy: str = "") -> None:
    """Warn that a step after a commit failed. If the error were raised, the caller would make the change again.

    `failure` says what was not done, as in "its name could not be registered"; `remedy` is a sentence.
    """
    reason = error.message if isinstance(error, DeltaError) else f"{type(error).__name__}: {error}"
    text = f"The table is changed, but {failure}: {reason} Do not repeat the change, which would be made twice."
    warnings.warn(DeltaWarning(f"{text} {remedy}".rstrip()), stacklevel=4)
