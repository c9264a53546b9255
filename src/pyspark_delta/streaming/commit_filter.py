"""Commits that a stream skips, by a condition on what the history of the table says about them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyspark_delta.actions.model import CommitInfo
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.schema.arrow import schema_to_arrow
from pyspark_delta.schema.types import BOOLEAN, LONG, STRING, StructField, StructType

_TEXTS = ("operation", "userMetadata", "userName", "userId", "engineInfo", "isolationLevel")
_FACTS = StructType(
    (
        StructField("version", LONG),
        *(StructField(name, STRING) for name in _TEXTS),
        StructField("isBlindAppend", BOOLEAN),
    )
)


class CommitFilter:
    """A condition in Spark's SQL on `version` and members of `commitInfo`, such as ``userMetadata = 'backfill'``.

    The columns are version, operation, userMetadata, userName, userId, engineInfo, isolationLevel and isBlindAppend;
    what a commit does not say is null.
    """

    def __init__(self, condition: str) -> None:
        """Raises InvalidPredicateError."""
        self._condition = parse_predicate(condition, _FACTS)

    def matches(self, version: int, info: CommitInfo | None) -> bool:
        """Return True if the condition is true for a commit."""
        values = {} if info is None else info.values
        row: dict[str, Any] = {"version": version}
        row |= {name: text for name in _TEXTS if isinstance(text := values.get(name), str)}
        row["isBlindAppend"] = flag if isinstance(flag := values.get("isBlindAppend"), bool) else None
        facts = pa.RecordBatch.from_pylist([row], schema_to_arrow(_FACTS, all_nullable=True))
        return evaluate(self._condition, facts)[0].as_py() is True
