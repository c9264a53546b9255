"""The name and the version that Spark passes to a catalog when it loads a table."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.spark.frames.catalyst.nodes import kind_of
from pyspark_delta.spark.frames.read_options import ReadOptions

_PART = re.compile(r"`(?:[^`]|``)*`|[^.`]+")
_NO_CONTEXT = "TableContext{timeTravel=null, writePrivileges=[]}"


@dataclass(frozen=True)
class Travel:
    """A version or a time of a query, in milliseconds since the epoch; neither for the latest version."""

    version: str | None = None
    timestamp_ms: int | None = None

    @property
    def is_latest(self) -> bool:
        """True for the latest version."""
        return self.version is None and self.timestamp_ms is None

    def apply(self, options: ReadOptions) -> ReadOptions:
        """Return read options for this version. Raises InvalidOptionError if they name another one already."""
        if self.is_latest:
            return options
        if options.version is not None or options.timestamp_ms is not None:
            raise InvalidOperationError(
                f"The path '{options.location}' has a version after its '@', and the query gives another one. "
                "Give only one of them.",
                error_class="DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS",
            )
        if self.timestamp_ms is not None:
            return replace(options, timestamp_ms=self.timestamp_ms)
        asked = ReadOptions.parse(options.location, {"versionAsOf": self.version or ""})
        return replace(options, version=asked.version)


LATEST = Travel()


def parts_of(identifier: Any) -> tuple[str, ...]:
    """Return the parts of an `Identifier` of Spark: its namespace, and its name. This takes one message to the JVM."""
    return _parts(str(identifier.toString()))


@lru_cache(maxsize=256)
def _parts(text: str) -> tuple[str, ...]:
    """Return the parts of a name that Spark has quoted where needed."""
    return tuple(part[1:-1].replace("``", "`") if part[0] == "`" else part for part in _PART.findall(text))


def context_of(context: Any) -> tuple[Travel, bool]:
    """Return the version or time that a call of `loadTable` asks for, and True if the table will be written."""
    if context is None:
        return LATEST, False
    if isinstance(context, str):
        return Travel(version=context), False
    if isinstance(context, int):  # microseconds
        return Travel(timestamp_ms=context // 1000), False
    if not hasattr(context, "getClass") or kind_of(context) != "TableContext":
        return LATEST, len(context) > 0  # a set of privileges
    if str(context.toString()) == _NO_CONTEXT:
        return LATEST, False
    asked = context.timeTravel().orElse(None)
    writes = not context.writePrivileges().isEmpty()
    if asked is None:
        return LATEST, writes
    if kind_of(asked) == "AsOfVersion":
        return Travel(version=str(asked.version())), writes
    return Travel(timestamp_ms=int(asked.micros()) // 1000), writes
