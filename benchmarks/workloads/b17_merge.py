"""B17: merge rows into a table: upserts, inserts and deletes in all files and in few, and those of TPC-H.

The variants that begin with "sample" are the cases that the reference implementation measures itself with: its sources
are drawn from the rows of some of the table's files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from benchmarks.model import Goal, Growth, Scale, Variant, Workload, dataset, size
from benchmarks.tpch import KEY, MEASURE
from benchmarks.workloads.row_changes import ALL, AS_DELTA_SPARK, AS_DELTALAKE, BY_HAND, DELTA_SPARK, FILES, PEERS

_GOALS = (AS_DELTA_SPARK, AS_DELTALAKE, Goal(BY_HAND, 1 / 1.3))
_SPREAD = "upsert of 1 %, spread"
_DELETES = {"updates": False, "deletes": True, "inserts": ()}
_FEW_FILES, _HALF_OF_FILES, _ALL_FILES = 0.05, 0.5, 1.0
_UPSERTS = (  # files touched, rows of these that match, rows with new keys: shares
    (_FEW_FILES, 0.1, 0.01),
    (_FEW_FILES, 0.0, 0.1),
    (_FEW_FILES, 0.01, 0.1),
    (_FEW_FILES, 0.1, 0.0),
    (_HALF_OF_FILES, 0.01, 0.001),
    (_ALL_FILES, 0.01, 0.001),
    (_FEW_FILES, 0.5, 0.001),
    (_FEW_FILES, 0.99, 0.001),
    (_FEW_FILES, 1.0, 0.001),
)


def workload(scale: Scale) -> Workload:
    """With deletion vectors, and with files rewritten."""
    rows = scale.rows
    peers = tuple(replace(peer, processes=1) if peer.name == DELTA_SPARK else peer for peer in PEERS)  # it takes long
    variants = (*_spread(rows), *_few(rows), *_samples(rows), *_spread(5 * rows), *_lineitem(2 * rows))
    return Workload("B17", "Merge", peers, variants)


def _spread(rows: int) -> tuple[Variant, ...]:
    """An upsert of every hundredth row."""
    source = {"start": 0, "stop": rows, "step": 100, "new": rows // 1000}
    rewrite = _variant(_SPREAD, rows, vectors=False, **source)
    third = Growth(rewrite.name, 1 / 3.5)
    return (_variant(_SPREAD, rows, third, vectors=True, **source), rewrite)


def _few(rows: int) -> Iterator[Variant]:
    """Rows in one file, and statements that change little."""
    spread = {"start": 0, "stop": rows, "step": 100, "new": 0}
    in_one = {"start": rows // 2, "stop": rows // 2 + rows // 100, "step": 1, "new": rows // 1000}
    for vectors in (True, False):
        yield _variant("upsert of 1 %, in one file", rows, vectors=vectors, **in_one)
    yield _variant("delete of 1 %, spread", rows, vectors=True, **_DELETES, **spread)
    yield _variant("insert of nothing, 1 % looked for", rows, vectors=True, updates=False, **spread)


def _samples(rows: int) -> Iterator[Variant]:
    """The cases of the reference implementation."""

    def variant(name: str, touched: float, matched: float, unmatched: float, vectors: bool, **clauses: Any) -> Variant:
        sample = {"files": FILES, "touched": touched, "matched": matched, "unmatched": unmatched}
        named = f"sample: {name}, {_shares(touched, matched, unmatched)}"
        return _variant(named, rows, vectors=vectors, sample=sample, **clauses)

    for unmatched in (0.05, 0.5, 1.0):
        yield variant("insert", _FEW_FILES, 0.0, unmatched, True, updates=False)
    for unmatched in (0.05, 0.5, 1.0):
        clauses = {"updates": False, "inserts": ("s.id % 2 = 0", *ALL)}
        yield variant("insert by two clauses", _FEW_FILES, 0.0, unmatched, True, **clauses)
    for vectors in (True, False):
        yield variant("delete", _FEW_FILES, 0.05, 0.0, vectors, **_DELETES)
        for shares in _UPSERTS:
            yield variant("upsert", *shares, vectors)


def _shares(touched: float, matched: float, unmatched: float) -> str:
    """For instance 5% of files, 10% matched, 0.1% new; what is none is left out."""
    shares = ((touched, "of files"), (matched, "matched"), (unmatched, "new"))
    return ", ".join(f"{100 * share:g}% {kind}" for share, kind in shares if share)


def _lineitem(rows: int) -> Iterator[Variant]:
    """An upsert by two columns into a table of sixteen."""
    plain = dataset("lineitem", rows=rows, files=FILES)
    source = dataset("lineitem_source", rows=rows, files=FILES, every=100, new=rows // 1000)
    for vectors in (True, False):
        yield Variant(
            f"TPC-H lineitem, {size(rows)} rows, upsert of 1 %, {_way(vectors)}",
            dataset("lineitem", rows=rows, files=FILES, vectors=vectors),
            {"kind": "merge", "key": KEY, "measure": MEASURE},
            _GOALS,
            others={"plain": plain, "source": source},
        )


def _variant(name: str, rows: int, *goals: Goal | Growth, vectors: bool, **statement: Any) -> Variant:
    return Variant(
        f"{size(rows)} rows, {name}, {_way(vectors)}",
        dataset("data", rows=rows, files=FILES, vectors=vectors),
        {"kind": "merge", "rows": rows, **statement},
        (*_GOALS, *goals),
        others={"plain": dataset("data", rows=rows, files=FILES)},
    )


def _way(vectors: bool) -> str:
    return "vectors" if vectors else "rewrite"
