"""Tables that ask something of their rows, for classic sessions and for Spark Connect."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.hand_made import Json, add, field, lines, metadata

from pyspark_delta.table import Table

FEATURES = ["invariants", "checkConstraints", "generatedColumns", "allowColumnDefaults", "identityColumns"]


def table_of(
    location: Path, *fields: Json, partition: Iterable[str] = (), configuration: Mapping[str, str] | None = None
) -> str:
    """An empty table with these columns; its path."""
    log = location / "_delta_log"
    log.mkdir(parents=True)
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": FEATURES}
    actions = [{"protocol": protocol}, metadata(*fields, partition=partition, configuration=configuration)]
    (log / f"{0:020}.json").write_text("\n".join(json.dumps(action) for action in actions))
    return str(location)


def identity(name: str, start: int = 1, step: int = 1, explicit: bool = False, **extra: Any) -> Json:
    """An identity column."""
    keys = {"start": start, "step": step, "allowExplicitInsert": explicit, **extra}
    return field(name, "long", **{f"delta.identity.{key}": value for key, value in keys.items()})


def rows_in(location: str) -> list[dict[str, Any]]:
    """The rows of the table, by all their values."""
    return sorted(Table.open(location).scan().to_arrow().to_pylist(), key=str)


def mark_of(location: str, name: str) -> int | None:
    """The high-water mark of an identity column."""
    found = Table.open(location).schema.find(name)
    assert found is not None
    mark = found.metadata.get("delta.identity.highWaterMark")
    return None if mark is None else int(mark)


def with_a_file(location: str) -> None:
    """Two rows, in version 1 of a table with the columns `id` and `n`."""
    path = Path(location) / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2], "n": ["a", "b"]}), path)
    (Path(location) / "_delta_log" / f"{1:020}.json").write_text(lines([add(path.name, path.stat().st_size)]))
