"""Every operation against every other that was faster, at every isolation level: which conflict, or none.

The table has one file in each of the partitions `x` and `y`. Operations are drafts as their commands stage them; those
with a partition in the name touch only that one.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import replace
from typing import Any

import pytest
from tests.commits import commit, create, declared, draft, file, files, has_version, info, memory_location, reading
from tests.declarations import field

from pyspark_delta.actions.model import SetTransaction
from pyspark_delta.errors import (
    CommitConflictError,
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConcurrentTransactionError,
    MetadataChangedError,
    ProtocolChangedError,
)
from pyspark_delta.features import supported_features
from pyspark_delta.protocol.draft import CommitDraft, IsolationLevel, ReadSet
from pyspark_delta.protocol.state import TableState
from pyspark_delta.snapshot import Snapshot

FILE = {"x": file("x0", "x", ids=(0, 9)), "y": file("y0", "y", ids=(10, 19))}


def new(name: str, partition: str) -> dict[str, Any]:
    return file(f"{name}-{partition}", partition, ids=(0, 9) if partition == "x" else (10, 19))


def vector(row: dict[str, Any]) -> dict[str, Any]:
    inline = {"storage_type": "i", "path_or_inline_dv": "abc", "size_in_bytes": 9, "cardinality": 1}
    return {**row, "deletion_vector": inline}


def append(partition: str) -> CommitDraft:
    return draft("WRITE", [new("append", partition)])


def insert_select(partition: str) -> CommitDraft:
    """INSERT INTO t SELECT ... FROM t WHERE p = ..."""
    reads = reading(f"p = '{partition}'", paths=[f"{partition}0"])
    return draft("WRITE", [new("select", partition)], reads=reads)


def replace_where(partition: str) -> CommitDraft:
    reads = reading(f"p = '{partition}'", paths=[f"{partition}0"])
    return draft("WRITE", [new("replaced", partition)], [FILE[partition]], reads=reads)


def delete(partition: str) -> CommitDraft:
    reads = reading(
        f"p = '{partition}' AND id = {(FILE[partition]['path'] == 'y0' and 15) or 5}", paths=[f"{partition}0"]
    )
    return draft("DELETE", [new("kept", partition)], [FILE[partition]], reads=reads)


def delete_by_vector(partition: str) -> CommitDraft:
    reads = reading(f"p = '{partition}'", paths=[f"{partition}0"])
    return draft("DELETE", [vector(FILE[partition])], [FILE[partition]], reads=reads)


def optimize(partition: str) -> CommitDraft:
    reads = reading(f"p = '{partition}'", paths=[f"{partition}0"])
    return draft("OPTIMIZE", [new("compacted", partition)], [FILE[partition]], reads=reads, data_change=False)


def overwrite() -> CommitDraft:
    return draft("WRITE", [new("over", "x")], FILE.values(), reads=ReadSet(whole_table=True))


def set_property() -> CommitDraft:
    _, metadata = declared(partitioned=True, properties={"owner": "me"})
    return draft("SET TBLPROPERTIES", metadata=metadata)


def vacuum() -> CommitDraft:
    return draft("VACUUM START", data_change=False)


def stream() -> CommitDraft:
    """A streaming write: an append that knows which batch the table has."""
    transaction = SetTransaction(app_id="query", version=1)
    reads = ReadSet(transactions=frozenset(["query"]))
    return draft("STREAMING UPDATE", [new("stream", "x")], transactions=(transaction,), reads=reads)


OPERATIONS: dict[str, CommitDraft] = {
    "append x": append("x"),
    "append y": append("y"),
    "insert select x": insert_select("x"),
    "replace where x": replace_where("x"),
    "delete x": delete("x"),
    "delete y": delete("y"),
    "delete by vector x": delete_by_vector("x"),
    "optimize x": optimize("x"),
    "optimize y": optimize("y"),
    "overwrite": overwrite(),
    "set property": set_property(),
    "vacuum": vacuum(),
    "stream": stream(),
}

APPEND, READ, DELETED = ConcurrentAppendError, ConcurrentDeleteReadError, ConcurrentDeleteDeleteError
METADATA, TRANSACTION = MetadataChangedError, ConcurrentTransactionError
_ALIKE: dict[str, type[CommitConflictError]] = {"set property": METADATA}
# Of a loser: the winners that conflict with it when the table is Serializable; all others do not.
_READERS_OF_X: dict[str, type[CommitConflictError]] = {
    **_ALIKE,
    "append x": APPEND,
    "insert select x": APPEND,
    "replace where x": APPEND,
    "delete x": APPEND,
    "delete by vector x": READ,
    "optimize x": READ,
    "overwrite": APPEND,
    "stream": APPEND,
}
SERIALIZABLE: dict[str, dict[str, type[CommitConflictError]]] = {
    "append x": _ALIKE,
    "append y": _ALIKE,
    "insert select x": _READERS_OF_X,
    "replace where x": _READERS_OF_X,
    "delete x": _READERS_OF_X,
    "delete y": {**_ALIKE, "append y": APPEND, "delete y": APPEND, "optimize y": READ, "overwrite": READ},
    "delete by vector x": _READERS_OF_X,
    "optimize x": {
        **_ALIKE,
        "replace where x": READ,
        "delete x": READ,
        "delete by vector x": READ,
        "optimize x": READ,
        "overwrite": READ,
    },
    "optimize y": {**_ALIKE, "delete y": READ, "optimize y": READ, "overwrite": READ},
    "overwrite": {
        **_ALIKE,
        "append x": APPEND,
        "append y": APPEND,
        "insert select x": APPEND,
        "replace where x": APPEND,
        "delete x": APPEND,
        "delete y": APPEND,
        "delete by vector x": DELETED,
        "optimize x": DELETED,
        "optimize y": DELETED,
        "overwrite": APPEND,
        "stream": APPEND,
    },
    "set property": _ALIKE,
    "vacuum": _ALIKE,
    "stream": {**_ALIKE, "stream": TRANSACTION},
}
BLIND = ("append x", "append y", "stream")


def expected(loser: str, winner: str, level: IsolationLevel) -> type[CommitConflictError] | None:
    found = SERIALIZABLE[loser].get(winner)
    if found is APPEND and level is not IsolationLevel.SERIALIZABLE:
        if winner in BLIND:
            return None
        if level is IsolationLevel.SNAPSHOT:  # then the files that the winner removed decide, where it removed any
            removes = {f["path"] for f in OPERATIONS[winner].removes.to_pylist()}
            read = OPERATIONS[loser].reads.paths
            own = {f["path"] for f in OPERATIONS[loser].removes.to_pylist()}
            return READ if removes & read else DELETED if removes & own else None
    return found


@pytest.mark.parametrize("level", list(IsolationLevel))
@pytest.mark.parametrize("loser", OPERATIONS)
@pytest.mark.parametrize("winner", OPERATIONS)
def test_every_pair_of_operations(loser: str, winner: str, level: IsolationLevel) -> None:
    location = memory_location()
    base = create(location, partitioned=True, adds=FILE.values(), properties={"delta.isolationLevel": level.value})
    first, second = (_anew(OPERATIONS[name], base.configuration) for name in (winner, loser))
    commit(first, base)
    error = expected(loser, winner, level)
    if error is None:
        assert commit(second, base).version == 2
        assert info(location, 2)["txnId"] == second.transaction_id
        Snapshot.load(location).files()
        return
    with pytest.raises(CommitConflictError) as caught:
        commit(second, base)
    assert type(caught.value) is error
    assert caught.value.version == 1
    assert caught.value.facts["operation"] == first.operation.name
    assert re.search(r"[Vv]ersion 1 \(.* by pyspark-delta/", caught.value.message)
    assert f"while this {second.operation.name} ran; nothing was committed. " in caught.value.message
    assert not has_version(location, 2)


def _anew(made: CommitDraft, configuration: Any) -> CommitDraft:
    """The draft as if it were made for this table."""
    if made.metadata is not None:
        made = replace(made, metadata=replace(configuration.metadata, configuration=made.metadata.configuration))
    rows = [f if f["path"] in ("x0", "y0") else {**f, "path": uuid.uuid4().hex} for f in made.adds.to_pylist()]
    return replace(made, adds=files(*rows), transaction_id=uuid.uuid4().hex)


# ------------------------------------------------------------------------------------- predicates and statistics
@pytest.mark.parametrize(
    ("predicate", "added", "conflicts"),
    [
        ("id = 5", file("w", ids=(0, 4)), False),
        ("id = 5", file("w", ids=(0, 5)), True),
        ("id = 5", file("w"), True),  # without statistics nothing can be said
        ("id > 100 OR id < 0", file("w", ids=(0, 100)), False),
        ("id IS NULL", file("w", ids=(0, 4)), False),
        ("p = 'a'", file("w", ids=(0, 4)), True),
        ("id = 5 AND p = 'a'", file("w", ids=(6, 9)), False),
    ],
)
def test_statistics_tell_rows_apart_where_partitions_do_not(
    predicate: str, added: dict[str, Any], conflicts: bool
) -> None:
    location = memory_location()
    base = create(location, adds=["f"])
    commit(draft(adds=[added]), base)
    delete = draft("DELETE", ["g"], ["f"], reads=reading(predicate, paths=["f"]))
    if not conflicts:
        assert commit(delete, base).version == 2
        return
    with pytest.raises(ConcurrentAppendError) as caught:
        commit(delete, base)
    assert caught.value.facts["path"] == "w"
    assert "may match" in caught.value.message
    assert "WriteSerializable" in caught.value.message


def test_one_of_several_predicates_is_enough() -> None:
    location = memory_location()
    base = create(location, partitioned=True, adds=[FILE["x"]])
    commit(draft(adds=[new("w", "y")]), base)
    with pytest.raises(ConcurrentAppendError, match=r"'w-y' of the partition p=y; rows of it may match 'p = 'y''"):
        commit(draft(adds=["g"], reads=reading("p = 'x'", "p = 'y'")), base)


def test_every_winner_is_looked_at() -> None:
    location = memory_location()
    base = create(location, partitioned=True, adds=FILE.values())
    latest = commit(append("y"), base)
    latest = commit(append("y"), latest)
    commit(append("x"), latest)
    with pytest.raises(ConcurrentAppendError) as caught:
        commit(delete("x"), base)
    assert caught.value.version == 3


def test_paths_are_compared_decoded() -> None:
    location = memory_location()
    base = create(location, adds=["a%20b"])
    commit(draft("DELETE", removes=["a%20b"]), base)
    with pytest.raises(ConcurrentDeleteDeleteError):
        commit(draft("DELETE", removes=[f"{location}/a%20b"]), base)


def test_files_that_an_upgrade_numbers_are_not_removed_without_their_ids() -> None:
    location = memory_location()
    base = create(location, "rowTracking", "domainMetadata", properties={"delta.rowTrackingSuspended": "true"})
    base = commit(draft(adds=["f", "g"]), base)
    numbered = [file("f", base_row_id=0, default_row_commit_version=2)]
    commit(draft("ROW TRACKING BACKFILL", numbered, reads=reading(paths=["f"]), data_change=False), base)
    with pytest.raises(ConcurrentDeleteDeleteError, match="'f' again"):
        commit(draft("DELETE", removes=["f"], reads=reading(paths=["f"])), base)
    assert commit(draft("DELETE", removes=["g"], reads=reading(paths=["g"])), base).version == 3


def test_a_file_that_is_gone_is_not_committed_again() -> None:
    location = memory_location()
    base = create(location, adds=["f", "g"])
    commit(draft("DELETE", removes=["f"]), base)
    with pytest.raises(ConcurrentDeleteDeleteError, match="'f'"):
        commit(draft("COMPUTE STATS", ["f"], reads=reading("id = 1"), data_change=False), base)


# ----------------------------------------------------------------------------------- changes that harm nobody
def test_features_may_be_enabled_while_others_write() -> None:
    for feature, name in (
        ("deletionVectors", "delta.enableDeletionVectors"),
        ("inCommitTimestamp", "delta.enableInCommitTimestamps"),
        ("appendOnly", "delta.appendOnly"),
        ("changeDataFeed", "delta.enableChangeDataFeed"),
        ("rowTracking", "delta.enableRowTracking"),
    ):
        location = memory_location()
        base = create(location, adds=["f"])
        protocol, metadata = declared(feature, "domainMetadata", properties={name: "true"})
        commit(draft("SET TBLPROPERTIES", protocol=protocol, metadata=metadata), base)
        after = commit(draft(adds=["a"]), base)
        assert after.version == 2
        assert after.configuration is not None
        assert after.configuration.properties[name] == "true"
        assert feature in supported_features(after.configuration)


@pytest.mark.parametrize(
    ("features", "properties", "error", "what"),
    [
        (("checkConstraints",), {}, "ProtocolChangedError", "now supports 'checkConstraints'"),
        (("unheardOf",), {}, "ProtocolChangedError", "now supports 'unheardOf'"),
        ((), {"delta.dataSkippingNumIndexedCols": "1"}, "MetadataChangedError", "properties 'delta.dataSkippingNum"),
        (("deletionVectors",), {"delta.enableDeletionVectors": "false"}, "MetadataChangedError", "DeletionVectors"),
    ],
)
def test_what_prepared_files_may_not_meet(
    features: tuple[str, ...], properties: dict[str, str], error: str, what: str
) -> None:
    location = memory_location()
    base = create(location, adds=["f"])
    protocol, metadata = declared(*features, properties=properties)
    commit(draft("SET TBLPROPERTIES", protocol=protocol if features else None, metadata=metadata), base)
    with pytest.raises(CommitConflictError, match=what) as caught:
        commit(draft(adds=["a"]), base)
    assert type(caught.value).__name__ == error


def test_a_feature_that_is_dropped_meanwhile_stops_writers() -> None:
    location = memory_location()
    base = create(location, "deletionVectors", adds=["f"])
    protocol, _ = declared("domainMetadata")
    commit(draft("DROP FEATURE", protocol=protocol), base)
    with pytest.raises(ProtocolChangedError, match="no longer supports 'deletionVectors'"):
        commit(draft(adds=["a"]), base)


def test_a_supported_change_feed_is_enabled_for_appends_only() -> None:
    location = memory_location()
    base = create(location, "changeDataFeed", adds=["f"])
    _, metadata = declared(properties={"delta.enableChangeDataFeed": "true"})
    commit(draft("SET TBLPROPERTIES", metadata=metadata), base)
    assert commit(draft(adds=["a"]), base).version == 2
    with pytest.raises(MetadataChangedError, match=r"delta\.enableChangeDataFeed"):
        commit(draft("UPDATE", ["g"], ["f"], reads=reading("id = 1", paths=["f"])), base)


def test_rows_are_not_rewritten_without_change_files_when_the_feed_is_enabled_meanwhile() -> None:
    location = memory_location()
    base = create(location, adds=["f"])
    protocol, metadata = declared("changeDataFeed", properties={"delta.enableChangeDataFeed": "true"})
    commit(draft("SET TBLPROPERTIES", protocol=protocol, metadata=metadata), base)
    with pytest.raises(CommitConflictError, match="now supports 'changeDataFeed'"):
        commit(draft("UPDATE", ["g"], ["f"], reads=reading("id = 1", paths=["f"])), base)


def test_c397_an_identity_column_may_go_on_counting() -> None:
    location = memory_location()
    protocol, metadata = declared("identityColumns")

    def counted(to: int) -> Any:
        column = {**field("id"), "metadata": {"delta.identity.start": 1, "delta.identity.highWaterMark": to}}
        return replace(metadata, schema_string=_schema(column))

    base = commit(draft("CREATE TABLE", ["f"], protocol=protocol, metadata=counted(1)), _nothing(location))
    commit(draft(adds=["a"], metadata=counted(5)), base)
    after = commit(draft("DELETE", removes=["f"], reads=reading(paths=["f"])), base)
    assert after.configuration is not None
    assert '"delta.identity.highWaterMark": 5' in after.configuration.metadata.schema_string
    with pytest.raises(MetadataChangedError, match="both change the metadata"):
        commit(draft(adds=["b"], metadata=counted(9)), base)


def _schema(*fields: Any) -> str:
    return json.dumps({"type": "struct", "fields": list(fields)})


def _nothing(location: str) -> Any:
    return TableState(location=location)
