"""The synthetic logs by their sizes and kinds."""

from __future__ import annotations

from benchmarks.model import Dataset, dataset

COMMITS, ADDS, REMOVES = 20, 50, 20  # after the checkpoint: 1000 adds and 400 removes in total
FIRST_VERSION = 10
LAST_VERSION = FIRST_VERSION + COMMITS


def log(files: int, **more: object) -> Dataset:
    """A log of `files` files in its checkpoint. `more` are fields of `SyntheticLog`."""
    return dataset("log", files=files, commits=COMMITS, adds=ADDS, removes=REMOVES, **more)
