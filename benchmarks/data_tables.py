"""Makes Delta tables with data, in plain Parquet files that every reader can take, by column and without Spark.

Columns: two long, two double, two string, a timestamp and a date; `id` runs through the files in order. With
`partitions`, an int column `part` on top, in folders `part=N` in the manner of Hive. With `mapped`, the files have
physical names; with `deleted`, every `every`-th file has a deletion vector with that share of its rows; with `vectors`,
deletes are to make some. With `large`, so many files of `large_rows` rows on top are among the others.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

EPOCH_MS = 1_704_067_200_000
_TYPES = {
    "id": "long",
    "amount": "long",
    "price": "double",
    "ratio": "double",
    "name": "string",
    "city": "string",
    "at": "timestamp",
    "day": "date",
}
_STATISTICS = ("id", "amount", "price")


@dataclass(frozen=True)
class DataTable:
    """What a table is made of."""

    rows: int
    files: int
    partitions: int = 0
    mapped: bool = False
    deleted: float = 0.0
    every: int = 1
    vectors: bool = False
    large: int = 0
    large_rows: int = 0

    def bounds(self) -> list[int]:
        """The ids at which files begin, and the end."""
        rows = np.diff(np.linspace(0, self.rows, self.files + 1, dtype=np.int64))
        if self.large:
            places = np.linspace(0, self.files, self.large, endpoint=False, dtype=np.int64)
            rows = np.insert(rows, places, self.large_rows)
        return [0, *np.cumsum(rows).tolist()]


def physical(name: str) -> str:
    """The physical name of a column of a mapped table."""
    return f"col-{uuid.uuid5(uuid.NAMESPACE_URL, name)}"


def write_data_table(table: Path, made_of: DataTable) -> None:
    """Write the files and version 0 of the table; the folder must be empty."""
    (table / "_delta_log").mkdir(parents=True)
    actions: list[dict[str, Any]] = [_protocol(made_of), _metadata(made_of)]
    actions += [{"add": add} for add in _write_files(table, made_of)]
    text = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
    (table / "_delta_log" / f"{0:020d}.json").write_text(text)


def rows_between(start: int, stop: int) -> pa.Table:
    """The rows with these ids."""
    ids = np.arange(start, stop, dtype=np.int64)
    mixed = (ids * 2_654_435_761) % 4_294_967_296
    digits = pa.array(mixed % 500_000).cast(pa.string())
    columns = [
        pa.array(ids),
        pa.array(mixed % 100_003),
        pa.array((mixed % 1_000_000) / 100.0),
        pa.array(ids / 7.0),
        pc.binary_join_element_wise("customer ", digits, ""),
        pc.binary_join_element_wise("city ", pa.array(mixed % 997).cast(pa.string()), ""),
        pa.array((EPOCH_MS + ids) * 1000).cast(pa.timestamp("us", "UTC")),
        pa.array((ids // 20_000 % 365 + 19_723).astype(np.int32)).cast(pa.date32()),
    ]
    return pa.Table.from_arrays(columns, names=list(_TYPES))


def _write_files(table: Path, made_of: DataTable) -> Iterator[dict[str, Any]]:
    bounds = made_of.bounds()
    naming = random.Random(7)
    for number, (start, stop) in enumerate(pairwise(bounds)):
        rows = rows_between(start, stop)
        part = number * made_of.partitions // made_of.files if made_of.partitions else None
        name = f"part-{number:05d}-{uuid.UUID(int=naming.getrandbits(128), version=4)}-c000.snappy.parquet"
        relative = name if part is None else f"part={part}/{name}"
        path = table / relative
        path.parent.mkdir(exist_ok=True)
        stored = rows.rename_columns([physical(n) for n in rows.column_names]) if made_of.mapped else rows
        pq.write_table(stored, path, compression="snappy", store_schema=False)
        add: dict[str, Any] = {
            "path": relative,
            "partitionValues": {} if part is None else {"part": str(part)},
            "size": path.stat().st_size,
            "modificationTime": EPOCH_MS,
            "dataChange": True,
            "stats": json.dumps(_stats(rows, made_of)),
        }
        if made_of.deleted and number % made_of.every == 0:
            add["deletionVector"] = _delete(table, stop - start, made_of.deleted, number)
        yield add


def _stats(rows: pa.Table, made_of: DataTable) -> dict[str, Any]:
    bounds = {name: pc.min_max(rows.column(name)).as_py() for name in _STATISTICS}
    name_of = physical if made_of.mapped else str
    return {
        "numRecords": rows.num_rows,
        "tightBounds": not made_of.deleted,
        "minValues": {name_of(name): bound["min"] for name, bound in bounds.items()},
        "maxValues": {name_of(name): bound["max"] for name, bound in bounds.items()},
        "nullCount": {name_of(name): 0 for name in _TYPES},
    }


def _delete(table: Path, rows: int, share: float, seed: int) -> dict[str, Any]:
    """A deletion vector of random rows, in a file of its own."""
    from pyspark_delta.deletion_vectors.bitmap import of_indexes
    from pyspark_delta.deletion_vectors.files import encode_file
    from pyspark_delta.deletion_vectors.z85 import encode

    chosen = np.random.default_rng(seed).choice(rows, size=max(int(rows * share), 1), replace=False)
    bitmap = of_indexes(chosen)
    content, places = encode_file([bitmap])
    (offset, size), identifier = places[0], uuid.uuid5(uuid.NAMESPACE_URL, f"{share}/{seed}")
    (table / f"deletion_vector_{identifier}.bin").write_bytes(content)
    return {
        "storageType": "u",
        "pathOrInlineDv": encode(identifier.bytes),
        "offset": offset,
        "sizeInBytes": size,
        "cardinality": len(bitmap),
    }


def _protocol(made_of: DataTable) -> dict[str, Any]:
    if made_of.deleted or made_of.vectors:
        features = ["deletionVectors"]
        return {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
        }
    if made_of.mapped:
        return {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def _metadata(made_of: DataTable) -> dict[str, Any]:
    types = {**_TYPES, "part": "integer"} if made_of.partitions else _TYPES
    configuration = {}
    if made_of.mapped:
        configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": str(len(types))}
    elif made_of.deleted or made_of.vectors:
        configuration = {"delta.enableDeletionVectors": "true"}

    def column(name: str, kind: str, number: int) -> dict[str, Any]:
        mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical(name)}
        return {"name": name, "type": kind, "nullable": True, "metadata": mapping if made_of.mapped else {}}

    fields = [column(name, kind, number) for number, (name, kind) in enumerate(types.items(), 1)]
    return {
        "metaData": {
            "id": str(uuid.uuid5(uuid.NAMESPACE_URL, repr(made_of))),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": ["part"] if made_of.partitions else [],
            "configuration": configuration,
            "createdTime": EPOCH_MS,
        }
    }
