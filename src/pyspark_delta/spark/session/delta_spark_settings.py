"""The settings of a session builder that are for delta-spark: classes for Spark to load, and its JAR."""

from __future__ import annotations

import re
from collections.abc import Mapping

_CLASS = re.compile(r"(?:io\.delta|org\.apache\.spark\.sql\.delta)\.[\w.$]+")
_PACKAGE = re.compile(r"io\.delta:[\w.:-]+")
_LISTS = {"spark.sql.extensions": _CLASS, "spark.jars.packages": _PACKAGE}


def without_delta_spark(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings without those that name classes of delta-spark, or its JAR. Lists keep their other members.

    Settings of sessions that tables obey, `spark.databricks.delta.*`, stay.
    """
    kept = {}
    for key, value in settings.items():
        pattern = _LISTS.get(key)
        if pattern is None:
            if not (key.startswith("spark.") and _CLASS.fullmatch(str(value))):
                kept[key] = value
            continue
        members = [member.strip() for member in str(value).split(",") if member.strip()]
        left = [member for member in members if not pattern.fullmatch(member)]
        if left:
            kept[key] = ",".join(left)
    return kept
