"""Files whose names are numbers, as in the logs of a checkpoint. Other files there are not of the log."""

from __future__ import annotations

from pyspark_delta.errors import FileNotFoundInStoreError
from pyspark_delta.storage import ObjectStore
from pyspark_delta.storage.paths import file_name


def numbers_in(store: ObjectStore, directory: str) -> list[int]:
    """Return the numbers of the files in a directory, ascending; none if it does not exist."""
    try:
        names = [file_name(file.path) for file in store.list_from(f"{directory}/")]
    except FileNotFoundInStoreError:
        return []
    return sorted(int(name) for name in names if name.isdecimal() and name.isascii())
