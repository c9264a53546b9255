"""Row ids and row commit versions of new files (Row Tracking, Writer Requirements; C321-C342)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.commits import actions, commit, create, declared, draft, file, files, info, memory_location
from tests.declarations import with_features

from pyspark_delta.actions.model import DomainMetadata
from pyspark_delta.errors import CorruptLogError, InvalidOperationError
from pyspark_delta.features.support import check_writable
from pyspark_delta.protocol.state import TableState
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.base import state_of

FEATURES = ("rowTracking", "domainMetadata")
PRESERVED = "delta.rowTracking.preserved"


@pytest.fixture
def location() -> str:
    return memory_location()


def tracked(location: str, *adds: Any, **properties: str) -> TableState:
    return create(location, *FEATURES, properties={f"delta.{k}": v for k, v in properties.items()}, adds=adds)


def ids(location: str, version: int) -> list[tuple[str, int, int]]:
    return [(a["path"], a["baseRowId"], a["defaultRowCommitVersion"]) for a in actions(location, version, "add")]


def mark(location: str, version: int) -> int | None:
    """The high-water mark that a version writes."""
    found = [d for d in actions(location, version, "domainMetadata") if d["domain"] == "delta.rowTracking"]
    assert len(found) <= 1
    return json.loads(found[0]["configuration"])["rowIdHighWaterMark"] if found else None


def test_c321_c322_supporting_tables_can_be_written() -> None:
    check_writable(with_features(*FEATURES))
    check_writable(with_features(*FEATURES, properties={"delta.enableRowTracking": "true"}))


def test_c323_c326_c330_c334_c335_ids_begin_at_zero_and_no_two_rows_share_one(location: str) -> None:
    base = tracked(location, file("a", records=3), file("b", records=0), file("c", records=5))
    commit(draft(adds=[file("d", records=2)]), base)
    assert ids(location, 0) == [("a", 0, 0), ("b", 3, 0), ("c", 3, 0)]
    assert ids(location, 1) == [("d", 8, 1)]


def test_c332_c333_the_high_water_mark_is_the_highest_id_given(location: str) -> None:
    base = tracked(location, file("a", records=3))
    base = commit(draft(adds=[file("b", records=4)]), base)
    base = commit(draft("DELETE", removes=["a"]), base)
    assert [mark(location, v) for v in (0, 1, 2)] == [2, 6, None]
    assert json.loads(Snapshot.load(location).domains()["delta.rowTracking"].configuration) == {"rowIdHighWaterMark": 6}


def test_c333_no_mark_is_written_where_no_id_is_given(location: str) -> None:
    base = tracked(location)
    commit(draft(adds=[file("empty", records=0)]), base)
    assert (mark(location, 0), mark(location, 1)) == (None, None)


def test_c334_c342_a_later_attempt_numbers_above_the_winner(location: str) -> None:
    base = tracked(location, file("a", records=3))
    commit(draft(adds=[file("w", records=10)]), base)
    after = commit(draft(adds=[file("b", records=2)]), base)
    assert ids(location, 2) == [("b", 13, 2)]
    assert mark(location, 2) == 14
    assert json.loads(after.domains["delta.rowTracking"].configuration) == {"rowIdHighWaterMark": 14}


def test_c342_a_winner_that_makes_the_table_support_ids_is_followed(location: str) -> None:
    base = create(location)
    protocol, _ = declared(*FEATURES)
    commit(draft("UPGRADE PROTOCOL", protocol=protocol), base)
    commit(draft(adds=[file("b", records=2)]), base)
    assert ids(location, 2) == [("b", 0, 2)]


def test_c331_c335_files_that_are_committed_again_keep_their_ids(location: str) -> None:
    base = tracked(location, file("a", records=3), file("b", records=3))
    removed = files(file("a", base_row_id=0, default_row_commit_version=0))
    vector = {"storage_type": "u", "path_or_inline_dv": "x", "offset": 1, "size_in_bytes": 9, "cardinality": 1}
    again = file("a", records=3, base_row_id=0, default_row_commit_version=0, deletion_vector=vector)
    commit(draft("DELETE", [again, file("new", records=2)], removed.to_pylist()), base)
    assert ids(location, 1) == [("a", 0, 0), ("new", 6, 1)]
    removal = actions(location, 1, "remove")[0]
    assert (removal["baseRowId"], removal["defaultRowCommitVersion"]) == (0, 0)


def test_c333_ids_from_elsewhere_raise_the_mark(location: str) -> None:
    base = tracked(location)
    copied = [file("new", records=2), file("copied", records=5, base_row_id=1), file("other", records=3)]
    commit(draft("CLONE", copied), base)
    assert ids(location, 1) == [("new", 6, 1), ("copied", 1, 1), ("other", 8, 1)]  # no two rows share one
    assert mark(location, 1) == 10


def test_c333_a_mark_that_the_draft_brings_is_kept(location: str) -> None:
    base = tracked(location)
    domain = DomainMetadata(domain="delta.rowTracking", configuration='{"rowIdHighWaterMark":50}')
    base = commit(draft("CLONE", [file("new", records=2)], domains=(domain,)), base)
    assert ids(location, 1) == [("new", 51, 1)]
    assert mark(location, 1) == 52
    higher = DomainMetadata(domain="delta.rowTracking", configuration='{"rowIdHighWaterMark":90}')
    commit(draft("CLONE", [file("copied", records=5, base_row_id=60)], domains=(higher,)), base)
    assert mark(location, 2) == 90


def test_c330_files_without_a_row_count_are_refused(location: str) -> None:
    base = tracked(location)
    with pytest.raises(InvalidOperationError, match=r"'b'.*numRecords"):
        commit(draft(adds=[file("a"), file("numbered", records=None, base_row_id=0), file("b", records=None)]), base)


def test_c333_a_numbered_file_without_a_row_count_has_one_row_at_least(location: str) -> None:
    base = tracked(location)
    commit(draft("CLONE", [file("copied", records=None, base_row_id=100)]), base)
    assert (ids(location, 1), mark(location, 1)) == ([("copied", 100, 1)], 100)


def counted_to(base: TableState, configuration: str, **more: Any) -> TableState:
    """The same table with another metadata domain of row tracking."""
    domain = DomainMetadata(domain="delta.rowTracking", configuration=configuration, **more)
    return replace(base, domains={domain.domain: domain})


@pytest.mark.parametrize(
    "configuration", ['{"highWaterMark":5}', '{"rowIdHighWaterMark":"5"}', '{"rowIdHighWaterMark":true}', "[5]", "{5"]
)
def test_c334_a_mark_that_cannot_be_read_stops_writing(location: str, configuration: str) -> None:
    with pytest.raises(CorruptLogError, match="which row ids are in use"):
        commit(draft(adds=["a"]), counted_to(tracked(location), configuration))


def test_c334_a_mark_that_was_removed_counts_no_more(location: str) -> None:
    commit(draft(adds=["a"]), counted_to(tracked(location), '{"rowIdHighWaterMark":5}', removed=True))
    assert ids(location, 1) == [("a", 0, 1)]


def test_c330_nothing_is_numbered_while_row_tracking_is_suspended(location: str) -> None:
    base = tracked(location, rowTrackingSuspended="true")
    commit(draft(adds=["a"]), base)
    assert "baseRowId" not in actions(location, 1, "add")[0]
    assert mark(location, 1) is None


@pytest.mark.parametrize(
    ("adds", "removes", "tags", "expected"),
    [
        (["x"], [], {}, "true"),
        ([], ["a"], {}, "true"),
        (["x"], ["a"], {}, "false"),
        (["x"], ["a"], {PRESERVED: "true"}, "true"),
    ],
)
def test_c196_c341_commits_say_whether_ids_are_preserved(
    location: str, adds: list[str], removes: list[str], tags: dict[str, str], expected: str
) -> None:
    base = tracked(location, "a", enableRowTracking="true")
    commit(draft("UPDATE", adds, removes, tags=tags), base)
    assert info(location, 1)["tags"] == {PRESERVED: expected}


def test_c341_no_tag_where_row_tracking_is_only_supported(location: str) -> None:
    tracked(location, "a")
    assert "tags" not in info(location, 0)


def test_c327_a_fresh_snapshot_goes_on_where_the_log_ends(location: str) -> None:
    tracked(location, file("a", records=3))
    commit(draft(adds=[file("b", records=4)]), state_of(Snapshot.load(location)))
    assert ids(location, 1) == [("b", 3, 1)]
