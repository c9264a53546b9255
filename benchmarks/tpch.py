"""Makes Delta tables of TPC-H, and rows to merge into lineitem, with the generator `tpchgen-cli`.

The files are those of the generator, lineitem's sorted by order. Lineitem has about as many rows as asked for:
6,001,215 at scale factor 1.
"""

from __future__ import annotations

import json
import subprocess
import sysconfig
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.data_tables import EPOCH_MS, DataTable, _protocol
from benchmarks.tpch_queries import TABLES

ROWS_AT_SCALE_1 = 6_001_215
KEY, MEASURE = ("l_orderkey", "l_linenumber"), "l_quantity"
SOURCE = "source.parquet"
_STATISTICS = (*KEY, "l_shipdate")
_SMALL = ("nation", "region")  # the generator makes one file of these


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
    actions += [{"add": _add(path, _STATISTICS)} for path in paths]
    _write_log(table, actions)


def write_tables(folder: Path, scale: float, files: int) -> None:
    """Write the eight tables in folders of their names; the large ones have so many files."""
    for name in TABLES:
        table = folder / name
        (table / "_delta_log").mkdir(parents=True)
        paths = _generated(table, name, scale, 1 if name in _SMALL else files)
        named = [field.name for field in pq.read_schema(paths[0]) if _delta_type(field.type) != "string"]
        actions = [_protocol(DataTable(0, 0)), _metadata_of(paths[0], f"{name} at scale {scale}", vectors=False)]
        _write_log(table, [*actions, *({"add": _add(path, named)} for path in paths)])


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
    return _generated(folder, "lineitem", made_of.rows / ROWS_AT_SCALE_1, made_of.files)


def _generated(folder: Path, table: str, scale: float, files: int) -> list[Path]:
    """Run the generator; its files lie in the folder itself then, under other names."""
    generator = Path(sysconfig.get_path("scripts"), "tpchgen-cli")
    command = str(generator) if generator.exists() else "tpchgen-cli"
    options = ["--scale-factor", f"{scale:.6f}", "--tables", table, "--quiet"]
    options += ["--parts", str(files)] if files > 1 else []
    with tempfile.TemporaryDirectory(dir=folder) as made:
        subprocess.run([command, "parquet", *options, "--output-dir", made], check=True)
        paths = []
        for number, path in enumerate(sorted(Path(made).rglob("*.parquet"), key=_part)):
            paths.append(path.rename(folder / f"part-{number:05d}.snappy.parquet"))
    return paths


def _part(path: Path) -> int:
    """Return the number of a part, as in `lineitem.12.parquet`; 0 for a table of one file."""
    number = path.stem.rpartition(".")[2]
    return int(number) if number.isdigit() else 0


def _write_log(table: Path, actions: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(action, separators=(",", ":"), default=str) + "\n" for action in actions)
    (table / "_delta_log" / f"{0:020d}.json").write_text(text)


def _add(path: Path, statistics: Sequence[str]) -> dict[str, Any]:
    keys = pq.read_table(path, columns=list(statistics))
    bounds = {name: pc.min_max(keys[name]).as_py() for name in statistics}
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
                "nullCount": dict.fromkeys(statistics, 0),
            },
            default=str,
        ),
    }


def _metadata(file: Path, made_of: Lineitem) -> dict[str, Any]:
    return _metadata_of(file, repr(made_of), vectors=made_of.vectors)


def _metadata_of(file: Path, name: str, *, vectors: bool) -> dict[str, Any]:
    fields = [
        {"name": field.name, "type": _delta_type(field.type), "nullable": True, "metadata": {}}
        for field in pq.read_schema(file)
    ]
    return {
        "metaData": {
            "id": str(uuid.uuid5(uuid.NAMESPACE_URL, name)),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": [],
            "configuration": {"delta.enableDeletionVectors": "true"} if vectors else {},
            "createdTime": EPOCH_MS,
        }
    }


def _plain(data_type: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_string_view(data_type) else data_type


def _delta_type(data_type: pa.DataType) -> str:
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    return {"int64": "long", "int32": "integer", "date32[day]": "date"}.get(str(data_type), "string")
