"""`_last_checkpoint`: the hint that names a recent checkpoint (C080-C084). It is only a starting point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from pyspark_delta.actions.decode import Fields
from pyspark_delta.errors import CorruptLogError, FileNotFoundInStoreError
from pyspark_delta.log.json_checksum import checksum_matches, json_checksum
from pyspark_delta.log.names import LAST_CHECKPOINT, LOG_DIRECTORY, UuidCheckpointName, parse_name
from pyspark_delta.storage import ObjectStore
from pyspark_delta.storage.paths import join


@dataclass(frozen=True, slots=True)
class LastCheckpoint:
    """The hint: a version that has a checkpoint, and the number of its actions (`size`) and parts.

    `top_level` is the file name of a checkpoint with a unique name, if the hint contains it.
    """

    version: int
    size: int | None = None
    parts: int | None = None
    size_in_bytes: int | None = None
    num_of_add_files: int | None = None
    tags: Mapping[str, str | None] | None = field(default=None, hash=False)
    top_level: UuidCheckpointName | None = None


def last_checkpoint_location(table_location: str) -> str:
    """Return the location of the hint of a table."""
    return join(table_location, LOG_DIRECTORY, LAST_CHECKPOINT)


def read_last_checkpoint(store: ObjectStore, table_location: str) -> LastCheckpoint | None:
    """Return the hint of a table; None if it is missing, malformed, or does not match its checksum (C082, C083)."""
    try:
        content = store.read(last_checkpoint_location(table_location))
    except FileNotFoundInStoreError:
        return None
    try:
        return parse_last_checkpoint(content)
    except CorruptLogError:
        return None


def write_last_checkpoint(
    store: ObjectStore, table_location: str, hint: LastCheckpoint, v2: Mapping[str, Any] | None = None
) -> bool:
    """Write the hint for a checkpoint, with a checksum (C084). Return True if it was written; a newer hint is kept.

    `v2` describes the top level of a checkpoint with a unique name, for readers that support the extension of the
    reference implementation (C075). Lists are left out: the two ways to compute the checksum disagree about long ones
    (C095).
    """
    known = read_last_checkpoint(store, table_location)
    if known is not None and known.version > hint.version:
        return False
    values: dict[str, Any] = {
        "version": hint.version,
        "size": hint.size,
        "parts": hint.parts,
        "sizeInBytes": hint.size_in_bytes,
        "numOfAddFiles": hint.num_of_add_files,
        "tags": None if hint.tags is None else dict(hint.tags),
        "v2Checkpoint": v2,
    }
    present = {name: value for name, value in values.items() if value is not None}
    checksum = json_checksum(orjson.dumps(present))
    store.write(last_checkpoint_location(table_location), orjson.dumps({**present, "checksum": checksum}))
    return True


def parse_last_checkpoint(content: bytes) -> LastCheckpoint:
    """Parse the hint. Raises CorruptLogError if it is malformed or its checksum does not match."""
    if b'"checksum"' in content and not checksum_matches(content):
        raise CorruptLogError("The checksum of _last_checkpoint does not match its content.", path=LAST_CHECKPOINT)
    try:
        values: Any = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise CorruptLogError(f"_last_checkpoint is not valid JSON: {error}.", path=LAST_CHECKPOINT) from None
    fields = Fields(values, "the object", LAST_CHECKPOINT)
    version = fields.integer("version")
    if version < 0:
        raise fields.error(f"the version is negative: {version}")
    return LastCheckpoint(
        version=version,
        size=fields.optional_integer("size"),
        parts=fields.optional_integer("parts"),
        size_in_bytes=fields.optional_integer("sizeInBytes"),
        num_of_add_files=fields.optional_integer("numOfAddFiles"),
        tags=fields.optional_map("tags"),
        top_level=_top_level(values.get("v2Checkpoint"), version),
    )


def _top_level(v2: Any, version: int) -> UuidCheckpointName | None:
    """Return the file name in the extension of the reference implementation (C075); None if it has another form."""
    path = v2.get("path") if isinstance(v2, dict) else None
    name = parse_name(path) if isinstance(path, str) else None
    return name if isinstance(name, UuidCheckpointName) and name.version == version else None
