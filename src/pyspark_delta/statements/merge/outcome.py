"""The result of a MERGE: its counts, metrics and parameters, for the caller and for the history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from pyspark_delta.engines.row_changes import ChangedRows, RowAction
from pyspark_delta.statements.merge.clauses import Clause, RowKind, is_single_delete
from pyspark_delta.statements.outcome import FileChanges, file_metrics, vector_metrics


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """The number of changed rows, by action and kind of rows."""

    inserted: int
    matched_updated: int
    by_source_updated: int
    matched_deleted: int
    by_source_deleted: int

    @property
    def updated(self) -> int:
        """All updated rows."""
        return self.matched_updated + self.by_source_updated

    @property
    def deleted(self) -> int:
        """All deleted rows."""
        return self.matched_deleted + self.by_source_deleted

    @property
    def affected(self) -> int:
        """All affected rows."""
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True, slots=True)
class MergeTimes:
    """Times of a merge in milliseconds: `total`, `materialize` for the source, and `scan` until the rows were found."""

    total: int
    materialize: int
    scan: int


def merge_counts(clauses: Sequence[Clause], rows: ChangedRows) -> MergeCounts:
    """Return the counts of a job; a deleted row counts once, however many rows it matched."""

    def total(kind: RowKind, action: RowAction) -> int:
        counted = zip(clauses, rows.counts[: len(clauses)], strict=True)
        return sum(n for clause, n in counted if clause.kind is kind and clause.action is action)

    by_source = total(RowKind.BY_SOURCE, RowAction.DELETE), total(RowKind.BY_SOURCE, RowAction.UPDATE)
    deleted = total(RowKind.MATCHED, RowAction.DELETE)
    if is_single_delete(clauses):
        deleted = sum(len(bitmap) for bitmap in rows.gone.values()) - sum(by_source)
    return MergeCounts(
        inserted=total(RowKind.NOT_MATCHED, RowAction.INSERT),
        matched_updated=total(RowKind.MATCHED, RowAction.UPDATE),
        by_source_updated=by_source[1],
        matched_deleted=deleted,
        by_source_deleted=by_source[0],
    )


def merge_metrics(
    changes: FileChanges, counts: MergeCounts, source_rows: int | None, times: MergeTimes
) -> dict[str, int]:
    """Return the metrics of a merge, with delta-spark's names; sizes are bytes. Unknown values are absent."""
    files, rewritten, new = file_metrics(changes), changes.rewritten, changes.rows.new
    return {
        **({} if source_rows is None else {"numSourceRows": source_rows}),
        "numTargetRowsInserted": counts.inserted,
        "numTargetRowsUpdated": counts.updated,
        "numTargetRowsMatchedUpdated": counts.matched_updated,
        "numTargetRowsNotMatchedBySourceUpdated": counts.by_source_updated,
        "numTargetRowsDeleted": counts.deleted,
        "numTargetRowsMatchedDeleted": counts.matched_deleted,
        "numTargetRowsNotMatchedBySourceDeleted": counts.by_source_deleted,
        "numTargetRowsCopied": rewritten.rows,
        "numOutputRows": new.rows + rewritten.rows,
        "numTargetFilesAdded": files["numAddedFiles"],
        "numTargetFilesRemoved": files["numRemovedFiles"],
        "numTargetBytesAdded": files["numAddedBytes"],
        "numTargetBytesRemoved": files["numRemovedBytes"],
        "numTargetChangeFilesAdded": files["numAddedChangeFiles"],
        **vector_metrics(changes, "numTargetDeletionVectors"),
        "executionTimeMs": times.total,
        "materializeSourceTimeMs": times.materialize,
        "scanTimeMs": times.scan,
        "rewriteTimeMs": times.total - times.scan,
    }


def merge_parameters(condition: str, clauses: Sequence[Clause], conditions: Sequence[str | None]) -> dict[str, str]:
    """Return the parameters of a merge; `conditions` are those of the clauses, as text."""

    def predicates(kind: RowKind) -> str:
        found = [
            {"predicate": text, "actionType": clause.word} if text is not None else {"actionType": clause.word}
            for clause, text in zip(clauses, conditions, strict=True)
            if clause.kind is kind
        ]
        return orjson.dumps(found).decode()

    return {
        "predicate": orjson.dumps([condition]).decode(),
        "matchedPredicates": predicates(RowKind.MATCHED),
        "notMatchedPredicates": predicates(RowKind.NOT_MATCHED),
        "notMatchedBySourcePredicates": predicates(RowKind.BY_SOURCE),
    }
