"""The attempt loop: rebasing, conflicts, lost answers, giving up."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.actions.model import SetTransaction
from pyspark_delta.commit import (
    CommitRequest,
    CommitResult,
    Committed,
    FilesystemCommitter,
    Rejected,
    Transient,
    Unknown,
)
from pyspark_delta.errors import (
    AttemptsExhaustedError,
    CommitConflictError,
    CommitStateUnknownError,
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentTransactionError,
    DeltaWarning,
    MetadataChangedError,
    PermissionDeniedError,
    ProtocolChangedError,
    StorageError,
)
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, Operation, ReadSet
from pyspark_delta.protocol.state import TableState
from pyspark_delta.schema.types import LONG, StructField, StructType
from pyspark_delta.storage import intercepted, store_for
from pyspark_delta.testing.faults import Fault, FaultyStore
from pyspark_delta.transaction.attempts import AttemptPolicy, commit_draft
from pyspark_delta.transaction.new_table import new_table

SCHEMA = StructType((StructField("id", LONG),))
NO_WAIT = AttemptPolicy(sleep=lambda _: None)


@pytest.fixture
def location(tmp_path: Path) -> str:
    return f"memory://{tmp_path.parent.name}/{tmp_path.name}"


def files(*paths: str) -> pa.Table:
    rows = [{"path": p, "partition_values": [], "size": 1, "modification_time": 1} for p in paths]
    return pa.Table.from_pylist(rows, pa.schema(FILE_FIELDS))


def append(*paths: str, **more: Any) -> CommitDraft:
    return CommitDraft(operation=Operation("WRITE", {"mode": "Append"}), adds=files(*paths), **more)


def overwrite(*paths: str) -> CommitDraft:
    operation = Operation("WRITE", {"mode": "Overwrite"})
    return CommitDraft(operation=operation, removes=files(*paths), reads=ReadSet(whole_table=True))


def create(location: str) -> TableState:
    configuration = new_table(SCHEMA)
    draft = append(protocol=configuration.protocol, metadata=configuration.metadata)
    return commit_draft(draft, TableState(location=location), policy=NO_WAIT)


def read(location: str, version: int) -> list[dict[str, Any]]:
    content = store_for(location).read(f"{location}/_delta_log/{version:020d}.json")
    return [json.loads(line) for line in content.splitlines()]


def commit(draft: CommitDraft, base: TableState) -> TableState:
    return commit_draft(draft, base, policy=NO_WAIT)


def test_c013_blind_appends_take_the_next_free_version(location: str) -> None:
    base = create(location)
    assert [commit(append(f"f{i}"), base).version for i in range(3)] == [1, 2, 3]
    assert [read(location, v)[1]["add"]["path"] for v in (1, 2, 3)] == ["f0", "f1", "f2"]
    assert [read(location, v)[0]["commitInfo"]["readVersion"] for v in (1, 2, 3)] == [0, 1, 2]


def test_c013_nothing_is_overwritten(location: str) -> None:
    base = create(location)
    first = read(location, 0)
    commit(append("a"), base)
    with pytest.raises(ProtocolChangedError, match="table was created by version 0"):
        create(location)
    assert read(location, 0) == first


def winner_changes_metadata(base: TableState) -> CommitDraft:
    assert base.configuration is not None
    return append("w", metadata=replace(base.configuration.metadata, name="renamed"))


def winner_changes_protocol(base: TableState) -> CommitDraft:
    assert base.configuration is not None
    return append("w", protocol=replace(base.configuration.protocol, min_writer_version=3))


@pytest.mark.parametrize(
    ("winner", "draft", "error"),
    [
        (winner_changes_protocol, append("a"), ProtocolChangedError),
        (winner_changes_metadata, append("a"), MetadataChangedError),
        (lambda _: append("w"), overwrite("f"), ConcurrentAppendError),
        (lambda _: overwrite("f"), overwrite("f"), ConcurrentDeleteDeleteError),
        (
            lambda _: append("w", transactions=(SetTransaction(app_id="job", version=1),)),
            append("a", transactions=(SetTransaction(app_id="job", version=2),)),
            ConcurrentTransactionError,
        ),
    ],
)
def test_conflicts_name_the_winner(
    location: str, winner: Callable[[TableState], CommitDraft], draft: CommitDraft, error: type[CommitConflictError]
) -> None:
    base = commit(append("f"), create(location))
    commit(winner(base), base)
    with pytest.raises(error, match=r"version 2 \(WRITE by pyspark-delta|Version 2 \(WRITE") as caught:
        commit(draft, base)
    assert caught.value.version == 2
    assert caught.value.facts["operation"] == "WRITE"
    assert not _exists(location, 3)


@pytest.mark.parametrize(
    ("winner", "draft"),
    [
        (append("w"), append("a")),
        (overwrite("f"), append("a")),
        (append("w", transactions=(SetTransaction(app_id="other", version=1),)), append("a")),
        (CommitDraft(operation=Operation("OPTIMIZE"), adds=files("w"), data_change=False), overwrite("f")),
    ],
)
def test_what_does_not_conflict_goes_on_after_the_winner(
    location: str, winner: CommitDraft, draft: CommitDraft
) -> None:
    base = commit(append("f"), create(location))
    commit(winner, base)
    assert commit(draft, base).version == 3


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_answer_never_commits_twice(location: str, when: Any) -> None:
    base = create(location)
    store = FaultyStore(store_for(location), Fault(kind="write_if_absent", when=when))
    committed = commit_draft(append("a"), base, committer=FilesystemCommitter(store), policy=NO_WAIT)
    assert committed.version == 1
    assert not _exists(location, 2)


class Answers:
    """Gives the answers in turn, then passes requests on to a real committer; lands those marked so."""

    def __init__(self, location: str, *answers: CommitResult, landing: bool = False) -> None:
        self.real = FilesystemCommitter(store_for(location))
        self.answers = list(answers)
        self.landing = landing
        self.requests: list[CommitRequest] = []

    def commit(self, request: CommitRequest) -> CommitResult:
        self.requests.append(request)
        if self.answers:
            if self.landing:
                self.real.commit(request)
            return self.answers.pop(0)
        return self.real.commit(request)


LOST = StorageError("The connection was lost.", path="x")


@pytest.mark.parametrize("landing", [True, False])
@pytest.mark.parametrize("answer", [Unknown(LOST), Transient(LOST)])
def test_the_same_version_is_asked_for_again(location: str, answer: CommitResult, landing: bool) -> None:
    base = create(location)
    committer = Answers(location, answer, answer, landing=landing)
    assert commit_draft(append("a"), base, committer=committer, policy=NO_WAIT).version == 1
    assert [r.version for r in committer.requests] == [1, 1, 1]
    assert len({r.transaction_id for r in committer.requests}) == 1


def test_an_unknown_state_is_said(location: str) -> None:
    base, draft = create(location), append("a")
    committer = Answers(location, *[Unknown(LOST)] * 100)
    with pytest.raises(CommitStateUnknownError, match=draft.transaction_id):
        commit_draft(draft, base, committer=committer, policy=NO_WAIT)


@pytest.mark.parametrize("later", [Transient(LOST), Rejected(PermissionDeniedError("The token expired.", path="x"))])
def test_an_attempt_of_unknown_outcome_is_not_forgotten_after_others(location: str, later: CommitResult) -> None:
    base, draft = create(location), append("a")
    committer = Answers(location, Unknown(LOST), *[later] * 100)
    with pytest.raises(CommitStateUnknownError, match=draft.transaction_id):
        commit_draft(draft, base, committer=committer, policy=NO_WAIT)


def test_a_refusal_of_what_follows_the_commit_is_none_of_the_commit(location: str) -> None:
    base = create(location)
    fault = Fault(
        kind="write_if_absent", when="after", raises=lambda path: PermissionDeniedError("No sync.", path=path)
    )
    committer = FilesystemCommitter(FaultyStore(store_for(location), fault))
    assert commit_draft(append("a"), base, committer=committer, policy=NO_WAIT).version == 1


def test_failures_end_with_the_error_of_the_store(location: str) -> None:
    committer = Answers(location, *[Transient(LOST)] * 100)
    with pytest.raises(StorageError, match="connection was lost"):
        commit_draft(append("a"), create(location), committer=committer, policy=NO_WAIT)


def test_a_refusal_is_not_repeated(location: str) -> None:
    base = create(location)
    fault = Fault(kind="write_if_absent", raises=lambda path: PermissionDeniedError("No permission.", path=path))
    store = FaultyStore(store_for(location), fault)
    with pytest.raises(PermissionDeniedError):
        commit_draft(append("a"), base, committer=FilesystemCommitter(store), policy=NO_WAIT)
    assert store.calls == 1


def test_attempts_end(location: str) -> None:
    base = create(location)

    class Overtaken(FilesystemCommitter):
        def commit(self, request: CommitRequest) -> CommitResult:
            other = replace(request, content=b'{"commitInfo":{"operation":"OTHER"}}\n', transaction_id="other")
            assert FilesystemCommitter(store_for(location)).commit(other) == Committed(request.version)
            return super().commit(request)

    policy = AttemptPolicy(attempts=3, repetitions=0, sleep=lambda _: None)
    with pytest.raises(AttemptsExhaustedError, match="versions 1 to 3"):
        commit_draft(append("a"), base, committer=Overtaken(store_for(location)), policy=policy)


@pytest.mark.parametrize(("took", "longest"), [(0.1, 0.4), (100.0, 2.0)])
def test_a_loser_waits_first_and_builds_on_what_others_committed_meanwhile(
    location: str, took: float, longest: float
) -> None:
    base = create(location)
    commit(append("winner"), base)
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        commit(append("meanwhile"), base)

    ticks = itertools.count(0.0, took)
    policy = AttemptPolicy(sleep=sleep, clock=lambda: next(ticks))
    assert commit_draft(append("a"), base, policy=policy).version == 3
    (wait,) = waits  # it lost once
    assert 0 <= wait <= longest


def test_c123_a_checksum_that_cannot_be_written_is_a_warning(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark_delta.transaction import attempts

    base = create(location)
    broken = FaultyStore(store_for(location), Fault(kind="write_if_absent", path_part=".crc"))
    monkeypatch.setattr(attempts, "store_for", lambda *_: broken)
    with pytest.warns(DeltaWarning, match="Version 1 .* is committed"):
        assert commit_draft(append("a"), base, policy=NO_WAIT).version == 1


def test_c105_c108_checksums_catch_up_with_other_writers(location: str) -> None:
    base = create(location)
    for i in range(5):
        commit(append(f"f{i}"), base)
    for version in (2, 3, 4, 5):
        store_for(location).delete([f"{location}/_delta_log/{version:020d}.crc"])
    commit(overwrite("f0", "f1"), replace(base, version=5))
    checksum = json.loads(store_for(location).read(f"{location}/_delta_log/{6:020d}.crc"))
    assert (checksum["numFiles"], checksum["tableSizeBytes"]) == (3, 3)


def test_c125_no_checksum_rather_than_a_wrong_one(location: str) -> None:
    base = create(location)
    commit(append("f"), base)
    commit(append("f"), base)  # the same file again: only reconciliation knows that it is one
    store_for(location).delete([f"{location}/_delta_log/{v:020d}.crc" for v in (0, 1, 2)])
    commit(append("g"), base)
    assert not _exists(location, 3, "crc")


def _exists(location: str, version: int, kind: str = "json") -> bool:
    listed = store_for(location).list_from(f"{location}/_delta_log/")
    return any(file.path.endswith(f"{version:020d}.{kind}") for file in listed)


# -------------------------------------------------------------------------- what landed without an answer to tell
def overtaking(location: str, draft: CommitDraft, base: TableState, others: int, landing: int) -> None:
    """Versions after `base`: others' ones, and among them (at `landing`) the draft's own, by an attempt before."""
    state = base
    for number in range(others + 1):
        state = commit(draft if number == landing else append(f"other-{number}"), state)


@pytest.mark.parametrize("landing", [0, 1, 3])
def test_a_commit_that_landed_is_found_under_later_versions(location: str, landing: int) -> None:
    base, mine = create(location), append("mine")
    overtaking(location, mine, base, 3, landing)
    before = [read(location, version) for version in range(5)]
    after = commit_draft(mine, base, policy=NO_WAIT)
    assert after.version == 1 + landing
    assert not _exists(location, 5)
    assert [read(location, version) for version in range(5)] == before


def test_a_commit_that_landed_with_another_time_gives_the_state_in_the_log(location: str) -> None:
    configuration = TableConfiguration(
        replace(new_table(SCHEMA).protocol, min_writer_version=7, writer_features=frozenset(["inCommitTimestamp"])),
        replace(new_table(SCHEMA).metadata, configuration={"delta.enableInCommitTimestamps": "true"}),
    )
    first = append(protocol=configuration.protocol, metadata=configuration.metadata)
    base = commit(first, TableState(location=location))
    mine = append("mine")
    landed = commit(mine, replace(base, timestamp=base.timestamp + 10_000_000))
    store_for(location).delete([f"{location}/_delta_log/{1:020d}.crc"])
    again = commit(mine, base)
    assert (again.version, again.timestamp) == (1, landed.timestamp)
    assert not _exists(location, 1, "crc")  # it would not be that of the commit in the log


@pytest.mark.parametrize("nth", range(1, 4))
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_store_that_fails_once_never_makes_two_versions_of_one_commit(location: str, nth: int, when: Any) -> None:
    base = create(location)
    commit(append("w"), base)
    store = FaultyStore(store_for(location), Fault(nth=nth, when=when, path_part=".json"))
    mine = append("mine")
    assert commit_draft(mine, base, committer=FilesystemCommitter(store), policy=NO_WAIT).version == 2
    assert not _exists(location, 3)
    assert read(location, 2)[0]["commitInfo"]["txnId"] == mine.transaction_id


def test_one_version_is_asked_for_with_one_content(location: str) -> None:
    base = create(location)
    committer = Answers(location, Unknown(LOST), Transient(LOST), Unknown(LOST))
    commit_draft(append("a"), base, committer=committer, policy=NO_WAIT)
    assert len({r.content for r in committer.requests}) == 1


@pytest.mark.parametrize("failures", [1, 2])
def test_winners_that_cannot_be_read_at_once_are_read_again(location: str, failures: int) -> None:
    base = create(location)
    for number in range(failures + 1):
        commit(append(f"w{number}"), replace(base, version=number))
    store = store_for(location)
    for nth in range(1, failures + 1):
        store = FaultyStore(store, Fault(kind="read", nth=nth, path_part=".json"))
    with intercepted(lambda _: store):
        assert commit(append("a"), base).version == failures + 2


def test_a_writer_that_was_slow_catches_up_with_many_versions(location: str) -> None:
    base = state = create(location)
    for number in range(70):
        state = commit(append(f"w{number}"), state)
    assert commit(append("a"), base).version == 71
    commit(overwrite("w3"), replace(state, version=71))
    with pytest.raises(ConcurrentDeleteDeleteError) as caught:
        commit(draft_of_removal("w3"), base)
    assert caught.value.version == 72


def draft_of_removal(path: str) -> CommitDraft:
    return CommitDraft(operation=Operation("DELETE"), removes=files(path))
