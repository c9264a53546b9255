"""What is read of a commit that won: the usual lines, and unusual ones."""

from __future__ import annotations

import json

import pytest

from pyspark_delta.commit import TakenVersion
from pyspark_delta.errors import CorruptLogError
from pyspark_delta.transaction.winner import Winner

ADD = {"path": "a", "partitionValues": {"p": "x"}, "size": 3, "modificationTime": 1, "dataChange": True}


def winner(*lines: str) -> Winner:
    return Winner.parse(TakenVersion(7, "\n".join(lines).encode()))


def test_actions_are_found_whatever_their_spelling() -> None:
    made = winner(
        '{"commitInfo":{"operation":"WRITE","engineInfo":"E","isBlindAppend":true,"txnId":"t"}}',
        json.dumps({"add": ADD}),
        '{ "add" : ' + json.dumps({**ADD, "path": "b", "stats": '{"numRecords":5}'}) + " }",
        "",
        '{"unheardOf":{"add":{"path":"c"}}}',
        json.dumps({"txn": {"appId": "j", "version": 4}}),
        json.dumps({"domainMetadata": {"domain": "d", "configuration": "1", "removed": True}}),
    )
    assert str(made) == "version 7 (WRITE by E)"
    assert made.info.txn_id == "t"
    assert made.is_blind_append
    added = made.added(["p"])
    assert added.column("path").to_pylist() == ["a", "b"]
    assert added.column("partition_values").to_pylist() == [[("p", "x")]] * 2
    assert added.column("stats").to_pylist() == [None, '{"numRecords":5}']
    assert made.removed.num_rows == 0
    assert [t.version for t in made.transactions] == [4]
    assert [d.removed for d in made.domains] == [True]
    assert (made.protocol, made.metadata) == (None, None)


def test_a_commit_that_removes_is_no_blind_append_whatever_it_says() -> None:
    made = winner('{"commitInfo":{"isBlindAppend":true}}', '{"remove":{"path":"a","dataChange":true}}')
    assert not made.is_blind_append
    assert made.removed.column("path").to_pylist() == ["a"]


@pytest.mark.parametrize("info", ['{"commitInfo":"text"}', '{"commitInfo":null}', '{"txn":{"appId":"a","version":1}}'])
def test_commits_need_no_commit_info(info: str) -> None:
    made = winner(info)
    assert str(made) == "version 7"
    assert not made.is_blind_append
    assert made.info.txn_id is None


@pytest.mark.parametrize("line", ["{", '{"add":', '{"add":{"path":5}}', "[1]"])
def test_damaged_commits_are_named(line: str) -> None:
    with pytest.raises(CorruptLogError, match=r"_delta_log/00000000000000000007\.json"):
        winner('{"commitInfo":{}}', line, '{"commitInfo":{}}').added()


def test_a_hundred_thousand_files_are_columns() -> None:
    lines = [json.dumps({"add": {**ADD, "path": f"f{number}"}}) for number in range(100_000)]
    added = winner(*lines).added(["p"])
    assert added.num_rows == 100_000
    assert added.column("path")[99_999].as_py() == "f99999"
