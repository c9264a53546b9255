"""Finds the matching rows of two sides, and the clause of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.engines.arrow.bound_merge import SOURCE, TARGET, BoundMerge, JoinKey
from pyspark_delta.engines.arrow.key_search import Keys
from pyspark_delta.expressions.evaluate import compute, evaluate
from pyspark_delta.expressions.literals import INTEGRAL_BITS
from pyspark_delta.expressions.tree import Cast, Expression, type_of
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.types import LONG
from pyspark_delta.statements.merge.clauses import RowKind

_NOWHERE = -1  # no row of the source, or no clause


@dataclass(frozen=True, slots=True)
class Matches:
    """Rows that clauses take: `target` and `source` are the positions of their rows on the two sides.

    `target` is -1 in rows that match nothing. `clause` is the number of the clause that takes a row.
    """

    target: np.ndarray
    source: np.ndarray
    clause: np.ndarray

    def only(self, mask: np.ndarray) -> Matches:
        """Return the rows that a mask selects."""
        return Matches(self.target[mask], self.source[mask], self.clause[mask])


def keys_of(keys: Sequence[JoinKey], source: pa.RecordBatch) -> Keys:
    """Return the values that columns of the table may have to match a row of the source."""
    values = tuple(pc.unique(_of_source(key, source)).drop_null() for key in keys)
    return Keys(tuple(_joined_as(key) for key in keys), values)


def find_matches(merge: BoundMerge, target: pa.RecordBatch, source: pa.RecordBatch) -> Matches:
    """Return the rows that a clause takes. Raises ComputationError if a condition cannot be computed."""
    rows, given = _joined(merge.keys, target, source)
    if merge.rest is not None and len(rows):
        kept = _is_true(merge.rest, sides(target, source, rows, given))
        rows, given = rows[kept], given[kept]
    matched = Matches(rows, given, np.full(len(rows), _NOWHERE))
    is_matched = np.zeros(source.num_rows, np.bool_)
    is_matched[given] = True
    others = np.flatnonzero(~is_matched)
    unmatched = Matches(np.full(len(others), _NOWHERE), others, np.full(len(others), _NOWHERE))
    parts = []
    for kind, found in ((RowKind.MATCHED, matched), (RowKind.NOT_MATCHED, unmatched)):
        _choose(merge, kind, found, target, source)
        parts.append(found.only(found.clause != _NOWHERE))
    return Matches(*(np.concatenate([getattr(part, name) for part in parts]) for name in Matches.__slots__))


def sides(target: pa.RecordBatch, source: pa.RecordBatch, rows: np.ndarray, given: np.ndarray) -> pa.RecordBatch:
    """Return rows of both sides next to each other, as structs.

    The table's struct is missing if `rows` are no positions.
    """
    structs = {SOURCE: source.take(pa.array(given)).to_struct_array()}
    if not len(rows) or rows[0] != _NOWHERE:
        structs[TARGET] = target.take(pa.array(rows)).to_struct_array()
    return pa.RecordBatch.from_pydict(structs)


def without_repetitions(found: Matches, is_gone: np.ndarray) -> Matches:
    """Return the rows with each deleted row of the table, as `is_gone` says, only once."""
    gone = np.flatnonzero(is_gone)
    _, first = np.unique(found.target[gone], return_index=True)
    kept = ~is_gone
    kept[gone[first]] = True
    return found.only(kept)


def has_repetitions(found: Matches, is_gone: np.ndarray) -> bool:
    """Return True if a deleted row of the table, as `is_gone` says, occurs more than once."""
    rows = found.target[is_gone]
    return len(np.unique(rows)) < len(rows)


def _choose(merge: BoundMerge, kind: RowKind, found: Matches, target: pa.RecordBatch, source: pa.RecordBatch) -> None:
    """Set for each row of a kind the first clause whose condition is true; later conditions see only rows left over."""
    for number, clause in enumerate(merge.clauses):
        if clause.kind is not kind:
            continue
        left = np.flatnonzero(found.clause == _NOWHERE)
        if clause.condition is not None and len(left):
            left = left[_is_true(clause.condition, sides(target, source, found.target[left], found.source[left]))]
        found.clause[left] = number


def _is_true(condition: Expression, rows: pa.RecordBatch) -> np.ndarray:
    passed: np.ndarray = pc.fill_null(evaluate(condition, rows), False).to_numpy(zero_copy_only=False)
    return passed


def _joined(keys: Sequence[JoinKey], target: pa.RecordBatch, source: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of rows with equal keys, in the order of the table; null equals nothing."""
    names = [f"k{number}" for number in range(len(keys))]
    ours = pa.table([compute(_joined_as(key), target) for key in keys], names)
    theirs = pa.table([_of_source(key, source) for key in keys], names)
    both = ours.append_column("t", pa.array(np.arange(len(ours)))).join(
        theirs.append_column("s", pa.array(np.arange(len(theirs)))), names, join_type="inner"
    )
    rows, given = both["t"].to_numpy(), both["s"].to_numpy()
    order = np.lexsort((given, rows))
    return rows[order], given[order]


def _joined_as(key: JoinKey) -> Expression:
    """Return the column of the table in the type in which both sides are compared."""
    is_wide = key.target.type == LONG or key.target.type not in INTEGRAL_BITS
    return key.target if is_wide else Cast(key.target, LONG)


def _of_source(key: JoinKey, source: pa.RecordBatch) -> pa.Array:
    """Return the column of the source in that type."""
    return source.column(key.source.name).cast(to_arrow(type_of(_joined_as(key))))
