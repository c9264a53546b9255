"""An answer is lost, the server fails after the commit, or takes a replay for a conflict: one commit, all the same."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.served import Application, Served, create, first_version, publish, stage

from pyspark_delta.catalog.contract import TableName
from pyspark_delta.catalog.unity import UnityCatalog
from pyspark_delta.errors import (
    CatalogNameNotFoundError,
    CatalogUnavailableError,
    RatificationConflictError,
)
from pyspark_delta.server.served import ServerSettings


class Losing:
    """An application whose answers to changes get lost: it does its work, and then the connection breaks off."""

    def __init__(self, inner: Application) -> None:
        self.inner = inner
        self.lose = 0
        self.fail_with: int | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] not in ("POST", "DELETE") or self.lose == 0:
            await self.inner(scope, receive, send)
            return
        self.lose -= 1

        async def drop(_: Any) -> None:
            return

        await self.inner(scope, receive, drop)
        if self.fail_with is not None:
            await send({"type": "http.response.start", "status": self.fail_with, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1000")]})
        raise ConnectionError("the network is gone")  # in the middle of the answer


class Case:
    """A server whose answers can get lost, and a client of it."""

    def __init__(self, served: Served, losing: Losing) -> None:
        self.served, self.losing = served, losing
        self.client: UnityCatalog = served.client()

    def lose(self, fail_with: int | None = None) -> None:
        self.losing.lose, self.losing.fail_with = 1, fail_with


def start(folder: Path, settings: ServerSettings) -> Iterator[Case]:
    found: list[Losing] = []

    def wrap(application: Application) -> Application:
        found.append(Losing(application))
        return found[0]

    with Served(folder, settings=settings, wrap=wrap) as served:
        served.catalog.create_schema("main", "s")
        yield Case(served, found[0])


@pytest.fixture(scope="module", params=["replays are known", "replays are conflicts"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    """Both ways in which servers answer a commit that comes twice."""
    settings = ServerSettings(replay_is_conflict=request.param == "replays are conflicts")
    yield from start(tmp_path_factory.mktemp("unknown"), settings)


def name() -> TableName:
    return TableName("main", "s", f"t{uuid.uuid4().hex[:8]}")


@pytest.mark.parametrize("fail_with", [None, 500, 502])
def test_c469_a_commit_whose_answer_is_lost_is_there_once(case: Case, fail_with: int | None) -> None:
    table = create(case.client, name())
    proposal = stage(table, 1)
    case.lose(fail_with)
    with pytest.raises(CatalogUnavailableError):
        case.client.ratify(table, proposal)
    assert case.client.ratify(table, proposal).replayed
    tail = case.client.log_tail(table)
    assert proposal.file is not None
    assert [commit.file_name for commit in tail.commits] == [proposal.file.name]


def test_the_loser_of_a_race_does_not_take_the_other_commit_for_its_own(case: Case) -> None:
    table = create(case.client, name())
    mine, other = stage(table, 1), stage(table, 1)
    case.client.ratify(table, other)
    for _ in range(2):
        with pytest.raises(RatificationConflictError) as caught:
            case.client.ratify(table, mine)
        assert other.file is not None
        assert [commit.file_name for commit in caught.value.tail.commits] == [other.file.name]


def test_a_commit_that_was_published_meanwhile_is_there_once(case: Case) -> None:
    """Whether it was ours can be told from the published file then, where the catalog does not say."""
    table = create(case.client, name())
    proposal = stage(table, 1)
    case.lose()
    with pytest.raises(CatalogUnavailableError):
        case.client.ratify(table, proposal)
    publish(table, proposal)
    case.client.report_published(table, 1)
    if case.served.settings.replay_is_conflict:
        with pytest.raises(RatificationConflictError):
            case.client.ratify(table, proposal)
    else:
        assert case.client.ratify(table, proposal).replayed
    assert case.client.log_tail(table).latest_version == 1


def test_a_table_whose_creation_is_not_answered_is_there_once(case: Case) -> None:
    wanted = name()
    staging = case.client.create_staging_table(wanted)
    new = first_version(staging)
    case.lose()
    with pytest.raises(CatalogUnavailableError):
        case.client.create_table(staging, new)
    assert case.client.create_table(staging, new).table_id == staging.table_id
    assert case.client.list_tables("main", "s").count(wanted) == 1


def test_a_report_and_a_drop_may_be_sent_again(case: Case) -> None:
    table = create(case.client, name())
    proposal = stage(table, 1)
    case.client.ratify(table, proposal)
    publish(table, proposal)
    case.lose()
    with pytest.raises(CatalogUnavailableError):
        case.client.report_published(table, 1)
    case.client.report_published(table, 1)
    case.lose()
    with pytest.raises(CatalogUnavailableError):
        case.client.drop_table(table.name)
    with pytest.raises(CatalogNameNotFoundError):
        case.client.drop_table(table.name)
