"""The actions of one commit, read from its file alone: also where the table around it cannot be opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from pyspark_delta.errors import CorruptLogError, FileNotFoundInStoreError, InvalidOptionError
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import join

_FACTS = {
    "add": ("path", "size", "partitionValues", "dataChange", "deletionVector"),
    "remove": ("path", "size", "partitionValues", "dataChange", "deletionVector"),
    "cdc": ("path", "size", "partitionValues"),
    "metaData": ("id", "name", "partitionColumns", "configuration", "schemaString"),
    "commitInfo": ("operation", "operationParameters", "operationMetrics", "timestamp", "engineInfo"),
}


def actions_of(location: str, version: int, storage_options: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The actions of a commit as they are in the log, in order.

    Raises InvalidOptionError when the log has no such commit file, CorruptLogError at a line that is not an action.
    """
    path = join(location, "_delta_log", f"{version:020d}.json")
    try:
        content = store_for(location, storage_options).read(path)
    except FileNotFoundInStoreError:
        raise InvalidOptionError(
            f"The log of '{location}' has no commit file for version {version}; it may have been cleaned up, or not "
            "be written yet.",
            error_class="DELTA_VERSION_NOT_FOUND",
        ) from None
    return _parse(content, path)


def _parse(content: bytes, path: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            action = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise CorruptLogError(f"Line {number} of '{path}' is not JSON: {error}.", path=path) from None
        if not isinstance(action, dict):
            raise CorruptLogError(f"Line {number} of '{path}' is not an action.", path=path)
        yield action


def describe_action(action: Mapping[str, Any]) -> tuple[str, str]:
    """The kind of an action, and its main facts on one line."""
    kind = next(iter(action), "")
    content = action.get(kind)
    if not isinstance(content, Mapping):
        return kind, str(content)
    names = _FACTS.get(kind, tuple(content))
    facts = ((name, content[name]) for name in names if content.get(name) not in (None, {}, []))
    return kind, " ".join(f"{name}={value if isinstance(value, str) else _compact(value)}" for name, value in facts)


def _compact(value: Any) -> str:
    return orjson.dumps(value).decode()
