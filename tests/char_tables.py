"""Tables whose char(n) columns have padded and short texts in data files, as delta-spark leaves them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.hand_made import Json, add

from pyspark_delta import Table

DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
KINDS = ["plain", "partitioned", "mapped", "vectors"]
_PROPERTIES = {"mapped": {"delta.columnMapping.mode": "name"}, "vectors": {"delta.enableDeletionVectors": "true"}}


def char_table(path: Path, kind: str = "plain", **properties: str) -> Table:
    """Make a table with three rows; `c` is 'x' as it stands in the file, 'yy ', and null."""
    table = Table.create(
        str(path),
        "id BIGINT, c CHAR(3), d CHAR(5), s STRUCT<c: CHAR(3)>",
        partition_by=["c"] if kind == "partitioned" else [],
        properties={**_PROPERTIES.get(kind, {}), **properties},
    )
    table.append({"id": [2, 3], "c": ["yy", None], "d": ["yy", None]})
    _add_short(table, path, {"id": 1, "c": "x", "d": "x", "s": {"c": "x"}}, table.version + 1)
    return Table.open(str(path))


def _add_short(table: Table, path: Path, row: Json, version: int) -> None:
    """Commit a file with a row whose texts are short."""
    schema = table.snapshot.schema
    physical = {f.name: str(f.metadata.get("delta.columnMapping.physicalName", f.name)) for f in schema}
    inside = str(schema.fields[3].type.fields[0].metadata.get("delta.columnMapping.physicalName", "c"))  # type: ignore[union-attr]
    partition = {physical[name]: row.pop(name) for name in table.snapshot.metadata.partition_columns}
    stored = {physical[name]: [{inside: value["c"]} if name == "s" else value] for name, value in row.items()}
    pq.write_table(pa.table(stored), path / "short.parquet")
    action = add("short.parquet", (path / "short.parquet").stat().st_size, partition)
    (path / "_delta_log" / f"{version:020}.json").write_text(json.dumps(action) + "\n")
