"""What commits say of applications, metadata domains, changed rows and themselves (C177-C210, C164, C165)."""

from __future__ import annotations

import json
import time

import pytest
from tests.commits import actions, commit, create, draft, file, files, has_version, info, memory_location, reading

from pyspark_delta.actions.model import DomainMetadata, SetTransaction
from pyspark_delta.errors import ConcurrentTransactionError, InvalidOperationError
from pyspark_delta.protocol.draft import CommitDraft, Operation
from pyspark_delta.snapshot import Snapshot


@pytest.fixture
def location() -> str:
    return memory_location()


def application(version: int, app_id: str = "job") -> SetTransaction:
    return SetTransaction(app_id=app_id, version=version)


def domain(name: str, value: str = "{}", removed: bool = False) -> DomainMetadata:
    return DomainMetadata(domain=name, configuration=value, removed=removed)


# ------------------------------------------------------------------------------------------------ applications
def test_c177_c182_an_application_is_committed_with_its_time(location: str) -> None:
    base = create(location)
    before = int(time.time() * 1000)
    commit(draft(adds=["a"], transactions=(application(364475, "3ba13872-2d47-4e17-86a0-21afd2a22395"),)), base)
    (written,) = actions(location, 1, "txn")
    assert before <= written.pop("lastUpdated") <= int(time.time() * 1000)
    assert written == {"appId": "3ba13872-2d47-4e17-86a0-21afd2a22395", "version": 364475}


def test_c179_an_application_may_go_back(location: str) -> None:
    base = commit(draft(transactions=(application(7),)), create(location))
    commit(draft(transactions=(application(3),)), base)
    assert Snapshot.load(location).transactions()["job"].version == 3


def test_c180_data_and_transaction_are_one_commit_and_two_runs_of_it_conflict(location: str) -> None:
    base = create(location)
    commit(draft(adds=["a"], transactions=(application(1),)), base)
    with pytest.raises(ConcurrentTransactionError, match=r"same application 'job'.*one writer per application"):
        commit(draft(adds=["b"], transactions=(application(1),)), base)
    assert not has_version(location, 2)


def test_c181_one_application_twice_in_a_commit_is_refused(location: str) -> None:
    base = create(location)
    with pytest.raises(InvalidOperationError, match="application 'job' twice"):
        commit(draft(transactions=(application(1), application(2))), base)
    assert not has_version(location, 1)


def test_c178_an_application_is_known_until_no_file_of_the_log_holds_it(location: str) -> None:
    long_ago = int(time.time() * 1000) - 7_200_000
    transactions = (
        SetTransaction(app_id="old", version=1, last_updated=long_ago),
        SetTransaction(app_id="new", version=2),
    )
    properties = {"delta.setTransactionRetentionDuration": "interval 1 hour"}
    commit(draft(transactions=transactions), create(location, properties=properties))
    found = Snapshot.load(location)
    assert found.transactions().keys() == {"old", "new"}
    assert found.checksum_differences() == ()


# --------------------------------------------------------------------------------------------- metadata domains
def test_c198_c199_c209_domains_are_written_where_the_feature_is_supported(location: str) -> None:
    base = create(location, "domainMetadata")
    after = commit(draft(domains=(domain("delta.deltaTableFeatureX", '{"key1":"value1"}'),)), base)
    expected = {"domain": "delta.deltaTableFeatureX", "configuration": '{"key1":"value1"}', "removed": False}
    assert actions(location, 1, "domainMetadata") == [expected]
    assert after.domains.keys() == {"delta.deltaTableFeatureX"}


def test_c199_domains_are_refused_elsewhere(location: str) -> None:
    base = create(location)
    with pytest.raises(InvalidOperationError, match=r"'x'.*domainMetadata"):
        commit(draft(domains=(domain("x"),)), base)
    assert not has_version(location, 1)


def test_c200_the_same_domain_conflicts_and_others_do_not(location: str) -> None:
    base = create(location, "domainMetadata")
    commit(draft(domains=(domain("com.x", "1"),)), base)
    after = commit(draft(domains=(domain("org.y", "2"),)), base)
    assert {name: d.configuration for name, d in after.domains.items()} == {"com.x": "1", "org.y": "2"}
    with pytest.raises(ConcurrentTransactionError, match=r"domain 'com\.x'") as caught:
        commit(draft(domains=(domain("com.x", "3"),)), base)
    assert caught.value.facts["domain"] == "com.x"


def test_c200_one_domain_twice_in_a_commit_is_refused(location: str) -> None:
    base = create(location, "domainMetadata")
    with pytest.raises(InvalidOperationError, match="metadata domain 'd' twice"):
        commit(draft(domains=(domain("d", "1"), domain("d", "2"))), base)


def test_c203_c207_commits_leave_the_domains_that_they_do_not_name(location: str) -> None:
    base = create(location, "domainMetadata")
    base = commit(draft(domains=(domain("a", "1"), domain("b", "2"))), base)
    base = commit(draft(adds=["x"]), base)
    base = commit(draft(domains=(domain("a", "1", removed=True),)), base)
    assert {name: d.configuration for name, d in base.domains.items()} == {"b": "2"}
    assert dict(Snapshot.load(location).domains()) == base.domains


# ---------------------------------------------------------------------------------------------- the commit itself
def test_c192_c195_commit_info_has_the_keys_of_the_reference_in_its_order(location: str) -> None:
    base = create(location)
    operation = Operation("WRITE", {"mode": "Append", "partitionBy": '["d"]'}, {"numFiles": 1})
    commit(CommitDraft(operation=operation, adds=files("a"), user_metadata="u", tags={"t": "1"}, engine_info="e"), base)
    written = info(location, 1)
    assert list(written) == [
        *("timestamp", "operation", "operationParameters", "readVersion", "isolationLevel", "isBlindAppend"),
        *("operationMetrics", "userMetadata", "tags", "engineInfo", "txnId"),
    ]
    assert written["operationParameters"] == {"mode": "Append", "partitionBy": '["d"]'}
    assert json.loads(written["operationParameters"]["partitionBy"]) == ["d"]
    assert written["operationMetrics"] == {"numFiles": "1"}  # texts: readers of other engines ask for that


def test_c194_every_commit_has_its_own_transaction_id(location: str) -> None:
    base = create(location)
    base = commit(draft(adds=["a"]), base)
    commit(draft(adds=["b"]), base)
    assert len({info(location, v)["txnId"] for v in range(3)}) == 3


@pytest.mark.parametrize(
    ("made", "blind"),
    [
        (draft(adds=["a"]), True),
        (draft("SET TBLPROPERTIES"), True),
        (draft("DELETE", removes=["f"]), False),
        (draft(adds=["a"], reads=reading("id = 1")), False),
        (draft(adds=["a"], reads=reading(paths=["f"])), False),
        (draft(adds=["a"], changes=files("_change_data/c")), False),
    ],
)
def test_c197_blind_appends_are_those_that_only_add_and_read_nothing(
    location: str, made: CommitDraft, blind: bool
) -> None:
    commit(made, create(location, adds=["f"]))
    assert info(location, 1)["isBlindAppend"] is blind


@pytest.mark.parametrize(
    ("properties", "made", "level"),
    [
        ({}, draft(adds=["a"]), "Serializable"),
        ({"delta.isolationLevel": "WriteSerializable"}, draft(adds=["a"]), "WriteSerializable"),
        ({}, draft("OPTIMIZE", ["a"], ["f"], data_change=False), "SnapshotIsolation"),
        ({}, draft("OPTIMIZE", ["a"], data_change=False, transactions=(application(1),)), "Serializable"),
        ({}, draft("SET TBLPROPERTIES"), "Serializable"),
    ],
)
def test_c197_commits_say_their_isolation_level(
    location: str, properties: dict[str, str], made: CommitDraft, level: str
) -> None:
    commit(made, create(location, properties=properties, adds=["f"]))
    assert info(location, 1)["isolationLevel"] == level


# ------------------------------------------------------------------------------------------------ changed rows
def test_c164_c165_c174_change_files_are_committed_without_data_change(location: str) -> None:
    base = create(location, partitioned=True, adds=[file("f", "x")])
    changes = files(file("_change_data/cdc-00001-c.snappy.parquet", "x", size=1213))
    commit(draft("UPDATE", [file("g", "x")], [file("f", "x")], changes=changes), base)
    assert actions(location, 1, "cdc") == [
        {
            "path": "_change_data/cdc-00001-c.snappy.parquet",
            "partitionValues": {"p": "x"},
            "size": 1213,
            "dataChange": False,
        }
    ]
    assert Snapshot.load(location).num_files() == 1
