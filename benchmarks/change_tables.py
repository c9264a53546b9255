"""Makes tables with a change data feed: many commits, each of which changes some rows in one of three ways.

`appends` adds a file; `rewrites` replaces the file of some rows and writes their change data file; `vectors` marks rows
in one of many files. The rows are those of `benchmarks.data_tables`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data_tables import EPOCH_MS, DataTable, _metadata, _protocol, rows_between

FILES = 40  # of a table whose rows are marked
_CHANGES = "_change_data"


@dataclass(frozen=True)
class ChangeTable:
    """So many commits after version 0, which have `changes` changed rows together."""

    kind: str
    commits: int
    changes: int


def write_change_table(table: Path, made_of: ChangeTable) -> None:
    """Write the table; the folder must be empty. Version v was committed v seconds after 2024-01-01."""
    log = table / "_delta_log"
    log.mkdir(parents=True)
    write = {"appends": _appends, "rewrites": _rewrites, "vectors": _vectors}[made_of.kind]
    for version, actions in enumerate(write(table, made_of)):
        if not version:
            actions = [*_head(made_of), *actions]
        info = {"commitInfo": {"timestamp": EPOCH_MS + version * 1000, "operation": "WRITE", "operationParameters": {}}}
        text = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in [info, *actions])
        (log / f"{version:020d}.json").write_text(text)


def changed_files(made_of: ChangeTable, start: int) -> list[str]:
    """The files that hold the changes from a version on, relative to the table."""
    if made_of.kind == "vectors":
        return [_name(number) for number in sorted({(v - 1) % FILES for v in range(start, made_of.commits + 1)})]
    folder = f"{_CHANGES}/" if made_of.kind == "rewrites" else ""
    return [f"{folder}{_name(version)}" for version in range(start, made_of.commits + 1)]


def _appends(table: Path, made_of: ChangeTable) -> Iterator[list[dict[str, Any]]]:
    rows = made_of.changes // made_of.commits
    yield []
    for version in range(1, made_of.commits + 1):
        yield [_add(table, _name(version), rows_between((version - 1) * rows, version * rows))]


def _rewrites(table: Path, made_of: ChangeTable) -> Iterator[list[dict[str, Any]]]:
    rows = made_of.changes // made_of.commits // 2  # each has a row before and after
    (table / _CHANGES).mkdir()
    before, add = rows_between(0, rows), {}
    for version in range(made_of.commits + 1):
        after = before.set_column(1, "amount", pa.array(np.full(rows, version)))
        removal, add = add, _add(table, _name(version), after)
        if not version:
            yield [add]
        else:
            images = [
                rows_of.append_column("_change_type", pa.repeat(f"update_{which}image", rows))
                for rows_of, which in ((before, "pre"), (after, "post"))
            ]
            change = f"{_CHANGES}/{_name(version)}"
            pq.write_table(pa.concat_tables(images), table / change, compression="snappy", store_schema=False)
            cdc = {"path": change, "partitionValues": {}, "size": (table / change).stat().st_size, "dataChange": False}
            yield [_removed(removal), add, {"cdc": cdc}]
        before = after


def _vectors(table: Path, made_of: ChangeTable) -> Iterator[list[dict[str, Any]]]:
    """Every file has twice the rows that are marked in the end."""
    each, rounds = made_of.changes // made_of.commits, -(-made_of.commits // FILES)
    rows = 2 * each * rounds
    adds = [_add(table, _name(n), rows_between(n * rows, (n + 1) * rows)) for n in range(FILES)]
    yield list(adds)
    for version in range(1, made_of.commits + 1):
        number, done = (version - 1) % FILES, (version - 1) // FILES + 1
        marked = np.sort(np.concatenate([np.arange(k, rows, 2 * rounds) for k in range(done)]))
        add = {"add": {**adds[number]["add"], "deletionVector": _vector(table, marked, version)}}
        yield [_removed(adds[number]), add]
        adds[number] = add


def _name(number: int) -> str:
    return f"part-{number:05d}.snappy.parquet"


def _add(table: Path, name: str, rows: pa.Table) -> dict[str, Any]:
    pq.write_table(rows, table / name, compression="snappy", store_schema=False)
    return {
        "add": {
            "path": name,
            "partitionValues": {},
            "size": (table / name).stat().st_size,
            "modificationTime": EPOCH_MS,
            "dataChange": True,
            "stats": json.dumps({"numRecords": rows.num_rows, "tightBounds": False}),
        }
    }


def _removed(action: dict[str, Any]) -> dict[str, Any]:
    add = action["add"]
    kept = {name: add[name] for name in ("path", "partitionValues", "size", "deletionVector") if name in add}
    return {"remove": {**kept, "deletionTimestamp": EPOCH_MS, "dataChange": True, "extendedFileMetadata": True}}


def _vector(table: Path, marked: np.ndarray[Any, Any], version: int) -> dict[str, Any]:
    from pyspark_delta.deletion_vectors.bitmap import of_indexes
    from pyspark_delta.deletion_vectors.files import encode_file
    from pyspark_delta.deletion_vectors.z85 import encode

    bitmap = of_indexes(marked)
    content, places = encode_file([bitmap])
    identifier = uuid.uuid5(uuid.NAMESPACE_URL, str(version))
    (table / f"deletion_vector_{identifier}.bin").write_bytes(content)
    offset, size = places[0]
    return {
        "storageType": "u",
        "pathOrInlineDv": encode(identifier.bytes),
        "offset": offset,
        "sizeInBytes": size,
        "cardinality": len(bitmap),
    }


def _head(made_of: ChangeTable) -> list[dict[str, Any]]:
    table = DataTable(made_of.changes, made_of.commits, vectors=made_of.kind == "vectors")
    protocol, metadata = _protocol(table), _metadata(table)
    metadata["metaData"]["configuration"]["delta.enableChangeDataFeed"] = "true"
    if table.vectors:
        protocol["protocol"]["writerFeatures"] = ["deletionVectors", "changeDataFeed"]
    else:
        protocol["protocol"]["minWriterVersion"] = 4
    return [protocol, metadata]
