"""Tables of every feature without Spark, and every kind of change of them: for peers to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from pyspark_delta.table import Table

SCHEMA = "id BIGINT, n INT, p STRING, at TIMESTAMP"
AT = datetime(2024, 1, 31, 12, 30, tzinfo=UTC)


@dataclass(frozen=True)
class Kind:
    """A table: `added` are columns beside those of `SCHEMA`, `refused` the word by which deltalake refuses it.

    `skips` are changes that Arrow does not make in such a table.
    """

    properties: Mapping[str, object] = field(default_factory=dict)
    added: str = ""
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    between: Callable[[Table], object] = lambda table: None
    refused: str = ""
    skips: tuple[str, ...] = ()


VECTORS = {"delta.enableDeletionVectors": True}
FEED = {"delta.enableChangeDataFeed": True}
DEFAULTS = {"delta.feature.allowColumnDefaults": "supported"}
KINDS: dict[str, Kind] = {
    "plain": Kind(),
    "vectors": Kind(VECTORS),
    "partitions": Kind(partition_by=("p",)),
    "partitions and vectors": Kind(VECTORS, partition_by=("p",)),
    "clustering": Kind(cluster_by=("id", "p")),
    "names mapped": Kind({"delta.columnMapping.mode": "name"}, partition_by=("p",)),
    "ids mapped": Kind({"delta.columnMapping.mode": "id"}, partition_by=("p",)),
    "names mapped and vectors": Kind({**VECTORS, "delta.columnMapping.mode": "name"}, partition_by=("p",)),
    "row tracking": Kind({"delta.enableRowTracking": True}),
    "row tracking and vectors": Kind({**VECTORS, "delta.enableRowTracking": True}),
    "change feed": Kind(FEED),
    "change feed and vectors": Kind({**FEED, **VECTORS}),
    "in-commit timestamps": Kind({"delta.enableInCommitTimestamps": True}),
    "v2 checkpoints": Kind({"delta.checkpointPolicy": "v2", "delta.checkpointInterval": 2}),
    "checkpoints": Kind({**VECTORS, "delta.checkpointInterval": 2}),
    "timestamps without zone": Kind(added="local TIMESTAMP_NTZ", skips=("merge",)),
    "constraints": Kind({"delta.constraints.small": "n IS NULL OR n < 1000"}),
    "defaults": Kind(DEFAULTS, added="d INT DEFAULT 5", skips=("merge",)),
    "generated columns": Kind(added="day DATE GENERATED ALWAYS AS (CAST(at AS DATE))", skips=("update", "merge")),
    "identity columns": Kind(added="k BIGINT GENERATED ALWAYS AS IDENTITY", skips=("update", "merge")),
    "type widening": Kind(
        {"delta.enableTypeWidening": True},
        between=lambda table: table.alter().change_type("n", "BIGINT"),
        refused="TypeWidening",
    ),
    "everything": Kind(
        {**VECTORS, **FEED, "delta.columnMapping.mode": "name", "delta.enableRowTracking": True,
         "delta.enableInCommitTimestamps": True, "delta.checkpointInterval": 2},
        partition_by=("p",),
    ),
}  # fmt: skip


def rows(first: int, count: int, n: int) -> pa.Table:
    return pa.table(
        {
            "id": list(range(first, first + count)),
            "n": pa.array([n] * count, pa.int32()),
            "p": ["a", "b c", None][:count] + ["ü%"] * (count - 3),
            "at": [AT] * count,
        }
    )


def merge(table: Table) -> object:
    builder = table.merge(rows(4, 9, 50), "target.id = source.id").when_matched_delete("source.id = 5")
    return builder.when_matched_update({"n": "source.n + target.id"}).when_not_matched_insert_all().execute()


CHANGES: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append(rows(20, 4, 3)),
    "delete": lambda table: table.delete("id = 1 OR id = 22"),
    "update": lambda table: table.update({"n": "n + 1", "p": "'moved'"}, "id % 2 = 0"),
    "merge": merge,
    "overwrite where": lambda table: table.overwrite(rows(20, 2, 9), where="id = 20 OR id = 21"),
    "overwrite dynamically": lambda table: table.overwrite(rows(60, 1, 4), partitions="dynamic"),
    "add a column": lambda table: table.alter().add_column("more", "STRING"),
    "append more": lambda table: table.append(rows(80, 3, 1)),
    "overwrite": lambda table: table.overwrite(rows(90, 5, 2)),
}


def changed(name: str, path: Path) -> Iterator[tuple[str, Table]]:
    """Make a table of a kind, and yield it after each change, with the name of the change."""
    kind = KINDS[name]
    schema = f"{SCHEMA}, {kind.added}" if kind.added else SCHEMA
    table = Table.create(
        path, schema, partition_by=kind.partition_by, cluster_by=kind.cluster_by, properties=kind.properties
    )
    table.append(rows(0, 10, 1))
    kind.between(table)
    for change, run in CHANGES.items():
        if change in kind.skips or (change == "overwrite dynamically" and not kind.partition_by):
            continue
        version = table.version
        run(table)
        assert table.version > version, change
        yield change, table
