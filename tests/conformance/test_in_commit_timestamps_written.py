"""In-commit timestamps as commits write them (In-Commit Timestamps; C355-C363)."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.commits import actions, commit, create, declared, draft, info, memory_location, read_version

from pyspark_delta.protocol.state import TableState
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import store_for
from pyspark_delta.transaction.base import state_of

ENABLED = {"delta.enableInCommitTimestamps": "true"}
VERSION, TIME = "delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp"


@pytest.fixture
def location() -> str:
    return memory_location()


def with_timestamps(location: str) -> TableState:
    return create(location, "inCommitTimestamp", properties=ENABLED)


def test_c193_c356_commit_info_is_the_first_action_of_every_commit_and_the_time_its_first_key(location: str) -> None:
    base = with_timestamps(location)
    for made in (draft(adds=["a"]), draft("DELETE", removes=["a"]), draft("SET TBLPROPERTIES")):
        base = commit(made, base)
    for version in range(4):
        first = read_version(location, version)[0]
        assert list(first) == ["commitInfo"]
        assert next(iter(first["commitInfo"])) == "inCommitTimestamp"


def test_c357_the_time_is_that_of_the_attempt_where_the_clock_goes_on(location: str) -> None:
    base = with_timestamps(location)
    before = int(time.time() * 1000)
    base = commit(draft(adds=["a"]), base)
    assert before <= info(location, 1)["inCommitTimestamp"] <= int(time.time() * 1000)
    assert base.timestamp == info(location, 1)["inCommitTimestamp"]


def test_c357_the_time_is_one_later_than_that_of_the_version_before_where_the_clock_is_behind(location: str) -> None:
    future = int(time.time() * 1000) + 3_600_000
    base = replace(with_timestamps(location), timestamp=future)
    base = commit(draft(adds=["a"]), base)
    assert info(location, 1)["inCommitTimestamp"] == future + 1
    commit(draft(adds=["b"]), state_of(Snapshot.load(location)))
    assert info(location, 2)["inCommitTimestamp"] == future + 2


def test_c363_a_later_attempt_follows_the_time_of_the_winner(location: str) -> None:
    base = with_timestamps(location)
    future = int(time.time() * 1000) + 3_600_000
    commit(draft(adds=["w"]), replace(base, timestamp=future))
    commit(draft(adds=["a"]), base)
    assert info(location, 2)["inCommitTimestamp"] == future + 2


def test_c358_nothing_is_recorded_where_all_commits_have_times(location: str) -> None:
    commit(draft(adds=["a"]), with_timestamps(location))
    metadata = Snapshot.load(location).metadata
    assert metadata.configuration == ENABLED


def test_c355_c358_c359_enabling_on_a_table_with_versions_records_since_when(location: str) -> None:
    base = commit(draft(adds=["a"]), create(location))
    protocol, metadata = declared("inCommitTimestamp", properties=ENABLED)
    modified = store_for(location).status(f"{location}/_delta_log/{1:020d}.json").modification_time
    commit(draft("SET TBLPROPERTIES", protocol=protocol, metadata=metadata), replace(base, timestamp=0))
    first = info(location, 2)["inCommitTimestamp"]
    assert first > modified
    written = actions(location, 2, "metaData")[0]["configuration"]
    assert (written[VERSION], written[TIME]) == ("2", str(first))
    assert Snapshot.load(location).timestamp == first


def test_c358_c359_a_property_from_before_the_feature_enables_nothing(location: str) -> None:
    base = commit(draft(adds=["a"]), create(location, properties=ENABLED))
    protocol, _ = declared("inCommitTimestamp")
    commit(draft("UPGRADE PROTOCOL", protocol=protocol), replace(base, timestamp=0))
    first = info(location, 2)["inCommitTimestamp"]
    assert first > store_for(location).status(f"{location}/_delta_log/{1:020d}.json").modification_time
    written = actions(location, 2, "metaData")[0]["configuration"]
    assert (written[VERSION], written[TIME]) == ("2", str(first))


def test_c358_c363_an_attempt_that_loses_records_the_version_that_it_becomes(location: str) -> None:
    base = commit(draft(adds=["a"]), create(location))
    commit(draft(adds=["w"]), base)
    protocol, metadata = declared("inCommitTimestamp", properties=ENABLED)
    commit(draft("SET TBLPROPERTIES", protocol=protocol, metadata=metadata), base)
    assert actions(location, 3, "metaData")[0]["configuration"][VERSION] == "3"


def test_c358_metadata_made_anew_keep_what_was_recorded(location: str) -> None:
    base = create(location)
    protocol, metadata = declared("inCommitTimestamp", properties=ENABLED)
    base = commit(draft("SET TBLPROPERTIES", protocol=protocol, metadata=metadata), base)
    recorded = actions(location, 1, "metaData")[0]["configuration"]
    commit(draft("REPLACE TABLE", metadata=replace(metadata, name="new")), base)
    assert actions(location, 2, "metaData")[0]["configuration"] == recorded


def test_c355_nothing_is_written_where_the_feature_is_only_supported(location: str) -> None:
    commit(draft(adds=["a"]), create(location, "inCommitTimestamp"))
    assert "inCommitTimestamp" not in info(location, 1)


def test_c359_an_appender_that_meets_the_enabling_follows_its_time(location: str) -> None:
    base = create(location)
    protocol, metadata = declared("inCommitTimestamp", properties=ENABLED)
    commit(draft("SET TBLPROPERTIES", protocol=protocol, metadata=metadata), base)
    after = commit(draft(adds=["a"]), base)
    assert info(location, 2)["inCommitTimestamp"] > info(location, 1)["inCommitTimestamp"]
    assert after.configuration is not None
    assert after.configuration.properties[VERSION] == "1"


@pytest.mark.parametrize("others", [0, 1])
def test_c359_the_first_time_is_later_than_the_commit_file_before_it(tmp_path: Path, others: int) -> None:
    location = str(tmp_path / "table")
    base = create(location)
    latest = base
    for number in range(others):
        latest = commit(draft(adds=[f"w{number}"]), latest)
    later = int(time.time()) + 3600  # the clock of the store, or of the writer before, is ahead
    os.utime(tmp_path / "table" / "_delta_log" / f"{others:020d}.json", (later, later))
    protocol, metadata = declared("inCommitTimestamp", properties=ENABLED)
    commit(draft("SET TBLPROPERTIES", protocol=protocol, metadata=metadata), base)
    assert info(location, others + 1)["inCommitTimestamp"] == later * 1000 + 1
