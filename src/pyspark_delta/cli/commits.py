"""The actions of one commit, read from its file alone, even if the table cannot be opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.log_tail import published_path
from pyspark_delta.errors import CorruptLogError, FileNotFoundInStoreError, InvalidOptionError
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.storage import store_for

_FACTS = {
    "add": ("path", "size", "partitionValues", "dataChange", "deletionVector"),
    "remove": ("path", "size", "partitionValues", "dataChange", "deletionVector"),
    "cdc": ("path", "size", "partitionValues"),
    "metaData": ("id", "name", "partitionColumns", "configuration", "schemaString"),
    "commitInfo": ("operation", "operationParameters", "operationMetrics", "timestamp", "engineInfo"),
}


def actions_of(
    location: str, version: int, storage_options: Mapping[str, str], catalog_table: CatalogTable | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the actions of a commit, unchanged and in order.

    A commit of a managed table is the one that its catalog names. Raises InvalidOptionError if the log has no such
    commit file, and CorruptLogError at a line that is not an action.
    """
    store, path = store_for(location, storage_options), published_path(location, version)
    table = managed_table(catalog_table)
    pending = () if table is None else table.log_tail().commits
    known = next((commit for commit in pending if commit.version == version), None)
    try:
        content = store.read(path) if table is None or known is None else table.read(store, known)
    except FileNotFoundInStoreError:
        raise InvalidOptionError(
            f"The log of '{location}' has no commit file for version {version}; it was cleaned up, or is not written "
            "yet.",
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
    """Return the kind of an action, and its main facts on one line."""
    kind = next(iter(action), "")
    content = action.get(kind)
    if not isinstance(content, Mapping):
        return kind, str(content)
    names = _FACTS.get(kind, tuple(content))
    facts = ((name, content[name]) for name in names if content.get(name) not in (None, {}, []))
    return kind, " ".join(f"{name}={value if isinstance(value, str) else _compact(value)}" for name, value in facts)


def _compact(value: Any) -> str:
    return orjson.dumps(value).decode()
