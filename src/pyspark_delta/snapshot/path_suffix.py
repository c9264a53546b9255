"""A version or a time at the end of a path, as in `/data/flights@v12`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark_delta.schema.timestamps import parse_path_suffix
from pyspark_delta.storage import normalize_location, store_for
from pyspark_delta.storage.paths import join

_SUFFIX = re.compile(r"(?P<path>.+)@(?:[vV](?P<version>\d+)|(?P<time>\d{17}))")


def split_suffix(text: str, storage_options: Mapping[str, str], zone: str) -> tuple[str, int | None, int | None]:
    """Return the location, and the version or the time (in milliseconds) of a suffix `@v12` or `@yyyyMMddHHmmssSSS`.

    If there is a table at the path with the suffix, the path is used literally, as delta-spark does.
    """
    location = normalize_location(text)
    suffix = _SUFFIX.fullmatch(text.rstrip("/"))
    if suffix is None or has_log(location, storage_options):
        return location, None, None
    base = normalize_location(suffix["path"])
    if suffix["version"] is not None:
        return base, int(suffix["version"]), None
    return base, None, parse_path_suffix(suffix["time"], time_zone=zone)


def has_log(location: str, storage_options: Mapping[str, str]) -> bool:
    """Return True if there is a table at a location, whether it can be opened or not."""
    store = store_for(location, storage_options)
    return next(iter(store.list_from(join(location, "_delta_log", ""))), None) is not None
