"""The directories of partitioned data files, `column=value/`, as Hive escapes them (Data Files; C005-C007).

They are a convention for people and tools; readers take partition values from the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark_delta.schema.partition_values import HIVE_NULL

NULL_DIRECTORY = HIVE_NULL

_ESCAPED = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")
_TOO_LONG = 240  # bytes; file systems allow 255 for a name


def partition_directory(values: Iterable[tuple[str, str | None]]) -> str:
    """Return the decoded relative directory, without a trailing slash, of partition values given as text.

    A value that makes the name too long for a file system is truncated: the log holds the complete value, and files
    have unique names.
    """
    return "/".join(f"{_escape(name)}={_segment(value)}" for name, value in values)


def _segment(value: str | None) -> str:
    if not value:
        return NULL_DIRECTORY
    escaped = _escape(value)
    if len(escaped.encode("utf-8", "surrogatepass")) <= _TOO_LONG // 2:
        return escaped
    return escaped.encode()[: _TOO_LONG // 2].decode("utf-8", "ignore")


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)
