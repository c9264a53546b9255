"""Tables of delta-spark whose log is a checkpoint of ours and no more: peers read them as before."""

from __future__ import annotations

import json
import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.interop.conftest import DeltaSparkServer
from tests.interop.content import content

from pyspark_delta.log.checkpoint_writer import write_checkpoint
from pyspark_delta.log.replay import LogReplay
from pyspark_delta.log.segment import load_segment
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.table import Table

CLASSIC = [
    "every_type",
    "partitions_of_every_type",
    "deletion_vectors_partitioned_mapped",
    "column_mapping_id",
    "row_tracking",
    "in_commit_timestamps_midway",
    "clustered",
    "int96_timestamps",
]
V2 = ["v2_checkpoint_json", "v2_checkpoint_parquet", "many_features_together"]
KINDS = [
    *(("classic", name) for name in CLASSIC),
    *(("v2", name) for name in V2),
    ("v2 parquet", "many_features_together"),
]


def only_our_checkpoint(original: Path, copy: Path, policy: str, *, as_struct: str = "true") -> Path:
    """A copy of a table; its log holds the newest commit, for its time, and our checkpoint of it.

    The policy may be followed by the format of the top level.
    """
    policy, _, top_level = policy.partition(" ")
    shutil.copytree(original, copy)
    log, snapshot = copy / "_delta_log", Snapshot.load(str(copy))
    properties = {
        **snapshot.properties,
        "delta.checkpointPolicy": policy,
        "delta.checkpoint.writeStatsAsStruct": as_struct,
    }
    asked = replace(snapshot.metadata, configuration=properties)
    for checksum in log.glob("*.crc"):
        checksum.unlink()
    replay = LogReplay(snapshot.store, load_segment(snapshot.store, str(copy)))
    written = write_checkpoint(
        replay, TableConfiguration(snapshot.protocol, asked, str(copy)), top_level=top_level or None
    )
    assert written.kind == policy
    assert written.files[0].endswith(top_level or ("json" if policy == "v2" else "parquet"))
    kept = {*written.files, str(log / f"{snapshot.version:020d}.json"), str(log / "_last_checkpoint")}
    for path in log.rglob("*"):
        if path.is_file() and str(path) not in kept:
            path.unlink()
    return copy


def read_here(path: Path) -> pa.Table:
    return Table.open(path).scan().to_arrow()


@pytest.mark.parametrize(("policy", "name"), KINDS)
def test_c022_c041_delta_spark_reads_our_checkpoint(
    delta_spark_tables: Path, delta_spark_server: DeltaSparkServer, tmp_path: Path, policy: str, name: str
) -> None:
    copy = only_our_checkpoint(delta_spark_tables / name, tmp_path / name, policy)
    expected = content(read_here(delta_spark_tables / name))
    assert content(delta_spark_server.read(copy)) == expected
    assert content(read_here(copy)) == expected
    delta_spark_server.sql(f"delete from delta.`{copy}` where false", f"describe detail delta.`{copy}`")


def test_c051_delta_spark_skips_files_by_our_statistics(
    delta_spark_tables: Path, delta_spark_server: DeltaSparkServer, tmp_path: Path
) -> None:
    """Only the files whose statistics may match are read: the others are not even there."""
    for as_struct in ("true", "false"):
        copy = only_our_checkpoint(
            delta_spark_tables / "v2_checkpoint_json", tmp_path / as_struct, "v2", as_struct=as_struct
        )
        files = Table.open(copy).files()
        stats = {
            path: json.loads(text)
            for path, text in zip(files["path"].to_pylist(), files["stats"].to_pylist(), strict=True)
        }
        column = next(iter(next(iter(stats.values()))["minValues"]))
        largest = max(stats, key=lambda path: stats[path]["maxValues"][column])
        bound = stats[largest]["maxValues"][column]
        others = [p for p in stats if stats[p]["maxValues"][column] < bound]
        assert others
        for path in others:
            (copy / path).unlink()
        out = tmp_path / f"out {as_struct}"
        select = f"select * from delta.`{copy}` where {column} = {bound}"
        delta_spark_server.ask("append", path=str(out), select=select)
        assert read_here(out).num_rows >= 1


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        ("classic", "every_type"),
        ("classic", "partitions_of_every_type"),
        ("v2", "v2_checkpoint_parquet"),
        ("v2 parquet", "v2_checkpoint_json"),
    ],
)
def test_deltalake_and_polars_read_our_checkpoint(
    delta_spark_tables: Path, tmp_path: Path, policy: str, name: str
) -> None:
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed; `make test` installs it")
    polars = pytest.importorskip("polars", reason="polars is not installed; `make test` installs it")
    copy = only_our_checkpoint(delta_spark_tables / name, tmp_path / name, policy)
    expected = read_here(delta_spark_tables / name)
    peer = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(copy))).execute("select * from t")
    assert content(pa.table(peer.read_all())) == content(expected)
    if policy != "classic":
        return  # polars refuses tables with the feature
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert polars.scan_delta(str(copy)).select(polars.len()).collect().item() == expected.num_rows
