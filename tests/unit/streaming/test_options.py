"""Options of streams: names, values and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.streaming.admission import Limits
from pyspark_delta.streaming.options import STREAM_OPTIONS, NewRows, OnDataLoss, StreamOptions


def parsed(**options: Any) -> StreamOptions:
    """Options as Spark passes them."""
    return StreamOptions.parse(options)


def test_without_options_a_batch_has_a_thousand_files() -> None:
    assert parsed() == parsed(mergeSchema="true") == StreamOptions(limits=Limits(1000, None))


@pytest.mark.parametrize(
    ("option", "value", "member", "expected"),
    [
        ("maxFilesPerTrigger", "7", "limits", Limits(7, None)),
        ("maxFilesPerTrigger", 1, "limits", Limits(1, None)),
        ("maxBytesPerTrigger", "10g", "limits", Limits(None, 10 << 30)),
        ("maxBytesPerTrigger", "1KB", "limits", Limits(None, 1024)),
        ("maxBytesPerTrigger", "17", "limits", Limits(None, 17)),
        ("startingVersion", "0", "starting_version", 0),
        ("startingVersion", " 12 ", "starting_version", 12),
        ("startingVersion", "Latest", "starting_version", "latest"),
        ("startingTimestamp", "2024-01-02", "starting_timestamp", 1_704_153_600_000),
        ("startingTimestamp", "2024-01-02 00:00:00.5+01:00", "starting_timestamp", 1_704_150_000_500),
        ("ignoreDeletes", "true", "ignore_deletes", True),
        ("ignoreChanges", "TRUE", "ignore_changes", True),
        ("ignoreFileDeletion", "true", "ignore_changes", True),
        ("skipChangeCommits", True, "skip_change_commits", True),
        ("failOnDataLoss", "False", "on_data_loss", OnDataLoss.SKIP),
        ("onDataLoss", "SnapshotDiff", "on_data_loss", OnDataLoss.SNAPSHOT_DIFF),
        ("changes", "Upserts", "new_rows", NewRows.UPSERTS),
        ("readChangeFeed", "true", "changes", True),
        ("readChangeData", "true", "changes", True),
        ("withEventTimeOrder", "false", "changes", False),
    ],
)
def test_an_option_in_any_case(option: str, value: object, member: str, expected: object) -> None:
    assert option in STREAM_OPTIONS
    for name in (option, option.lower(), option.upper()):
        assert getattr(parsed(**{name: value}), member) == expected


def test_both_limits_hold_together() -> None:
    assert parsed(maxFilesPerTrigger="2", maxBytesPerTrigger="5k").limits == Limits(2, 5120)


def test_times_without_a_zone_are_in_that_of_the_session() -> None:
    options = StreamOptions.parse({"startingTimestamp": "2024-01-02"}, time_zone="Europe/Berlin")
    assert options.starting_timestamp == 1_704_150_000_000


def test_paths_are_excluded_by_a_part_of_them() -> None:
    exclude = parsed(excludeRegex="a.c$").exclude
    assert exclude is not None
    assert [bool(exclude.search(path)) for path in ("x/abc", "abcd")] == [True, False]


@pytest.mark.parametrize("option", ["ignoreDeletes", "ignoreChanges", "ignoreFileDeletion", "skipChangeCommits"])
def test_what_the_options_allow(option: str) -> None:
    options = parsed(**{option: "true"})
    assert (options.allows_deletes, options.allows_changes) == (True, option != "ignoreDeletes")
    assert (parsed().allows_deletes, parsed().allows_changes) == (False, False)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("maxFilesPerTrigger", "0"),
        ("maxFilesPerTrigger", "-1"),
        ("maxFilesPerTrigger", "1.5"),
        ("maxFilesPerTrigger", "many"),
        ("maxFilesPerTrigger", "٣"),
        ("maxBytesPerTrigger", "0"),
        ("maxBytesPerTrigger", "0k"),
        ("maxBytesPerTrigger", "-1k"),
        ("maxBytesPerTrigger", "much"),
        ("startingVersion", "-1"),
        ("startingVersion", "newest"),
        ("startingVersion", "1.0"),
        ("startingTimestamp", "yesterday"),
        ("ignoreDeletes", "yes"),
        ("ignoreChanges", ""),
        ("ignoreFileDeletion", "1"),
        ("skipChangeCommits", "no"),
        ("failOnDataLoss", "maybe"),
        ("readChangeFeed", "on"),
        ("readChangeData", "off"),
        ("excludeRegex", "("),
        ("withEventTimeOrder", "true"),
    ],
)
def test_a_wrong_value_is_refused_with_its_option(option: str, value: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        parsed(**{option: value})
    shown = str(caught.value)
    assert option in shown or value in shown
    if option == "excludeRegex":
        assert caught.value.error_class == "DELTA_REGEX_OPT_SYNTAX_ERROR"


def test_two_beginnings_are_refused() -> None:
    with pytest.raises(InvalidOptionError) as caught:
        parsed(startingVersion="1", startingTimestamp="2024-01-02")
    assert caught.value.error_class == "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET"
