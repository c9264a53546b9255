"""Types that the JSON of both APIs shares: the base class, numbers and names."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from pyspark_delta.catalog.unity.limits import NAME_PATTERN as NEW_NAME_PATTERN

LARGEST = 2**63 - 1
_INT64 = {"format": "int64"}
_NO_LINE_END = r"(?!\n)$"  # in Python, unlike JavaScript, `$` alone also matches before a line end

Whole = Annotated[int, Meta(ge=0, le=LARGEST, extra_json_schema=_INT64)]
Positive = Annotated[int, Meta(ge=1, le=LARGEST, extra_json_schema=_INT64)]
HighWaterMark = Annotated[int, Meta(ge=-1, le=LARGEST, extra_json_schema=_INT64)]
NewName = Annotated[str, Meta(pattern=NEW_NAME_PATTERN.replace("$", _NO_LINE_END))]
"""A name for something new, as Unity Catalog accepts it."""
NAME_PATTERN = r"^[^\x00-\x1f./\x7f]{1,255}" + _NO_LINE_END
"""Names occur in paths and are joined by dots, so they contain neither slashes nor dots."""
Name = Annotated[str, Meta(pattern=NAME_PATTERN)]
"""A name of something that may exist."""
TableType = Literal["MANAGED", "EXTERNAL"]
AccessKind = Literal["READ", "READ_WRITE"]
Uniform = Any
"""UniForm metadata, which the server always refuses."""


class Model(Struct):
    """A JSON object whose members are named like the attributes.

    Unknown members are ignored, as on Unity Catalog's own endpoints (its mapper disables FAIL_ON_UNKNOWN_PROPERTIES).
    """
