"""Two drafts as one commit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.commits import declared, draft, file, files, reading

from pyspark_delta.actions.model import DomainMetadata, SetTransaction
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, IsolationLevel, Operation, ReadSet
from pyspark_delta.schema.json import schema_to_json
from pyspark_delta.schema.types import TIMESTAMP, StructField, StructType
from pyspark_delta.transaction.combination import combine, operation_of
from pyspark_delta.transaction.overlap import matching, unseen


def test_everything_of_both_is_in_the_commit() -> None:
    first = draft(
        adds=["a"],
        reads=reading("p = 'x'", paths=["old"], time_zone="UTC", transactions=frozenset(["one"])),
        transactions=(SetTransaction(app_id="one", version=1), SetTransaction(app_id="two", version=2)),
        domains=(DomainMetadata(domain="d", configuration="1"),),
        user_metadata="first",
        tags={"a": "1"},
    )
    second = draft(
        adds=[file("b")],
        removes=["c"],
        reads=reading("id = 1", paths=["c"], time_zone="UTC"),
        transactions=(SetTransaction(app_id="one", version=5),),
        domains=(DomainMetadata(domain="d", configuration="2"),),
        isolation=IsolationLevel.SNAPSHOT,
        tags={"b": "2"},
    )
    both = combine(first, second)
    assert both.adds["path"].to_pylist() == ["a", "b"]
    assert both.removes["path"].to_pylist() == ["c"]
    assert {t.app_id: t.version for t in both.transactions} == {"one": 5, "two": 2}
    assert [d.configuration for d in both.domains] == ["2"]
    assert (both.user_metadata, both.isolation, both.tags) == (
        "first",
        IsolationLevel.SNAPSHOT,
        {"a": "1", "b": "2"},
    )
    assert both.transaction_id == first.transaction_id
    assert len(both.reads.predicates) == 2
    assert (both.reads.paths, both.reads.transactions) == ({"old", "c"}, {"one"})
    assert (both.reads.time_zone, both.reads.whole_table) == ("UTC", False)


def test_where_both_say_something_of_the_same_kind_the_second_counts() -> None:
    old, new = declared(), declared("rowTracking", properties={"owner": "me"})
    first = draft(protocol=old[0], metadata=old[1], user_metadata="first", tags={"a": "1", "b": "1"})
    second = draft(protocol=new[0], metadata=new[1], user_metadata="second", tags={"a": "2"})
    both = combine(first, second)
    assert (both.protocol, both.metadata) == new
    assert (both.user_metadata, both.tags) == ("second", {"a": "2", "b": "1"})


def test_predicates_of_two_time_zones_decide_nothing_about_timestamps() -> None:
    there, here = (
        draft(reads=reading("id = 1", time_zone="Asia/Tokyo")),
        draft(reads=reading("id = 1", time_zone="UTC")),
    )
    assert combine(there, here).reads.time_zone is None
    everything = draft(reads=reading(whole_table=True))
    for both in (combine(there, everything), combine(everything, there)):
        assert (both.reads.time_zone, both.reads.whole_table) == ("Asia/Tokyo", True)


@pytest.mark.parametrize(("zone", "may_match"), [("Asia/Tokyo", 1), ("UTC", 0), (None, 1)])
def test_a_time_without_a_zone_tells_no_partitions_apart(zone: str | None, may_match: int) -> None:
    schema = StructType((StructField("t", TIMESTAMP),))
    protocol, metadata = declared()
    metadata = replace(metadata, schema_string=schema_to_json(schema), partition_columns=("t",))
    noon = {**file("new"), "partition_values": [("t", "2024-01-01 12:00:00")]}
    predicate = parse_predicate("t = '2024-01-01 12:00:00'", schema, time_zone="Asia/Tokyo")
    reader = draft(reads=ReadSet(predicates=(predicate,), time_zone=zone))
    found = matching(files(noon), predicate, reader, TableConfiguration(protocol, metadata, "memory://x/t"))
    assert found.num_rows == may_match


def test_c139_a_commit_changes_data_or_it_does_not() -> None:
    rearranged = draft(adds=["b"], removes=["a"], data_change=False)
    with pytest.raises(InvalidOperationError, match="dataChange"):
        combine(draft(adds=["c"]), rearranged)
    assert combine(draft(), rearranged).data_change is False
    assert combine(rearranged, draft()).data_change is False


def test_c169_change_data_files_are_all_changes_of_a_commit() -> None:
    changed = draft(adds=["b"], removes=["a"], changes=files("_change_data/c").select(["path", "partition_values"]))
    for other in (draft(adds=["c"]), draft(removes=["d"])):
        for first, second in ((changed, other), (other, changed)):
            with pytest.raises(InvalidOperationError, match="change data"):
                combine(first, second)
    assert combine(draft(), changed).changes.num_rows == combine(changed, draft()).changes.num_rows == 1
    assert combine(changed, changed).changes.num_rows == 2


PLAIN = TableConfiguration(*declared(), "memory://x/t")
DONE = draft(adds=[file("new", ids=(0, 9)), file("marked", ids=(10, 19))], removes=["marked", "gone"])


@pytest.mark.parametrize(
    ("more", "paths"),
    [
        (draft(adds=["x"]), []),
        (draft(reads=reading("id > 5")), ["new"]),
        (draft(reads=reading("false", "id = null")), []),
        (draft(reads=reading("id > 9", "id < 0")), []),  # nothing but what it looked at can have been marked
        (draft(reads=reading("id = 12", paths=["marked", "other"])), ["marked"]),
        (draft(reads=reading("id = 30"), removes=["gone", "other"]), ["gone"]),
        (draft(reads=reading(whole_table=True)), ["marked", "gone", "new"]),
    ],
)
def test_what_a_draft_should_have_seen_of_an_earlier_one(more: CommitDraft, paths: list[str]) -> None:
    assert unseen(DONE, more, PLAIN, "memory://x/t")["path"].to_pylist() == paths


def test_the_history_names_one_operation_or_all() -> None:
    one, other = Operation("WRITE", {"mode": "Append"}, {"numFiles": 1}), Operation("SET", {}, {"numFiles": 2, "n": 0})
    assert operation_of([one]) is one
    assert operation_of([other, one]) == Operation(
        "TRANSACTION", {"operations": '["SET","WRITE"]'}, {"numFiles": 3, "n": 0}
    )
