"""Joins rows of a table with rows of a source, and finds the clause of each row of a merge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.engines.arrow.bound_merge import SOURCE, TARGET, BoundMerge, JoinKey
from pyspark_delta.expressions.evaluate import compute, evaluate
from pyspark_delta.expressions.literals import INTEGRAL_BITS
from pyspark_delta.expressions.tree import Cast, Expression, type_of
from pyspark_delta.scan.bounds import NEVER
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.types import LONG
from pyspark_delta.statements.merge.clauses import RowKind

NOWHERE = -1
"""No row of a side, or no clause."""
_PAIRS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Matches:
    """Rows that clauses take: `target` and `source` are the positions of their rows on the two sides.

    A position is -1 in rows that have no row on that side. `clause` is the number of the clause that takes a row.
    """

    target: np.ndarray
    source: np.ndarray
    clause: np.ndarray

    @classmethod
    def of(cls, target: np.ndarray | None, source: np.ndarray | None) -> Matches:
        """Return rows without clauses; None stands for rows that have none on that side."""
        side = source if target is None else target
        assert side is not None
        nowhere = np.full(len(side), NOWHERE)
        return cls(nowhere if target is None else target, nowhere if source is None else source, nowhere.copy())

    def only(self, mask: np.ndarray) -> Matches:
        """Return the rows that a mask selects."""
        return Matches(self.target[mask], self.source[mask], self.clause[mask])


class SourceSide:
    """Rows of a source; `is_matched` records which of them matched rows of the table."""

    def __init__(self, merge: BoundMerge, rows: pa.RecordBatch) -> None:
        self._merge, self.rows = merge, rows
        self.is_matched = np.zeros(rows.num_rows, np.bool_)
        self._keys = [_of_source(key, rows.column(key.source.name)) for key in merge.keys]

    def matches(self, target: pa.RecordBatch) -> Matches:
        """Return the rows of the table that a clause takes. Raises ComputationError for a condition."""
        rows, given = self._joined(target)
        self.is_matched[given] = True
        found = self._chosen(RowKind.MATCHED, Matches.of(rows, given), target)
        if not self._merge.has(RowKind.BY_SOURCE):
            return found
        is_alone = np.ones(target.num_rows, np.bool_)
        is_alone[rows] = False
        alone = self._chosen(RowKind.BY_SOURCE, Matches.of(np.flatnonzero(is_alone), None), target)
        return Matches(
            *(np.concatenate([getattr(part, name) for part in (found, alone)]) for name in Matches.__slots__)
        )

    def unmatched(self) -> Matches:
        """Return the rows that matched no row of the table and that a clause takes."""
        rows = Matches.of(None, np.flatnonzero(~self.is_matched))
        return self._chosen(RowKind.NOT_MATCHED, rows, self.rows.slice(0, 0))

    def _joined(self, target: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of matching rows, in the order of the table."""
        rest = self._merge.rest
        if not self._keys:
            return self._crossed(target, rest)
        rows, given = _equal(
            self._merge.keys, [compute(_joined_as(key), target) for key in self._merge.keys], self._keys
        )
        if rest is not None and len(rows):
            kept = _is_true(rest, sides(target, self.rows, rows, given))
            rows, given = rows[kept], given[kept]
        return rows, given

    def _crossed(self, target: pa.RecordBatch, rest: Expression | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of rows that meet a condition, without keys: each pair is looked at."""
        none = np.empty(0, np.int64)
        if rest == NEVER or not self.rows.num_rows:
            return none, none
        found: list[tuple[np.ndarray, np.ndarray]] = [(none, none)]
        at_once = max(1, _PAIRS_AT_ONCE // self.rows.num_rows)
        for start in range(0, target.num_rows, at_once):
            block = np.arange(start, min(start + at_once, target.num_rows))
            rows = np.repeat(block, self.rows.num_rows)
            given = np.tile(np.arange(self.rows.num_rows), len(block))
            if rest is not None:
                kept = _is_true(rest, sides(target, self.rows, rows, given))
                rows, given = rows[kept], given[kept]
            found.append((rows, given))
        return np.concatenate([rows for rows, _ in found]), np.concatenate([given for _, given in found])

    def _chosen(self, kind: RowKind, found: Matches, target: pa.RecordBatch) -> Matches:
        """Return the rows of a kind that a clause takes: the first whose condition is true.

        Later conditions see only rows that are left over.
        """
        for number, clause in enumerate(self._merge.clauses):
            if clause.kind is not kind:
                continue
            left = np.flatnonzero(found.clause == NOWHERE)
            if clause.condition is not None and len(left):
                both = sides(target, self.rows, found.target[left], found.source[left])
                left = left[_is_true(clause.condition, both)]
            found.clause[left] = number
        return found.only(found.clause != NOWHERE)


def sides(target: pa.RecordBatch, source: pa.RecordBatch, rows: np.ndarray, given: np.ndarray) -> pa.RecordBatch:
    """Return rows of both sides next to each other, as structs.

    The struct of a side is missing if the positions are none.
    """
    structs = {}
    for name, side, positions in ((SOURCE, source, given), (TARGET, target, rows)):
        if not len(positions) or positions[0] != NOWHERE:
            structs[name] = side.take(pa.array(positions)).to_struct_array()
    return pa.RecordBatch.from_pydict(structs)


def without_repetitions(found: Matches, is_deleted: np.ndarray) -> Matches:
    """Return the rows with each deleted row of the table, as `is_deleted` says, only once."""
    deleted = np.flatnonzero(is_deleted)
    _, first = np.unique(found.target[deleted], return_index=True)
    kept = ~is_deleted
    kept[deleted[first]] = True
    return found.only(kept)


def repeated_rows(found: Matches, is_deleted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the deleted rows of the table, as `is_deleted` says, that occur more than once, and how often."""
    rows, counts = np.unique(found.target[is_deleted], return_counts=True)
    return rows[counts > 1], counts[counts > 1]


def source_keys(keys: Sequence[JoinKey], rows: pa.RecordBatch | pa.Table) -> list[pa.Array]:
    """Return the keys of rows of the source, in the types in which both sides are compared."""
    return [_of_source(key, rows.column(key.source.name)) for key in keys]


def target_keys(keys: Sequence[JoinKey]) -> tuple[Expression, ...]:
    """Return the keys of rows of the table, in the types in which both sides are compared."""
    return tuple(_joined_as(key) for key in keys)


def _is_true(condition: Expression, rows: pa.RecordBatch) -> np.ndarray:
    passed: np.ndarray = pc.fill_null(evaluate(condition, rows), False).to_numpy(zero_copy_only=False)
    return passed


def _equal(
    keys: Sequence[JoinKey], target: Sequence[pa.Array], source: Sequence[pa.Array]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of rows with equal keys, in the order of the table; null equals null in null-safe keys."""
    ours, theirs = [], []
    for key, one, other in zip(keys, target, source, strict=True):
        if key.is_null_safe:  # a join never matches null: the number of the value takes its place
            both = pa.concat_arrays([_plain(one), _plain(other)]).dictionary_encode(null_encoding="encode").indices
            one, other = both.slice(0, len(one)), both.slice(len(one))
        ours.append(one)
        theirs.append(other)
    names = [f"k{number}" for number in range(len(keys))]
    joined = pa.table([*ours, pa.array(np.arange(len(ours[0])))], [*names, "t"]).join(
        pa.table([*theirs, pa.array(np.arange(len(theirs[0])))], [*names, "s"]), names, join_type="inner"
    )
    rows, given = joined["t"].to_numpy(), joined["s"].to_numpy()
    order = np.lexsort((given, rows))
    return rows[order], given[order]


def _plain(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _joined_as(key: JoinKey) -> Expression:
    """Return the column of the table in the type in which both sides are compared."""
    is_wide = key.target.type == LONG or key.target.type not in INTEGRAL_BITS
    return key.target if is_wide else Cast(key.target, LONG)


def _of_source(key: JoinKey, values: pa.Array) -> pa.Array:
    """Return the column of the source in that type."""
    return values.cast(to_arrow(type_of(_joined_as(key))))
