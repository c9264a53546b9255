"""The committer contract as a test suite: a class for pytest that the tests of every committer inherit.

class TestMyCommitter(CommitterContract):
    @pytest.fixture
    def setup(self): return CommitterSetup(make=..., location=..., read=..., faulty=...)
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import orjson

from pyspark_delta.commit import (
    CommitRequest,
    Committed,
    Committer,
    Rejected,
    TakenVersion,
    Transient,
    Unknown,
    VersionTaken,
)

_FAR = 4_000_000_000_000  # ms: after every existing version


@dataclass(frozen=True)
class CommitterSetup:
    """A table in which version `first` is the next one.

    `make` returns a new committer, as another process would create it; `read` returns the content of a version, None if
    there is none. `lost_answer` is a committer whose first commit succeeds, but raises; `lost_request` one whose first
    commit fails without effect; `refused` one that is not allowed to commit.
    """

    location: str
    make: Callable[[], Committer]
    read: Callable[[int], bytes | None]
    lost_answer: Callable[[], Committer]
    lost_request: Callable[[], Committer]
    refused: Callable[[], Committer]
    first: int = 0


class CommitterContract:
    """The contract of every committer: one test method for each sentence of `commit.contract`."""

    def test_a_free_version_is_committed_with_exactly_the_content(self, setup: CommitterSetup) -> None:
        request = _request(setup, setup.first)
        assert setup.make().commit(request) == Committed(setup.first)
        assert setup.read(setup.first) == request.content

    def test_a_taken_version_is_reported_with_the_winner_and_left_alone(self, setup: CommitterSetup) -> None:
        first, second = _request(setup, setup.first), _request(setup, setup.first)
        setup.make().commit(first)
        assert setup.make().commit(second) == VersionTaken((TakenVersion(setup.first, first.content),))
        assert setup.read(setup.first) == first.content

    def test_the_same_request_again_is_committed_once(self, setup: CommitterSetup) -> None:
        request = _request(setup, setup.first)
        assert setup.make().commit(request) == Committed(setup.first)
        assert setup.make().commit(request) == Committed(setup.first)
        assert setup.read(setup.first) == request.content

    def test_an_own_commit_is_recognised_by_its_transaction_id(self, setup: CommitterSetup) -> None:
        landed = _request(setup, setup.first)
        setup.make().commit(landed)
        again = CommitRequest(
            table_location=setup.location,
            version=setup.first,
            content=landed.content.replace(b'"timestamp":1', b'"timestamp":2'),
            transaction_id=landed.transaction_id,
        )
        assert setup.make().commit(again) == Committed(setup.first)
        assert setup.read(setup.first) == landed.content

    def test_a_lost_answer_is_settled_or_unknown_and_never_committed_twice(self, setup: CommitterSetup) -> None:
        request, committer = _request(setup, setup.first), setup.lost_answer()
        outcome = committer.commit(request)
        assert isinstance(outcome, Committed | Unknown)
        assert committer.commit(request) == Committed(setup.first)
        assert setup.read(setup.first) == request.content

    def test_a_lost_request_may_be_made_again(self, setup: CommitterSetup) -> None:
        request, committer = _request(setup, setup.first), setup.lost_request()
        assert isinstance(committer.commit(request), Transient | Unknown)
        assert setup.read(setup.first) is None
        assert committer.commit(request) == Committed(setup.first)

    def test_a_refusal_is_rejected(self, setup: CommitterSetup) -> None:
        assert isinstance(setup.refused().commit(_request(setup, setup.first)), Rejected)
        assert setup.read(setup.first) is None

    def test_of_many_at_once_exactly_one_is_committed(self, setup: CommitterSetup) -> None:
        for version in range(setup.first, setup.first + 10):
            requests = [_request(setup, version) for _ in range(8)]
            with ThreadPoolExecutor(8) as pool:
                outcomes = list(pool.map(lambda request: setup.make().commit(request), requests))
            won = [
                request for request, outcome in zip(requests, outcomes, strict=True) if outcome == Committed(version)
            ]
            assert len(won) == 1
            assert setup.read(version) == won[0].content
            lost = [outcome for outcome in outcomes if not isinstance(outcome, Committed)]
            assert lost == [VersionTaken((TakenVersion(version, won[0].content),))] * 7


def _request(setup: CommitterSetup, version: int) -> CommitRequest:
    transaction_id = str(uuid.uuid4())
    times = {"inCommitTimestamp": _FAR + version, "timestamp": 1}
    info = {"commitInfo": {**times, "operation": "TEST", "txnId": transaction_id}}
    return CommitRequest(
        table_location=setup.location,
        version=version,
        content=orjson.dumps(info) + b"\n",
        transaction_id=transaction_id,
    )
