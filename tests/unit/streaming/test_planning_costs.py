"""What planning a stream asks of the store, and keeps: counted, not timed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.hand_made import lines
from tests.unit.streaming.tables import ID, TABLE_ID, Log, add, metadata, remove

from pyspark_delta.storage import intercepted
from pyspark_delta.storage.counting import CountingStore, Counts
from pyspark_delta.streaming.admission import Limits
from pyspark_delta.streaming.offset import Offset

COMMITS = 6000


@pytest.fixture
def counts() -> Iterator[Counts]:
    """The calls to stores from now on."""
    found = Counts()
    with intercepted(lambda store: CountingStore(store, found)):
        yield found


@pytest.fixture(params=["memory", "local"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    """A table with two versions."""
    made = Log() if request.param == "memory" else Log(str(tmp_path))
    made.create()
    made.append("a")
    return made


def commits_read(counts: Counts) -> list[int]:
    """The versions whose commits were read, in order."""
    names = [Path(path).name for kind, path in counts.log if kind == "read"]
    return [int(name[:20]) for name in names if name.endswith(".json") and name[:20].isdecimal()]


def test_an_idle_trigger_is_one_listing(counts: Counts, log: Log) -> None:
    run = log.stream()
    assert run.next() == ["a"]
    counts.reset()
    assert run.planner.latest(run.end) is run.end
    if log.location.startswith("memory:"):
        assert counts.log == [("list", f"{log.location}/_delta_log/{log.latest:020}.")]
        assert counts.files == 1
    else:  # a local directory can only be listed as a whole
        assert {kind for kind, _ in counts.log} == {"status"}


@pytest.mark.parametrize("feed", ["false", "true"])
def test_every_commit_is_read_once(counts: Counts, log: Log, feed: str) -> None:
    log.commit(
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}},
        metadata(ID, configuration={"delta.enableChangeDataFeed": "true"}),
    )
    run = log.stream(maxFilesPerTrigger=2, readChangeFeed=feed)
    run.next()
    for number in range(20):
        log.append(*(f"{number}-{file}" for file in range(number % 4)))
    counts.reset()
    assert len(run.all()) == 30
    assert commits_read(counts) == list(range(3, 23))
    if log.location.startswith("memory:"):
        assert counts.calls["list"] <= 17  # one of each trigger


def test_a_long_backlog_costs_a_batch_nothing(counts: Counts, tmp_path: Path) -> None:
    log = Log(str(tmp_path))
    log.create()
    for number in range(COMMITS):  # without the fsync of the store
        log.latest += 1
        Path(log.path(log.latest)).write_text(lines([add(str(number))]))
    run = log.stream(startingVersion=1, maxFilesPerTrigger=10)
    assert run.next() == [str(number) for number in range(10)]
    counts.reset()
    for batch in range(1, 20):
        assert run.next() == [str(10 * batch + number) for number in range(10)]
    assert counts.calls["list"] == 0
    found = commits_read(counts)
    assert found == list(range(found[0], found[0] + len(found)))
    assert counts.total_calls < 19 * 50
    held = run.planner._log
    assert len(held._read) < 300
    assert len(held._found) < 300


def test_what_is_kept_does_not_grow_with_the_versions_that_are_followed(log: Log) -> None:
    run = log.stream()
    run.next()
    sizes = []
    for number in range(60):
        log.append(str(number))
        assert run.next() == [str(number)]
        held = run.planner._log
        sizes.append(len(held._read) + len(held._found) + len(held._tail))
    assert max(sizes) <= 2


def test_a_stream_without_new_files_goes_on_and_keeps_no_commits(log: Log) -> None:
    run = log.stream()
    run.next()
    for _ in range(40):
        log.commit()
    assert run.next() == []
    assert run.end == Offset(TABLE_ID, 42)
    assert not run.planner._log._read


def test_the_initial_snapshot_is_sorted_and_read_once(
    counts: Counts, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append(*(str(number) for number in range(100)))
    log.snapshot().checkpoint()
    run = log.stream(maxFilesPerTrigger=30)
    sorts = 0
    sort_indices = pc.sort_indices

    def counted(*arguments: object, **options: object) -> pa.Array:
        nonlocal sorts
        sorts += 1
        return sort_indices(*arguments, **options)

    monkeypatch.setattr(pc, "sort_indices", counted)
    first = run.next()
    assert sorts == 1
    counts.reset()
    rest = run.all()
    assert sorts == 1
    assert {kind for kind, _ in counts.log} <= {"list", "status"}
    assert len({*(first or ()), *rest}) == 101


def test_two_planners_keep_their_state_apart(log: Log) -> None:
    one, other = log.stream(maxFilesPerTrigger=1), log.stream()
    log.append("b")
    assert sorted(other.all()) == ["a", "b"]
    assert one.next(Limits(files=1)) == ["a"]


def test_commits_that_change_rows_are_read_once_in_a_stream_of_new_rows(counts: Counts, log: Log) -> None:
    run = log.stream(changes="upserts", startingVersion=1)
    log.commit(remove("a"), add("b"), operation="UPDATE", operationMetrics={"numCopiedRows": "0"})
    log.append("c")
    counts.reset()
    assert sorted(run.all()) == ["a", "b", "c"]
    assert sorted(commits_read(counts)) == [1, 2, 3]
