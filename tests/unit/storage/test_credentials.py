"""When credentials are asked for, and what Hadoop is told of them."""

from __future__ import annotations

import pickle
import uuid

import pytest

from pyspark_delta.errors import CatalogUnavailableError
from pyspark_delta.storage import credentials
from pyspark_delta.storage.credentials import (
    CREDENTIALS_KEY,
    EARLY,
    CarriedOptions,
    Credentials,
    CredentialSource,
    register_source,
    reset_sources,
    source_of,
)
from pyspark_delta.storage.hadoop import hadoop_options

HOUR = 3_600_000
NOW = 1_700_000_000_000


class Clock:
    """The time, which a test sets; `ask` gives credentials for `life` ms, or fails."""

    def __init__(self) -> None:
        self.now, self.life, self.asked, self.answers = NOW, HOUR, 0, True
        self.lasting, self.name = False, f"test {uuid.uuid4()}"
        self.options = {CREDENTIALS_KEY: self.name}

    def ask(self) -> Credentials:
        if not self.answers:
            raise CatalogUnavailableError("The catalog did not answer.")
        self.asked += 1
        options = {"aws_access_key_id": f"k{self.asked}", "aws_secret_access_key": "s", "aws_session_token": "t"}
        return Credentials(options, None if self.lasting else self.now + self.life)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(credentials, "_now", lambda: made.now)
    register_source(made.name, lambda: CredentialSource(made.ask))
    return made


def key(source: CredentialSource) -> str:
    return source.current().options["aws_access_key_id"]


def test_credentials_are_renewed_five_minutes_before_they_end(clock: Clock) -> None:
    source = CredentialSource(clock.ask)
    assert [key(source), key(source)] == ["k1", "k1"]
    clock.now = NOW + HOUR - EARLY - 1
    assert key(source) == "k1"
    clock.now += 1
    assert [key(source), key(source)] == ["k2", "k2"]


def test_short_ones_are_renewed_after_half_their_life(clock: Clock) -> None:
    source, clock.life = CredentialSource(clock.ask), 60_000
    assert key(source) == "k1"
    clock.now = NOW + 29_999
    assert key(source) == "k1"
    clock.now += 1
    assert key(source) == "k2"
    clock.life = 0
    clock.now += HOUR
    assert [key(source), key(source)] == ["k3", "k4"]  # ended as soon as given: each use asks


def test_lasting_ones_are_asked_for_once(clock: Clock) -> None:
    clock.lasting, source = True, CredentialSource(clock.ask)
    assert key(source) == "k1"
    clock.now += 10**12
    assert key(source) == "k1"


def test_valid_credentials_are_used_while_nobody_answers(clock: Clock) -> None:
    source = CredentialSource(clock.ask)
    clock.answers = False
    with pytest.raises(CatalogUnavailableError):
        source.current()
    clock.answers = True
    assert key(source) == "k1"
    clock.answers, clock.now = False, NOW + HOUR - 1
    assert key(source) == "k1"
    clock.now += 1
    with pytest.raises(CatalogUnavailableError):
        source.current()
    clock.answers = True
    assert key(source) == "k2"


def test_a_source_is_named_by_options(clock: Clock) -> None:
    source = source_of(clock.options)
    assert source is not None
    register_source(clock.name, lambda: CredentialSource(clock.ask))
    assert source_of(clock.options) is source
    assert source_of({CREDENTIALS_KEY: "another"}) is None
    assert source_of({}) is source_of(None) is None
    carried = CarriedOptions({**clock.options, "aws_region": "r", "aws_access_key_id": "own"})
    told = pickle.loads(pickle.dumps(carried))
    assert told == {
        "aws_region": "r",
        "aws_access_key_id": "k1",
        "aws_secret_access_key": "s",
        "aws_session_token": "t",
    }
    assert type(told) is dict
    reset_sources("another")
    assert pickle.loads(pickle.dumps(carried)) == told
    reset_sources(clock.name[:10])
    assert pickle.loads(pickle.dumps(carried)) == {**told, "aws_access_key_id": "k2"}
    elsewhere = CarriedOptions({"aws_access_key_id": "own", CREDENTIALS_KEY: "another"})
    assert pickle.loads(pickle.dumps(elsewhere)) == {"aws_access_key_id": "own"}


def test_hadoop_is_told_of_credentials_for_s3(clock: Clock) -> None:
    provider = "org.apache.hadoop.fs.s3a."
    own = {"aws_endpoint": "http://localhost:9000", "aws_region": "eu-1", "fs.s3a.threads.max": "7"}
    told = {
        "fs.s3a.threads.max": "7",
        "fs.s3a.access.key": "k1",
        "fs.s3a.secret.key": "s",
        "fs.s3a.session.token": "t",
        "fs.s3a.endpoint": "http://localhost:9000",
        "fs.s3a.endpoint.region": "eu-1",
        "fs.s3a.aws.credentials.provider": f"{provider}TemporaryAWSCredentialsProvider",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.impl.disable.cache": "true",
    }
    assert hadoop_options("s3://bucket/t", {**own, **clock.options}) == told
    assert hadoop_options("s3a://bucket/t", {**clock.options})["fs.s3a.path.style.access"] == "false"
    clock.now += 2 * HOUR
    assert hadoop_options("s3://bucket/t", clock.options)["fs.s3a.access.key"] == "k2"


def test_what_hadoop_cannot_be_told_is_left_to_workers(clock: Clock) -> None:
    assert hadoop_options("s3://bucket/t", {**clock.options, "aws_checksum_algorithm": "sha256"}) is None
    assert hadoop_options("s3://bucket/t", {**clock.options, "proxy_url": "http://proxy"}) is None
    assert hadoop_options("gs://bucket/t", clock.options) is None
    assert hadoop_options("s3://bucket/t", {"aws_region": "eu-1"}) is None
    assert hadoop_options("s3://bucket/t", {"fs.s3a.access.key": "k"}) == {"fs.s3a.access.key": "k"}
    assert hadoop_options("/local", {CREDENTIALS_KEY: "unknown here"}) == {}
