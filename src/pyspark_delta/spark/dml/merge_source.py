"""The source of a MERGE: evaluated once, or kept where it has to be looked at before the job; and its keys."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

import pyspark.sql.functions as sf
from pyspark.storagelevel import StorageLevel

from pyspark_delta.expressions.coercion import compare
from pyspark_delta.expressions.literals import NotExactError, zone_of
from pyspark_delta.expressions.tree import Expression, In, Literal, all_of
from pyspark_delta.scan.bounds import NEVER
from pyspark_delta.schema.types import BYTE, INTEGER, SHORT, DataType
from pyspark_delta.spark.dml.merge_condition import Key
from pyspark_delta.spark.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Source rows of which the keys themselves are looked for in the files, not only their range.
_MOST_VALUES = 1_000
# Nodes of a plan that are evaluated again at the cost of reading, with the same rows.
_CHEAP = {"Project", "Filter", "SubqueryAlias", "View", "LocalRelation", "OneRowRelation", "Range", "LogicalRelation"}
_BITS: dict[DataType, int] = {BYTE: 8, SHORT: 16, INTEGER: 32}


@dataclass(frozen=True, slots=True)
class SourceKeys:
    """How many rows a source has, and what rows of the table must meet to match one of them."""

    rows: int
    predicate: Expression | None


@contextmanager
def settled(source: DataFrame) -> Iterator[tuple[DataFrame, int]]:
    """A source that may be evaluated more than once, with the same rows each time; and the ms that this took."""
    start = time.monotonic()
    if _is_repeatable(source):
        yield source, 0
    elif hasattr(source, "_jdf"):
        kept = source.localCheckpoint()
        yield kept, int((time.monotonic() - start) * 1000)
    else:
        # A checkpoint would be another frame for the server, which columns of the source do not belong to.
        was_kept = source.storageLevel != StorageLevel.NONE
        source.persist()
        try:
            yield source, 0
        finally:
            if not was_kept:
                source.unpersist()


def find_keys(source: DataFrame, keys: Sequence[Key], time_zone: str) -> SourceKeys:
    """Look at the keys of a source: all values where there are few, else their ranges. Runs one or two jobs."""
    names = [f"k{number}" for number in range(len(keys))]
    selected = source.select(
        *(sf.col(".".join(map(quoted, key.source))).alias(name) for key, name in zip(keys, names, strict=True))
    )
    bounds = [f(sf.col(n)).alias(f"{w}_{n}") for n in names for w, f in (("least", sf.min), ("greatest", sf.max))]
    [found] = selected.agg(sf.count(sf.lit(1)).alias("rows"), *bounds).toArrow().to_pylist()
    rows: int = found["rows"]
    values: dict[str, list[Any]] = {}
    if 0 < rows <= _MOST_VALUES:
        distinct = selected.distinct().toArrow()
        values = {name: sorted(set(distinct[name].drop_null().to_pylist())) for name in names}
    zone = zone_of(time_zone)
    parts = [
        _range(key, found[f"least_{name}"], found[f"greatest_{name}"], zone)
        for key, name in zip(keys, names, strict=True)
    ]
    parts += [_one_of(key, values[name]) for key, name in zip(keys, names, strict=True) if name in values]
    return SourceKeys(rows, all_of(*(part for part in parts if part is not None)))


def _range(key: Key, least: Any, greatest: Any, zone: tzinfo) -> Expression | None:
    if least is None:
        return NEVER  # no key but null, which equals nothing
    try:
        return all_of(
            compare(">=", key.column, Literal(least, key.source_type), zone),
            compare("<=", key.column, Literal(greatest, key.source_type), zone),
        )
    except NotExactError:
        return None


def _one_of(key: Key, values: Sequence[Any]) -> Expression | None:
    bits = _BITS.get(key.column.type)
    if bits is not None:
        values = [value for value in values if -(1 << bits - 1) <= value < 1 << bits - 1]
    return In(key.column, tuple(Literal(value, key.column.type) for value in values)) if values else None


def _is_repeatable(source: DataFrame) -> bool:
    """Whether evaluating the source again is cheap, and certain to give the same rows."""
    frame: Any = source
    if not hasattr(frame, "_jdf"):
        return False
    open_plans = [frame._jdf.queryExecution().analyzed()]
    while open_plans:
        plan = open_plans.pop()
        if plan.getClass().getSimpleName() not in _CHEAP or not plan.deterministic():
            return False
        if plan.getClass().getSimpleName() == "LogicalRelation":
            relation = plan.relation().getClass().getSimpleName()
            if relation != "HadoopFsRelation":
                return False
        children = plan.children()
        open_plans += [children.apply(i) for i in range(children.size())]
    return True
