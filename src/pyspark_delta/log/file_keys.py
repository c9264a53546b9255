"""The key of a logical file, (path, deletion vector id), normalised across spellings of the path.

Paths are compared decoded and resolved (C144, C215, C220): `a%20b` and `a b`, `file:/t/x`, `/t/x` and `x` below `/t`
are one file. The key is the location, relative to the table if it is below it, followed by a NUL and the id of the
deletion vector if there is one.
"""

from __future__ import annotations

import re

from pyspark_delta.actions.decode import Fields
from pyspark_delta.storage.paths import resolve_file

PLAIN_PATH = re.compile(rb"[^%:\\\0/.][^%:\\\0/]*(?:/[^%:\\\0/.][^%:\\\0/]*)*")
"""Complete paths that have only one spelling, which is their key."""

SEPARATOR = b"\0"


def path_key(table_location: str, raw_path: str) -> bytes:
    """Return the key of a path in the log. Raises CorruptLogError for a path that names no file."""
    encoded = raw_path.encode("utf-8", "surrogatepass")
    if PLAIN_PATH.fullmatch(encoded) is not None:
        return encoded
    location = resolve_file(table_location, raw_path)
    prefix = table_location.rstrip("/") + "/"
    return location.removeprefix(prefix).encode("utf-8", "surrogatepass")


def deletion_vector_id(descriptor: Fields) -> bytes:
    """Return the id of a deletion vector from its JSON object (C266). Raises CorruptLogError if it is malformed."""
    offset = descriptor.optional_integer("offset")
    suffix = "" if offset is None else f"@{offset}"
    text = f"{descriptor.string('storageType')}{descriptor.string('pathOrInlineDv')}{suffix}"
    return text.encode("utf-8", "surrogatepass")
