"""Makes logs of tables that have no data files: a checkpoint of many files and some JSON commits after it.

The statistics have eight columns (two long, two double, two string, a timestamp, a date), in the order files were
written, so that neighbours in the log have neighbouring values; 365 date partitions; some tombstones. Everything is
built by column, so a million files take seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

EPOCH_MS = 1_704_067_200_000  # 2024-01-01
ROWS_PER_FILE = 1000

_COLUMNS = (
    ("id", "long"),
    ("amount", "long"),
    ("price", "double"),
    ("ratio", "double"),
    ("name", "string"),
    ("city", "string"),
    ("at", "timestamp"),
    ("day", "date"),
)
_SIDECAR = "{:08x}-0000-4000-8000-{:012x}.parquet"
_UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


@dataclass(frozen=True, slots=True)
class SyntheticLog:
    """What a log is made of. `kind` of the checkpoint: classic, multi-part, v2, or none."""

    files: int
    kind: str = "classic"
    parts: int = 10  # of a multi-part checkpoint, or sidecars
    struct_stats: bool = False
    json_stats: bool = True
    row_group_rows: int = 20_000
    commits: int = 20
    adds: int = 50  # of each commit
    removes: int = 20
    tombstones: float = 0.05
    checksum: bool = False
    first_version: int = 10

    @property
    def files_per_day(self) -> int:
        """Files in one date partition: those of the checkpoint fill 365 days, one after the other."""
        return -(-self.files // 365) or 25

    @property
    def last_version(self) -> int:
        """The newest version of the log."""
        return self.first_version + self.commits if self.kind != "none" else self.commits


def write_log(table: Path, log: SyntheticLog) -> None:
    """Write `_delta_log` of a table; the folder must not have one."""
    directory = table / "_delta_log"
    directory.mkdir(parents=True)
    if log.kind == "none":
        _write_lines(directory / f"{0:020d}.json", [_protocol(log), metadata_line()])
    else:
        _write_checkpoint(directory, log)
    first = 1 if log.kind == "none" else log.first_version + 1
    number, gone = log.files, np.zeros(0, dtype=np.int64)
    for version in range(first, first + log.commits):
        added = file_rows(number, log.adds, log.files_per_day)
        lines = [_commit_info(version), *_add_lines(added)]
        removed = np.linspace(0, max(log.files - 1, 0), log.removes, dtype=np.int64) + version - first
        removed = np.unique(removed[removed < log.files])
        lines += _remove_lines(removed, log.files_per_day)
        _write_lines(directory / f"{version:020d}.json", lines)
        number, gone = number + log.adds, np.union1d(gone, removed)
    if log.checksum:
        _write_checksum(directory, log, np.setdiff1d(np.arange(number, dtype=np.int64), gone))


# ------------------------------------------------------------------------------------------------------- columns
def file_rows(first: int, count: int, per_day: int) -> dict[str, Any]:
    """Numpy columns of `count` files from number `first` on: paths, partition, size, times, and bounds."""
    number = np.arange(first, first + count, dtype=np.int64)
    day = number // per_day % 365
    low = number * ROWS_PER_FILE
    return {"number": number, "day": day, "low": low, "high": low + ROWS_PER_FILE - 1}


def _texts(prefix: str, numbers: np.ndarray[Any, Any], suffix: str = "", width: int = 12) -> pa.Array:
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")
    return pc.binary_join_element_wise(prefix, digits, suffix, "")


def _dates(day: np.ndarray[Any, Any]) -> pa.Array:
    return pa.array(day.astype(np.int32) + 19_723, pa.int32()).cast(pa.date32())


def _paths(rows: dict[str, Any]) -> pa.Array:
    folder = pc.binary_join_element_wise("p_date=", _dates(rows["day"]).cast(pa.string()), "/", "")
    name = _texts("part-", rows["number"], "-c2f1b7a4-5a1e-4d0b-9a55-4f1b7a45a1e4-c000.snappy.parquet")
    return pc.binary_join_element_wise(folder, name, "")


def _bounds(rows: dict[str, Any]) -> tuple[dict[str, pa.Array], dict[str, pa.Array]]:
    """Minimum and maximum of each column."""

    def of(values: np.ndarray[Any, Any]) -> dict[str, pa.Array]:
        return {
            "id": pa.array(values),
            "amount": pa.array(values % 100_003),
            "price": pa.array(values * 0.25),
            "ratio": pa.array((values % 9973) / 9973.0),
            "name": _texts("customer ", values, width=14),
            "city": _texts("city ", values % 997, width=8),
            "at": pa.array((EPOCH_MS + values) * 1000).cast(pa.timestamp("us", "UTC")),
            "day": _dates(rows["day"]),
        }

    return of(rows["low"]), of(rows["high"])


def _stats_struct(rows: dict[str, Any]) -> pa.StructArray:
    low, high = _bounds(rows)
    count = len(rows["number"])
    zeros = pa.array(np.zeros(count, dtype=np.int64))
    return pa.StructArray.from_arrays(
        [
            pa.array(np.full(count, ROWS_PER_FILE, dtype=np.int64)),
            pa.StructArray.from_arrays(list(low.values()), names=list(low)),
            pa.StructArray.from_arrays(list(high.values()), names=list(high)),
            pa.StructArray.from_arrays([zeros] * len(low), names=list(low)),
        ],
        names=["numRecords", "minValues", "maxValues", "nullCount"],
    )


def stats_json(rows: dict[str, Any]) -> pa.Array:
    def members(bounds: dict[str, pa.Array]) -> pa.Array:
        parts: list[Any] = []
        for name, kind in _COLUMNS:
            text = bounds[name]
            if kind == "timestamp":
                text = pc.strftime(text.cast(pa.timestamp("ms", "UTC")), "%Y-%m-%dT%H:%M:%SZ")
            text = text.cast(pa.string())
            quote = "" if kind in ("long", "double") else '"'
            parts += [f'{"," if parts else ""}"{name}":{quote}', text, quote]
        return pc.binary_join_element_wise(*parts, "")

    low, high = _bounds(rows)
    nulls = ",".join(f'"{name}":0' for name, _ in _COLUMNS)
    return pc.binary_join_element_wise(
        f'{{"numRecords":{ROWS_PER_FILE},"minValues":{{',
        members(low),
        '},"maxValues":{',
        members(high),
        f'}},"nullCount":{{{nulls}}}}}',
        "",
    )


def _partition_maps(rows: dict[str, Any]) -> pa.MapArray:
    count = len(rows["number"])
    offsets = pa.array(np.arange(count + 1, dtype=np.int32))
    return pa.MapArray.from_arrays(
        offsets, pa.array(["p_date"] * count, pa.string()), _dates(rows["day"]).cast(pa.string())
    )


def _add_struct(rows: dict[str, Any], log: SyntheticLog) -> pa.StructArray:
    count = len(rows["number"])
    columns = {
        "path": _paths(rows),
        "partitionValues": _partition_maps(rows),
        "size": pa.array(10_000_000 + rows["number"] % 1_000_000),
        "modificationTime": pa.array(EPOCH_MS + rows["number"]),
        "dataChange": pa.array(np.zeros(count, dtype=bool)),
    }
    if log.json_stats:
        columns["stats"] = stats_json(rows)
    if log.struct_stats:
        columns["stats_parsed"] = _stats_struct(rows)
        columns["partitionValues_parsed"] = pa.StructArray.from_arrays([_dates(rows["day"])], names=["p_date"])
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


def _remove_struct(rows: dict[str, Any]) -> pa.StructArray:
    count = len(rows["number"])
    columns = {
        "path": _paths(rows),
        "deletionTimestamp": pa.array(np.full(count, EPOCH_MS + 1, dtype=np.int64)),
        "dataChange": pa.array(np.zeros(count, dtype=bool)),
        "extendedFileMetadata": pa.array(np.ones(count, dtype=bool)),
        "partitionValues": _partition_maps(rows),
        "size": pa.array(np.full(count, 10_000_000, dtype=np.int64)),
    }
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


# ---------------------------------------------------------------------------------------------------- checkpoints
def _write_checkpoint(directory: Path, log: SyntheticLog) -> None:
    adds = file_rows(0, log.files, log.files_per_day)
    tombstones = file_rows(2**40, int(log.files * log.tombstones), log.files_per_day)
    version, count = log.first_version, 1 if log.kind == "classic" else log.parts
    bounds = np.linspace(0, log.files, count + 1, dtype=np.int64)
    dead = np.linspace(0, len(tombstones["number"]), count + 1, dtype=np.int64)
    names = [_file_name(log, i) for i in range(count)]
    if log.kind == "v2":
        (directory / "_sidecars").mkdir()
    for i, name in enumerate(names):
        head = _head(log) if i == 0 and log.kind != "v2" else []
        part = {key: value[bounds[i] : bounds[i + 1]] for key, value in adds.items()}
        gone = {key: value[dead[i] : dead[i + 1]] for key, value in tombstones.items()}
        _write_part(directory / name, log, head, part, gone)
    if log.kind == "v2":
        sidecars = [
            {"sidecar": {"path": Path(n).name, "sizeInBytes": (directory / n).stat().st_size, "modificationTime": 0}}
            for n in names
        ]
        top = [{"checkpointMetadata": {"version": version}}, *_head(log), *sidecars]
        _write_lines(directory / f"{version:020d}.checkpoint.{_UUID}.json", map(json.dumps, top))
    hint: dict[str, Any] = {"version": version, "size": log.files + len(tombstones["number"]) + 2}
    if log.kind == "multi-part":
        hint["parts"] = log.parts
    (directory / "_last_checkpoint").write_text(json.dumps(hint))


def _file_name(log: SyntheticLog, number: int) -> str:
    if log.kind == "v2":
        return "_sidecars/" + _SIDECAR.format(number, number)
    if log.kind == "multi-part":
        return f"{log.first_version:020d}.checkpoint.{number + 1:010d}.{log.parts:010d}.parquet"
    return f"{log.first_version:020d}.checkpoint.parquet"


def _write_part(
    path: Path, log: SyntheticLog, head: list[dict[str, Any]], adds: dict[str, Any], removes: dict[str, Any]
) -> None:
    """One Parquet file: the other actions, then the files, then the tombstones; one column for each kind."""
    none = {key: value[:0] for key, value in adds.items()}
    types = {"add": _add_struct(none, log).type, "remove": _remove_struct(none).type}
    if log.kind != "v2":
        types |= {"protocol": _PROTOCOL_TYPE, "metaData": _METADATA_TYPE, "txn": _TRANSACTION_TYPE}
    schema = pa.schema(list(types.items()))
    with pq.ParquetWriter(path, schema, compression="snappy") as writer:
        if head:
            rows = [{name: action.get(name) for name in types} for action in head]
            writer.write_table(pa.Table.from_pylist(rows, schema))
        for action, values in (("add", adds), ("remove", removes)):
            for start in range(0, len(values["number"]), log.row_group_rows):
                rows_ = {key: value[start : start + log.row_group_rows] for key, value in values.items()}
                struct = _add_struct(rows_, log) if action == "add" else _remove_struct(rows_)
                columns = [struct if name == action else pa.nulls(len(struct), types[name]) for name in types]
                writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=log.row_group_rows)


_MAP = pa.map_(pa.string(), pa.string())
_PROTOCOL_TYPE = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())),
        ("writerFeatures", pa.list_(pa.string())),
    ]
)
_METADATA_TYPE = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _MAP)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", _MAP),
        ("createdTime", pa.int64()),
    ]
)
_TRANSACTION_TYPE = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])


# ------------------------------------------------------------------------------------------------------- actions
def _head(log: SyntheticLog) -> list[dict[str, Any]]:
    return [
        json.loads(_protocol(log)),
        json.loads(metadata_line()),
        {"txn": {"appId": "3ba13872-2d47-4e17-86a0-21afd2a22395", "version": 364475}},
    ]


def _protocol(log: SyntheticLog) -> str:
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if log.kind == "v2":
        features = ["v2Checkpoint"]
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": features,
            "writerFeatures": features,
        }
    return json.dumps({"protocol": protocol})


def _schema() -> str:
    columns = [*_COLUMNS, ("p_date", "date")]
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in columns]
    return json.dumps({"type": "struct", "fields": fields})


def metadata_line() -> str:
    """The line of the table's metaData."""
    return json.dumps(
        {
            "metaData": {
                "id": "af23c9d7-fff1-4a5a-a2c8-55c59bd782aa",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": _schema(),
                "partitionColumns": ["p_date"],
                "configuration": {},
                "createdTime": EPOCH_MS,
            }
        }
    )


def _commit_info(version: int) -> str:
    return json.dumps({"commitInfo": {"timestamp": EPOCH_MS + version, "operation": "WRITE"}}, separators=(",", ":"))


def _add_lines(rows: dict[str, Any]) -> list[str]:
    days = _dates(rows["day"]).cast(pa.string()).to_pylist()
    return [
        f'{{"add":{{"path":"{path}","partitionValues":{{"p_date":"{day}"}},"size":{10_000_000 + number % 1_000_000},'
        f'"modificationTime":{EPOCH_MS + number},"dataChange":true,"stats":{json.dumps(stats)}}}}}'
        for path, day, number, stats in zip(
            _paths(rows).to_pylist(), days, rows["number"].tolist(), stats_json(rows).to_pylist(), strict=True
        )
    ]


def _remove_lines(numbers: np.ndarray[Any, Any], per_day: int) -> list[str]:
    if not len(numbers):
        return []
    rows = {"number": numbers, "day": numbers // per_day % 365}
    return [
        f'{{"remove":{{"path":"{path}","deletionTimestamp":{EPOCH_MS},"dataChange":true,'
        f'"extendedFileMetadata":true,"partitionValues":{{}},"size":10000000}}}}'
        for path in _paths(rows).to_pylist()
    ]


def _write_checksum(directory: Path, log: SyntheticLog, live: np.ndarray[Any, Any]) -> None:
    value = {
        "tableSizeBytes": int((10_000_000 + live % 1_000_000).sum()),
        "numFiles": len(live),
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": json.loads(metadata_line())["metaData"],
        "protocol": json.loads(_protocol(log))["protocol"],
    }
    (directory / f"{log.last_version:020d}.crc").write_text(json.dumps(value))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))
