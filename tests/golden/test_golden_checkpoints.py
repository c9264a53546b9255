"""A checkpoint of every golden table says what its log says: the snapshot read from it alone is the same."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.golden.catalogue import GoldenTable, parametrize

from pyspark_delta.actions.columns import FILE_FIELDS, TOMBSTONE_FIELDS
from pyspark_delta.errors import UnsupportedFeatureError
from pyspark_delta.features import Feature, is_supported
from pyspark_delta.log.checkpoint_writer import write_checkpoint
from pyspark_delta.log.replay import LogReplay
from pyspark_delta.log.segment import load_segment
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.snapshot import Snapshot


def rows(table: Any) -> list[str]:
    """Rows in an order of their own, statistics without the spelling of their text."""
    return sorted(repr({**row, "stats": None} if "stats" in row else row) for row in table.to_pylist())


def state(snapshot: Snapshot) -> dict[str, Any]:
    """All that a checkpoint keeps."""
    return {
        "version": snapshot.version,
        "protocol": snapshot.protocol,
        "metadata": snapshot.metadata,
        "transactions": snapshot.transactions(),
        "domains": snapshot.domains(),
        "files": rows(snapshot.files(tuple(f.name for f in FILE_FIELDS))),
        "tombstones": rows(snapshot.tombstones(tuple(f.name for f in TOMBSTONE_FIELDS))),
    }


def statistics(snapshot: Snapshot) -> dict[str, Any]:
    """The statistics of each file, as values."""
    found = snapshot.files(("path", "stats")).to_pylist()
    return {row["path"]: json.loads(row["stats"]) for row in found if row["stats"]}


def only_the_checkpoint(table: Path, files: tuple[str, ...]) -> None:
    """Delete everything else of the log."""
    for path in (table / "_delta_log").rglob("*"):
        if path.is_file() and str(path) not in files:
            path.unlink()


def without_unset(values: Mapping[str, Any]) -> dict[str, Any]:
    """Members that are null say nothing."""
    return {
        name: without_unset(value) if isinstance(value, dict) else value
        for name, value in values.items()
        if value not in (None, {})
    }


@parametrize("table", "log-only")
@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_c022_c045_c055_c058_checkpoint_equals_the_log(table: GoldenTable, policy: str, tmp_path: Path) -> None:
    copy = tmp_path / "table"
    shutil.copytree(table.path / "_delta_log", copy / "_delta_log")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unreadable checkpoints of theirs
        before = Snapshot.load(str(copy))
        expected, texts = state(before), statistics(before)
    configuration = before.configuration
    if policy == "v2" and not is_supported(configuration, Feature.V2_CHECKPOINT):
        return
    asked_for = {"delta.checkpointPolicy": policy, "delta.checkpoint.writeStatsAsJson": "true"}
    properties = {**configuration.properties, **asked_for}
    for path in (copy / "_delta_log").glob("*.crc"):
        path.unlink()  # some are of a faulty writer
    replay = LogReplay(before.store, load_segment(before.store, str(copy)))
    asked = TableConfiguration(before.protocol, replace(before.metadata, configuration=properties), str(copy))
    if table.id == "delta-rs/table_with_liquid_clustering":  # it lists a feature that nobody else knows
        with pytest.raises(UnsupportedFeatureError, match="'liquid'"):
            write_checkpoint(replay, asked)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written = write_checkpoint(replay, asked, now_ms=0)
    assert written.kind == policy
    only_the_checkpoint(copy, written.files)
    after = Snapshot.load(str(copy))
    found = state(after)
    found["metadata"] = replace(found["metadata"], configuration=configuration.properties)
    assert found == expected
    kept = statistics(after)
    for path, value in texts.items():
        assert without_unset(kept[path]) == without_unset(value)
