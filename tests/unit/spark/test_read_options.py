"""The read options of format("delta")."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from pyspark_delta.changes.versions import ChangeRequest
from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.spark.frames.read_options import ReadOptions, local_time_zone, parse_columns

NOON = 1_704_110_400_000  # 2024-01-01T12:00:00Z


def table(path: Path) -> Path:
    """A directory with a log."""
    (path / "_delta_log").mkdir(parents=True)
    (path / "_delta_log" / f"{0:020d}.json").write_text("{}")
    return path


def test_a_path_alone() -> None:
    assert ReadOptions.parse("/data/t") == ReadOptions("/data/t")
    assert ReadOptions.parse(None, {"path": "/data/t"}) == ReadOptions("/data/t")


@pytest.mark.parametrize("key", ["versionAsOf", "versionasof", "VERSIONASOF"])
def test_keys_match_regardless_of_case(key: str) -> None:
    assert ReadOptions.parse("/t", {key: "3"}).version == 3


@pytest.mark.parametrize("text", ["-1", "1.5", "latest", "", "٣", "1e3"])
def test_a_version_is_a_whole_number(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="versionAsOf"):
        ReadOptions.parse("/t", {"versionAsOf": text})


@pytest.mark.parametrize(
    ("text", "zone", "milliseconds"),
    [
        ("2024-01-01T12:00:00Z", None, NOON),
        ("2024-01-01 12:00:00", "UTC", NOON),
        ("2024-01-01 13:00:00", "Europe/Paris", NOON),
        ("2024-01-01 21:00:00.000", "Asia/Tokyo", NOON),
        ("2024-01-01T13:00:00+01:00", "Asia/Tokyo", NOON),
        ("2024-01-01 12:00:00.123456", "UTC", NOON + 123),
        ("2024-01-01", "UTC", NOON - 12 * 3_600_000),
        ("2024-01-01", "+12:00", NOON - 24 * 3_600_000),
    ],
)
def test_timestamps_are_read_in_the_time_zone(text: str, zone: str | None, milliseconds: int) -> None:
    assert ReadOptions.parse("/t", {"timestampAsOf": text}, time_zone=zone).timestamp_ms == milliseconds


def test_the_option_time_zone_wins() -> None:
    options = {"timestampAsOf": "2024-01-01 21:00:00", "timeZone": "Asia/Tokyo"}
    assert ReadOptions.parse("/t", options, time_zone="UTC").timestamp_ms == NOON


@pytest.mark.parametrize("text", ["yesterday", "2024-13-01", "2024-01-01 25:00:00", "1704110400", "", "01/02/2024"])
def test_a_text_that_is_no_timestamp_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="2024-01-31"):
        ReadOptions.parse("/t", {"timestampAsOf": text})


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="Mars/Olympus"):
        ReadOptions.parse("/t", {"timestampAsOf": "2024-01-01", "timeZone": "Mars/Olympus"})


def test_version_and_timestamp_exclude_each_other() -> None:
    with pytest.raises(InvalidOptionError, match="not both"):
        ReadOptions.parse("/t", {"versionAsOf": "1", "timestampAsOf": "2024-01-01"})


def test_the_time_zone_of_this_machine_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert local_time_zone() == "Asia/Tokyo"
    assert ReadOptions.parse("/t", {"timestampAsOf": "2024-01-01 21:00:00"}).timestamp_ms == NOON


# ----------------------------------------------------------------------------------------------- path suffixes
@pytest.mark.parametrize("suffix", ["@v12", "@V12"])
def test_a_path_suffix_names_a_version(tmp_path: Path, suffix: str) -> None:
    path = table(tmp_path / "t")
    assert ReadOptions.parse(f"{path}{suffix}") == ReadOptions(str(path), version=12)


def test_a_path_suffix_names_a_time(tmp_path: Path) -> None:
    found = ReadOptions.parse(f"{tmp_path}/t@20240101120000123", time_zone="UTC")
    assert (found.location, found.timestamp_ms) == (f"{tmp_path}/t", NOON + 123)


def test_a_table_whose_name_ends_like_a_suffix_is_taken_literally(tmp_path: Path) -> None:
    path = table(tmp_path / "t@v1")
    assert ReadOptions.parse(str(path)) == ReadOptions(str(path))
    assert ReadOptions.parse(f"{path}@v3") == ReadOptions(str(path), version=3)


@pytest.mark.parametrize("name", ["t@v", "t@vx", "t@2024", "user@v1/t", "@v1"])
def test_other_at_signs_mean_nothing(tmp_path: Path, name: str) -> None:
    found = ReadOptions.parse(f"{tmp_path}/{name}")
    if name == "@v1":
        assert found.version == 1
    else:
        assert found == ReadOptions(f"{tmp_path}/{name}")


def test_a_suffix_and_an_option_are_refused_together(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="give one of them"):
        ReadOptions.parse(f"{tmp_path}/t@v1", {"versionAsOf": "1"})


def test_an_impossible_time_in_a_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="20241301000000000"):
        ReadOptions.parse(f"{tmp_path}/t@20241301000000000")


# ---------------------------------------------------------------------------------------------- columns, where
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ("a",)),
        ("a,b", ("a", "b")),
        (" a , b c ", ("a", "b c")),
        ("`a,b`, c", ("a,b", "c")),
        ("`a``b`", ("a`b",)),
        ("ä,日本", ("ä", "日本")),
    ],
)
def test_columns_are_separated_by_commas(text: str, names: tuple[str, ...]) -> None:
    assert parse_columns(text) == names
    assert ReadOptions.parse("/t", {"columns": text}).columns == names


@pytest.mark.parametrize("text", ["", "a,,b", "a,", "`a", "`a`b", ","])
def test_a_malformed_list_of_columns_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="columns"):
        parse_columns(text)


def test_where_is_kept_as_text() -> None:
    assert ReadOptions.parse("/t", {"where": " a > 1 "}).where == "a > 1"
    assert ReadOptions.parse("/t", {"where": "  "}).where is None


# ---------------------------------------------------------------------------------------------- other options
def test_storage_options_are_passed_on_as_they_arrived() -> None:
    options = {"fs.s3a.endpoint": "http://x", "AWS_REGION": "eu-1", "region": "r", "mergeSchema": "true", "header": "x"}
    found = ReadOptions.parse("/t", options)
    assert found.storage_options == {"fs.s3a.endpoint": "http://x", "AWS_REGION": "eu-1", "region": "r"}


@pytest.mark.parametrize(
    ("key", "meant"), [("versionAsof_", None), ("versonAsOf", "versionAsOf"), ("timestampsAsOf", "timestampAsOf")]
)
def test_a_mistyped_option_is_refused_with_the_one_meant(key: str, meant: str | None) -> None:
    if meant is None:
        assert ReadOptions.parse("/t", {key: "1"}).version is None
    else:
        with pytest.raises(InvalidOptionError, match=f"did you mean '{meant}'"):
            ReadOptions.parse("/t", {key: "1"})


@pytest.mark.parametrize("key", ["startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp"])
def test_options_of_the_change_data_feed_are_not_ignored_without_it(key: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"{key}.*readChangeFeed"):
        ReadOptions.parse("/t", {key: "1"})


@pytest.mark.parametrize("key", ["readChangeFeed", "READCHANGEDATA"])
def test_the_change_data_feed_is_read_from_versions_and_times(key: str) -> None:
    given = {key: "TRUE", "startingversion": " 3", "endingTimestamp": "1970-01-01 00:00:01", "timeZone": "UTC"}
    assert ReadOptions.parse("/t", given).changes == ChangeRequest(starting_version=3, ending_timestamp=1000)
    out_of_range = {**given, "changeDataFeed.timestampOutOfRange.enabled": "true"}
    assert ReadOptions.parse("/t", out_of_range).changes == ChangeRequest(3, None, None, 1000, allow_out_of_range=True)
    assert ReadOptions.parse("/t", out_of_range).storage_options == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"versionAsOf": "1"}, "names one version"),
        ({"includeRowTracking": "true"}, "no row ids"),
        ({"startingVersion": "latest"}, "whole number"),
        ({"endingTimestamp": "soon"}, "not a timestamp"),
    ],
)
def test_c175_c329_options_that_do_not_go_with_the_change_data_feed_are_refused(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        ReadOptions.parse("/t", {"readChangeFeed": "true", "startingVersion": "0", **options})


def test_the_change_data_feed_may_be_declined() -> None:
    assert ReadOptions.parse("/t", {"readChangeFeed": "false"}) == ReadOptions("/t")


@pytest.mark.parametrize("options", [{}, {"path": ""}, {"versionAsOf": "1"}])
def test_a_path_is_needed(options: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError, match="needs a path"):
        ReadOptions.parse(None, options)


def test_several_paths_are_refused() -> None:
    with pytest.raises(InvalidOptionError, match="one path"):
        ReadOptions.parse(None, {"paths": '["/a","/b"]'})


def test_options_can_be_pickled() -> None:
    options = ReadOptions("/t", 3, None, {"AWS_REGION": "x"}, ("a",), "a > 1")
    assert pickle.loads(pickle.dumps(options)) == options
