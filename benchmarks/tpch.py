"""Makes a Delta table of TPC-H's lineitem, and rows to merge into it, with the generator `tpchgen-cli`.

The files are those of the generator, sorted by order. There are about as many rows as asked for: 6,001,215 at scale
factor 1.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
import uuid
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.data_tables import EPOCH_MS, DataTable, _protocol

ROWS_AT_SCALE_1 = 6_001_215
KEY, MEASURE = ("l_orderkey", "l_linenumber"), "l_quantity"
SOURCE = "source.parquet"
_STATISTICS = (*KEY, "l_shipdate")


@dataclass(frozen=True)
class Lineitem:
    """About so many rows in so many files; with `vectors`, changes of rows are to make deletion vectors."""

    rows: int
    files: int
    vectors: bool = False


def write_lineitem(table: Path, made_of: Lineitem) -> None:
    """Write the files and version 0 of the table; the folder must be empty."""
    (table / "_delta_log").mkdir(parents=True)
    paths = _generate(table, made_of)
    actions = [_protocol(DataTable(0, 0, vectors=made_of.vectors)), _metadata(paths[0], made_of)]
    actions += [{"add": _add(path)} for path in paths]
    text = "".join(json.dumps(action, separators=(",", ":"), default=str) + "\n" for action in actions)
    (table / "_delta_log" / f"{0:020d}.json").write_text(text)


def write_lineitem_source(folder: Path, made_of: Lineitem, every: int, new: int) -> None:
    """Write SOURCE: each `every`-th row with another quantity, and `new` rows of orders that there are not."""
    folder.mkdir(parents=True)
    paths = _generate(folder, made_of)
    rows = pa.concat_tables([pq.read_table(path) for path in paths])
    for path in paths:
        path.unlink()
    rows = rows.cast(pa.schema([f.with_type(_plain(f.type)) for f in rows.schema]))
    known = _with(rows.take(pa.array(range(0, rows.num_rows, every))), MEASURE, pa.scalar(Decimal(-1)))
    added = rows.slice(0, new)
    added = added.set_column(0, added.schema.field(0), pc.negate(added["l_orderkey"]))
    pq.write_table(pa.concat_tables([known, added]), folder / SOURCE)


def _with(rows: pa.Table, name: str, value: pa.Scalar) -> pa.Table:
    place = rows.column_names.index(name)
    field = rows.schema.field(place)
    return rows.set_column(place, field, pa.repeat(value.cast(field.type), rows.num_rows))


def _generate(folder: Path, made_of: Lineitem) -> list[Path]:
    """Run the generator; its files, which it numbers from 1, lie in the folder itself then."""
    generator = Path(sysconfig.get_path("scripts"), "tpchgen-cli")
    command = str(generator) if generator.exists() else "tpchgen-cli"
    scale = f"{made_of.rows / ROWS_AT_SCALE_1:.6f}"
    options = ["--scale-factor", scale, "--tables", "lineitem", "--parts", str(made_of.files), "--quiet"]
    subprocess.run([command, "parquet", *options, "--output-dir", str(folder)], check=True)
    paths = []
    for number in range(made_of.files):
        path = folder / f"part-{number:05d}.snappy.parquet"
        (folder / "lineitem" / f"lineitem.{number + 1}.parquet").rename(path)
        paths.append(path)
    shutil.rmtree(folder / "lineitem")
    return paths


def _add(path: Path) -> dict[str, Any]:
    keys = pq.read_table(path, columns=list(_STATISTICS))
    bounds = {name: pc.min_max(keys[name]).as_py() for name in _STATISTICS}
    return {
        "path": path.name,
        "partitionValues": {},
        "size": path.stat().st_size,
        "modificationTime": EPOCH_MS,
        "dataChange": True,
        "stats": json.dumps(
            {
                "numRecords": keys.num_rows,
                "minValues": {name: bound["min"] for name, bound in bounds.items()},
                "maxValues": {name: bound["max"] for name, bound in bounds.items()},
                "nullCount": dict.fromkeys(_STATISTICS, 0),
            },
            default=str,
        ),
    }


def _metadata(file: Path, made_of: Lineitem) -> dict[str, Any]:
    fields = [
        {"name": field.name, "type": _delta_type(field.type), "nullable": True, "metadata": {}}
        for field in pq.read_schema(file)
    ]
    return {
        "metaData": {
            "id": str(uuid.uuid5(uuid.NAMESPACE_URL, repr(made_of))),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": [],
            "configuration": {"delta.enableDeletionVectors": "true"} if made_of.vectors else {},
            "createdTime": EPOCH_MS,
        }
    }


def _plain(data_type: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_string_view(data_type) else data_type


def _delta_type(data_type: pa.DataType) -> str:
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    return {"int64": "long", "int32": "integer", "date32[day]": "date"}.get(str(data_type), "string")
