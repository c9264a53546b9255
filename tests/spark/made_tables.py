"""Small tables made by hand, file by file, so that tests know what is in each file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyspark_delta.deletion_vectors.bitmap import of_indexes
from pyspark_delta.deletion_vectors.files import encode_inline

TYPES = {"int64": "long", "int32": "integer", "string": "string", "double": "double", "bool": "boolean"}


@dataclass(frozen=True)
class DataFile:
    """One data file: its rows, and what the log says about it."""

    rows: pa.Table
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    deleted: Sequence[int] = ()
    name: str | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None


def field_json(name: str, kind: Any, **metadata: Any) -> dict[str, Any]:
    """A field of a schema string."""
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def make_table(
    folder: Path,
    files: Sequence[DataFile],
    *,
    partition_by: Mapping[str, str] | None = None,
    fields: Sequence[dict[str, Any]] | None = None,
    configuration: Mapping[str, str] | None = None,
    features: Sequence[str] = ("deletionVectors",),
) -> str:
    """Write the files and one commit that adds them; `partition_by` maps column names to types. Returns the path."""
    partitions = dict(partition_by or {})
    if fields is None:
        fields = [field_json(f.name, TYPES[str(f.type)]) for f in files[0].rows.schema]
        fields += [field_json(name, kind) for name, kind in partitions.items()]
    actions: list[dict[str, Any]] = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": [name for name in features if name not in ("rowTracking", "domainMetadata")],
                "writerFeatures": list(features),
            }
        },
        {
            "metaData": {
                "id": "made-by-hand",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": list(fields)}),
                "partitionColumns": list(partitions),
                "configuration": dict(configuration or {}),
            }
        },
        *({"add": _add(folder, number, file)} for number, file in enumerate(files)),
    ]
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("\n".join(json.dumps(action) for action in actions))
    return str(folder)


def _add(folder: Path, number: int, file: DataFile) -> dict[str, Any]:
    path = folder / (file.name or f"part-{number:05}.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(file.rows, path)
    add: dict[str, Any] = {
        "path": quote(str(path.relative_to(folder))),
        "partitionValues": dict(file.partition_values),
        "size": path.stat().st_size,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
        "stats": json.dumps(_stats(file.rows, tight=not file.deleted)),
    }
    if file.deleted:
        vector = encode_inline(of_indexes(np.array(file.deleted)))
        add["deletionVector"] = {
            "storageType": vector.storage_type,
            "pathOrInlineDv": vector.path_or_inline_dv,
            "sizeInBytes": vector.size_in_bytes,
            "cardinality": vector.cardinality,
        }
    if file.base_row_id is not None:
        add["baseRowId"] = file.base_row_id
        add["defaultRowCommitVersion"] = file.default_row_commit_version
    return add


def _stats(rows: pa.Table, *, tight: bool) -> dict[str, Any]:
    flat = [name for name in rows.column_names if not pa.types.is_nested(rows[name].type)]
    return {
        "numRecords": len(rows),
        "minValues": {name: pc.min(rows[name]).as_py() for name in flat},
        "maxValues": {name: pc.max(rows[name]).as_py() for name in flat},
        "nullCount": {name: rows[name].null_count for name in flat},
        "tightBounds": tight,
    }
