"""The same merges by delta-spark and by us, on copies of one table: equal rows, counts, metrics and changes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.lengths import FULL

from pyspark_delta.spark.api.table import DeltaTable
from pyspark_delta.spark.engine.write.save import save
from pyspark_delta.table import Table

VECTORS, FEED = {"delta.enableDeletionVectors": "true"}, {"delta.enableChangeDataFeed": "true"}
VARIANTS = {"rewriting": {}, "vectors": VECTORS, "feed": FEED, "feed_and_vectors": {**FEED, **VECTORS}}
# Null keys on both sides, a key that only one side has, rows in three files.
ROWS = "(1, 'a', 10, 0), (2, 'b', 20, 1)", "(3, 'c', 30, 0), (4, 'd', 40, 1), (null, 'n', 0, 0)", "(5, 'e', 50, 1)"
SOURCE = """select * from values (2, 'B', 200, 1), (4, 'D', 400, 0), (5, 'E', 500, 1), (6, 'F', 600, 0),
(7, 'G', 700, 1), (null, 'N', 1, 1) as s(id, k, v, p)"""
SAME = ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")
# How many files there are is a matter of tasks, and times and bytes are never the same.
EQUAL_METRICS = (
    "numSourceRows",
    "numTargetRowsInserted",
    "numTargetRowsUpdated",
    "numTargetRowsMatchedUpdated",
    "numTargetRowsNotMatchedBySourceUpdated",
    "numTargetRowsDeleted",
    "numTargetRowsMatchedDeleted",
    "numTargetRowsNotMatchedBySourceDeleted",
    "numTargetFilesRemoved",
    "numTargetDeletionVectorsAdded",
    "numTargetDeletionVectorsUpdated",
)


@dataclass(frozen=True)
class Clause:
    """One clause: a method of the builder, and what SQL has in its place."""

    method: str
    condition: str | None = None
    values: Mapping[str, str] | None = None

    @property
    def sql(self) -> str:
        """The clause in SQL."""
        kind = next(words for name, words in _KINDS.items() if self.method.startswith(name))
        action = self.method.removeprefix(next(n for n in _KINDS if self.method.startswith(n)))
        given = self.values or {}
        text = {
            "UpdateAll": "update set *",
            "InsertAll": "insert *",
            "Delete": "delete",
            "Update": f"update set {', '.join(f'{name} = {value}' for name, value in given.items())}",
            "Insert": f"insert ({', '.join(given)}) values ({', '.join(given.values())})",
        }[action]
        return f"when {kind} {f'and {self.condition} ' if self.condition else ''}then {text}"

    def arguments(self) -> dict[str, Any]:
        """What the method takes."""
        found: dict[str, Any] = {"condition": self.condition}
        if self.values is not None:
            found["values" if self.method.endswith("Insert") else "set"] = self.values
        return found


_KINDS = {
    "whenMatched": "matched",
    "whenNotMatchedBySource": "not matched by source",
    "whenNotMatched": "not matched",
}


@dataclass(frozen=True)
class Case:
    """One merge; `partitioned` by p. `make test` runs it for the first of its variants, `make test-long` for all."""

    clauses: tuple[Clause, ...]
    variants: tuple[str, ...]
    source: str = SOURCE
    condition: str = "t.id = s.id"
    evolves: bool = False
    partitioned: bool = False
    differ: tuple[str, ...] = field(default_factory=tuple)


# What cases of several clauses do too, left to `make test-long`.
OF_OTHERS = () if FULL else ("upsert", "update", "insert", "only_by_source")
UPSERT = (Clause("whenMatchedUpdateAll"), Clause("whenNotMatchedInsertAll"))
CASES = {
    "upsert": Case(UPSERT, ("feed_and_vectors", "rewriting")),
    "update": Case((Clause("whenMatchedUpdate", None, {"v": "t.v + s.v", "k": "s.k"}),), ("vectors", "feed")),
    # Where rows only go, readers see which from the vectors.
    "delete": Case((Clause("whenMatchedDelete"),), ("feed", "feed_and_vectors"), differ=("cdc",)),
    "insert": Case((Clause("whenNotMatchedInsert", "s.v > 600", {"id": "s.id", "v": "s.v * 2"}),), ("vectors", "feed")),
    "first_clause_wins": Case(
        (
            Clause("whenMatchedUpdate", "t.v > 45", {"k": "'first'"}),
            Clause("whenMatchedDelete", "t.v > 30"),
            Clause("whenMatchedUpdate", None, {"k": "concat(t.k, s.k)"}),
            Clause("whenNotMatchedInsert", "s.id = 6", {"id": "s.id", "k": "'six'"}),
            Clause("whenNotMatchedInsertAll"),
        ),
        ("feed_and_vectors", "rewriting"),
        partitioned=True,
    ),
    "by_source": Case(
        (
            Clause("whenMatchedUpdate", None, {"v": "s.v"}),
            Clause("whenNotMatchedInsertAll"),
            Clause("whenNotMatchedBySourceUpdate", "t.v >= 10 and t.id < 2", {"k": "'gone'"}),
            Clause("whenNotMatchedBySourceDelete", "t.id is null"),
        ),
        ("feed", "vectors"),
    ),
    # delta-spark writes files anew in which every row stays.
    "only_by_source": Case(
        (Clause("whenNotMatchedBySourceDelete"),), ("rewriting", "vectors"), differ=("numTargetFilesRemoved",)
    ),
    "null_safe": Case(UPSERT, ("vectors",), condition="t.id <=> s.id"),
    "own_condition": Case(UPSERT, ("rewriting",), condition="t.id = s.id and t.p = 1 and t.v < 50", partitioned=True),
    "moves_between_partitions": Case(
        (Clause("whenMatchedUpdate", None, {"p": "1 - t.p"}),), ("feed",), partitioned=True
    ),
    "many_match_one_that_goes": Case(
        (Clause("whenMatchedDelete"), Clause("whenNotMatchedInsertAll")),
        ("vectors",),  # with the feed, delta-spark counts all inserted rows, but the table lacks some of them
        source=f"{SOURCE} union all select 2, 'B', 201, 1 union all select 5, 'E', 501, 1",
    ),
    "evolution": Case(
        UPSERT,
        ("vectors", "rewriting"),
        source="select 2 id, 'B' k, 3 extra, named_struct('x', 1) s union all select 8, 'H', 4, null",
        evolves=True,
    ),
    "evolution_of_what_is_named": Case(
        (Clause("whenMatchedUpdate", None, {"extra": "s.extra"}), Clause("whenNotMatchedInsert", None, {"id": "s.id"})),
        ("rewriting",),
        source="select 2 id, 3 extra, 9 other union all select 8, 4, 5",
        evolves=True,
    ),
}


def make(spark: SparkSession, location: Path, variant: str, *, partitioned: bool) -> None:
    """The table to begin with, in three commits of a file each, or of one for each partition."""
    for rows in ROWS:
        frame = spark.sql(f"select /*+ coalesce(1) */ * from values {rows} as r(id, k, v, p)")
        options = VARIANTS[variant] if not location.exists() else {}
        save(frame, str(location), "append", ["p"] if partitioned else None, options)


def history(location: Path) -> dict[str, Any]:
    """The commitInfo of the latest commit, and how many actions of each kind it has."""
    last = max((location / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in last.read_text().splitlines()]
    found: dict[str, Any] = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    return {**found, "cdc": sum("cdc" in action for action in actions)}


CHANGES = (
    "select to_json(struct(* except (_commit_version, _commit_timestamp))) as row "
    "from table_changes_by_path('{table}', {version}) order by row"
)


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of tables to copy."""
    return tmp_path_factory.mktemp("bases")


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        (name, variant)
        for name, case in CASES.items()
        if name not in OF_OTHERS
        for variant in (case.variants if FULL else case.variants[:1])
    ],
)
def test_merges_as_delta_spark_does(
    name: str, variant: str, bases: Path, tmp_path: Path, delta_spark_server: Any, our_spark: SparkSession
) -> None:
    case = CASES[name]
    base = bases / f"{variant}-{case.partitioned}"
    if not base.exists():
        make(our_spark, base, variant, partitioned=case.partitioned)
    theirs, ours = (Path(shutil.copytree(base, tmp_path / name)) for name in ("theirs", "ours"))
    [their_counts] = delta_spark_server.ask(
        "rows",
        statement=f"merge {'with schema evolution ' if case.evolves else ''}into delta.`{theirs}` t "
        f"using ({case.source}) s on {case.condition} " + " ".join(clause.sql for clause in case.clauses),
    )
    builder = DeltaTable.forPath(our_spark, str(ours)).alias("t").merge(
        our_spark.sql(case.source).alias("s"), case.condition
    )  # fmt: skip
    for clause in case.clauses:
        builder = getattr(builder, clause.method)(**clause.arguments())
    [our_counts] = (builder.withSchemaEvolution() if case.evolves else builder).execute().collect()
    assert {k: our_counts[k] for k in SAME} == {k: their_counts[k] for k in SAME}

    expected = rows_of(Table.open(str(theirs)).scan().to_arrow())
    assert rows_of(Table.open(str(ours)).scan().to_arrow()) == expected
    assert rows_of(delta_spark_server.read(ours)) == expected
    our_info, their_info = history(ours), history(theirs)
    metrics, their_metrics = our_info["operationMetrics"], their_info["operationMetrics"]
    assert set(their_metrics) <= set(metrics)
    checked = [metric for metric in EQUAL_METRICS if metric not in case.differ]
    assert {m: metrics[m] for m in checked} == {m: their_metrics.get(m, "0") for m in checked}
    assert "cdc" in case.differ or bool(our_info["cdc"]) == bool(their_info["cdc"])
    assert set(our_info["operationParameters"]) == set(their_info["operationParameters"])
    if "feed" in variant:
        changes = [
            delta_spark_server.ask("rows", statement=CHANGES.format(table=table, version=len(ROWS)))
            for table in (ours, theirs)
        ]
        assert changes[0] == changes[1]


def rows_of(table: Any) -> list[str]:
    """The rows of a table, in an order of their own."""
    return sorted(json.dumps(row, sort_keys=True) for row in table.to_pylist())
