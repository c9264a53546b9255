"""Where a table may lie whose files are those of another directory: a shallow clone, or a conversion.

A vacuum lists the directory of its table, and deletes what no version needs. So neither directory may hold the other.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import LOCAL_SCHEME, join, split


def check_apart(source: str, target: str) -> None:
    """Check that two directories are apart; local links are followed. Raises InvalidOperationError."""
    for one, other in ((source, target), (_real(source), _real(target))):
        if join(other, "").startswith(join(one, "")) or join(one, "").startswith(join(other, "")):
            raise InvalidOperationError(
                f"'{target}' and the source '{source}' are the same directory or lie within each other, and a vacuum "
                "of one table would delete files of the other. Name a location outside of it.",
                error_class="DELTA_INVALID_CLONE_PATH",
                location=target,
            )


def check_empty(location: str, storage_options: Mapping[str, str]) -> None:
    """Check that a directory without a table has no files that could be taken for those of the table.

    Names that begin with `_` or `.` do not count. Raises InvalidOperationError.
    """
    store = store_for(location, storage_options)
    for batch in store.list_tree(location, lambda name: name.startswith(("_", "."))):
        for path in batch.column("path").to_pylist():
            if not path.rpartition("/")[2].startswith(("_", ".")):
                raise InvalidOperationError(
                    f"'{location}' is not empty: it holds '{path}'. Name an empty or a new directory.",
                    error_class="DELTA_PATH_EXISTS",
                    location=location,
                    path=path,
                )


def _real(location: str) -> str:
    return os.path.realpath(location) if split(location)[0] == LOCAL_SCHEME else location
