"""A commit of the history on one line: what it did, to how many rows and files, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pyspark_delta.cli.sizes import short_count

NAMES = ("version", "time (UTC)", "operation", "rows", "files", "details")
FIXED = ("version", "time (UTC)", "rows", "files")
_EMPTY: tuple[object, ...] = (None, "", "[]", "{}", "null", "false", False, [], {})
_BARE = ("predicate", "mode")  # understood without their names
_Kinds = tuple[tuple[str, tuple[str, ...]], ...]
_ROWS: _Kinds = (
    ("+", ("numOutputRows", "numTargetRowsInserted", "numRestoredRows")),
    ("~", ("numUpdatedRows", "numTargetRowsUpdated")),
    ("-", ("numDeletedRows", "numTargetRowsDeleted")),
)
_FILES: _Kinds = (
    ("+", ("numAddedFiles", "numTargetFilesAdded", "numFiles")),
    ("-", ("numRemovedFiles", "numTargetFilesRemoved", "numDeletedFiles")),
)


def commit_line(commit: Mapping[str, Any]) -> Sequence[Any]:
    """Return the values of a commit by `NAMES`."""
    time, metrics = commit.get("timestamp"), _mapping(commit.get("operationMetrics"))
    operation = commit.get("operation") or ""
    return (
        commit["version"],
        f"{time:%Y-%m-%d %H:%M:%S}" if isinstance(time, datetime) else str(time or ""),
        operation,
        _counts(metrics, _ROWS, skip_output=operation in ("MERGE", "OPTIMIZE")),
        _counts(metrics, _FILES),
        _details(commit),
    )


def metrics_line(commit: Mapping[str, Any]) -> str:
    """Return the metrics of a commit that are not zero."""
    metrics = _mapping(commit.get("operationMetrics"))
    return ", ".join(f"{name} {value}" for name, value in metrics.items() if str(value) not in ("0", ""))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _counts(metrics: Mapping[str, Any], kinds: _Kinds, *, skip_output: bool = False) -> str:
    """Return the first count of each kind that is not zero, such as `+100 -3`.

    `skip_output`: the output rows of a merge include copied rows, and those of OPTIMIZE are no new ones.
    """
    texts = []
    for sign, names in kinds:
        counts = (_number(metrics.get(name)) for name in names if not (skip_output and name == "numOutputRows"))
        count = next((count for count in counts if count), 0)
        if count:
            texts.append(f"{sign}{short_count(count)}")
    return " ".join(texts)


def _number(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0


def _details(commit: Mapping[str, Any]) -> str:
    """Return the parameters that say something, then the user metadata."""
    parameters = {name: _plain(value) for name, value in _mapping(commit.get("operationParameters")).items()}
    said = {name: value for name, value in parameters.items() if value not in _EMPTY}
    texts = [_text(said.pop(name)) for name in _BARE if name in said]
    texts += [f"{name}={_text(value)}" for name, value in said.items()]
    if commit.get("userMetadata"):
        texts.append(f"userMetadata={commit['userMetadata']}")
    return ", ".join(texts)


def _plain(value: Any) -> Any:
    """Return a parameter without its JSON: delta-spark stores lists, objects and quoted texts as text."""
    if isinstance(value, str) and value[:1] in ('"', "[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_text(item)}" for name, item in value.items())
    return json.dumps(value, default=str)
