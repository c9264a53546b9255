"""What the JSON of both APIs has in common: the base class, numbers and names."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from pyspark_delta.catalog.unity.limits import NAME_PATTERN as NEW_NAME_PATTERN

LARGEST = 2**63 - 1
_INT64 = {"format": "int64"}
_NO_LINE_END = r"(?!\n)$"  # Python's `$` alone also matches before a line end; that of JavaScript does not

Whole = Annotated[int, Meta(ge=0, le=LARGEST, extra_json_schema=_INT64)]
Positive = Annotated[int, Meta(ge=1, le=LARGEST, extra_json_schema=_INT64)]
HighWaterMark = Annotated[int, Meta(ge=-1, le=LARGEST, extra_json_schema=_INT64)]
NewName = Annotated[str, Meta(pattern=NEW_NAME_PATTERN.replace("$", _NO_LINE_END))]
"""A name to be given: Unity Catalog takes no others."""
NAME_PATTERN = r"^[^\x00-\x1f./\x7f]{1,255}" + _NO_LINE_END
"""Names stand in paths, and with dots between them."""
Name = Annotated[str, Meta(pattern=NAME_PATTERN)]
"""A name that may exist already."""
TableType = Literal["MANAGED", "EXTERNAL"]
AccessKind = Literal["READ", "READ_WRITE"]
Uniform = Any
"""UniForm metadata: refused, whatever it holds."""


class Model(Struct):
    """A JSON object whose members are named like the attributes.

    Unknown members are ignored, as on Unity Catalog's own endpoints (its mapper disables FAIL_ON_UNKNOWN_PROPERTIES).
    """
