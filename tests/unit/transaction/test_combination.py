"""Two drafts as one commit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.commits import declared, draft, file, files, reading

from pyspark_delta.actions.model import DomainMetadata, SetTransaction
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import IsolationLevel, Operation, ReadSet
from pyspark_delta.schema.json import schema_to_json
from pyspark_delta.schema.types import TIMESTAMP, StructField, StructType
from pyspark_delta.transaction.combination import combine, follow, operation_of
from pyspark_delta.transaction.overlap import matching


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


VECTOR = {"deletion_vector": {"storage_type": "i", "path_or_inline_dv": "x", "size_in_bytes": 1, "cardinality": 1}}
DONE = draft(adds=["new", file("marked", **VECTOR)], removes=["marked", "gone"], reads=reading("id = 1"))


def test_c145_c148_a_draft_that_follows_may_remove_what_the_first_one_added() -> None:
    more = draft(
        adds=[file("new", **VECTOR), file("marked", records=9), "other"],
        removes=["new", file("marked", **VECTOR), "old"],
        reads=reading("id = 2", paths=["new", "marked", "old"]),
    )
    both = follow(DONE, more, "memory://x/t")
    assert both.removes.select(["path", "deletion_vector"]).to_pylist() == [
        {"path": path, "deletion_vector": None} for path in ("marked", "gone", "old")
    ]
    assert both.adds["path"].to_pylist() == ["new", "marked", "other"]
    assert [vector is None for vector in both.adds["deletion_vector"].to_pylist()] == [False, True, True]
    assert both.reads.paths == {"marked", "old"}, "files that are in no version cannot be changed by another commit"
    assert len(both.reads.predicates) == 2


def test_what_both_change_in_the_end_may_be_nothing() -> None:
    both = follow(draft(adds=["a", "b"]), draft(removes=["b", "a"]), "memory://x/t")
    assert both.is_empty


def test_a_draft_for_the_version_before_is_refused() -> None:
    with pytest.raises(InvalidOperationError, match="removes the file 'gone'"):
        follow(DONE, draft(removes=["marked", "gone"]), "memory://x/t")


def test_c169_no_row_has_two_changes_in_one_version() -> None:
    told = files("_change_data/c").select(["path", "partition_values"])
    done = replace(DONE, changes=told)
    assert follow(done, draft(removes=["marked"], adds=["x"], changes=told), "memory://x/t").changes.num_rows == 2
    for first, second in ((done, draft(removes=["new"])), (DONE, draft(removes=["new"], changes=told))):
        with pytest.raises(InvalidOperationError, match="two changes of one row"):
            follow(first, second, "memory://x/t")


def test_c169_net_changes_replace_those_of_both() -> None:
    told, net = (files(path).select(["path", "partition_values"]) for path in ("_change_data/c", "_change_data/net"))
    done, more = replace(DONE, changes=told), draft(adds=["x"], removes=["new"], changes=told)
    assert follow(done, more, "memory://x/t", net).changes["path"].to_pylist() == ["_change_data/net"]
    assert follow(done, more, "memory://x/t", net.slice(0, 0)).changes.num_rows == 2, "readers would derive changes"
    inserted, deleted = draft(adds=["a"], changes=told), draft(removes=["a"], changes=told)
    assert follow(inserted, deleted, "memory://x/t", net.slice(0, 0)).is_empty


def test_the_history_names_one_operation_or_all() -> None:
    one, other = Operation("WRITE", {"mode": "Append"}, {"numFiles": 1}), Operation("SET", {}, {"numFiles": 2, "n": 0})
    assert operation_of([one]) is one
    assert operation_of([other, one]) == Operation(
        "TRANSACTION", {"operations": '["SET","WRITE"]'}, {"numFiles": 3, "n": 0}
    )
