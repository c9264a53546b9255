"""A transaction without Spark: several changes, one version or none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.commits import (
    NO_WAIT,
    actions,
    commit,
    create,
    declared,
    draft,
    file,
    files,
    has_version,
    info,
    memory_location,
)
from tests.declarations import declare, field, protocol, with_features

from pyspark_delta.commit import CommitRequest, CommitResult, FilesystemCommitter, Transient, Unknown
from pyspark_delta.errors import (
    CommitStateUnknownError,
    ConcurrentAppendError,
    ConcurrentDeleteReadError,
    ConcurrentTransactionError,
    ConstraintViolationError,
    CorruptLogError,
    DeltaWarning,
    InvalidOperationError,
    SchemaMismatchError,
    StorageError,
    UnsupportedFeatureError,
)
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.protocol.properties import check_property
from pyspark_delta.schema.json import schema_to_json
from pyspark_delta.schema.types import LONG, StructField, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.storage import intercepted, store_for
from pyspark_delta.table import Table
from pyspark_delta.testing.faults import Fault, FaultyStore, SimulatedCrash
from pyspark_delta.transaction import base
from pyspark_delta.transaction.transaction import Phase, Transaction
from pyspark_delta.write.options import parse_options


@pytest.fixture
def location() -> str:
    return memory_location()


def rows(*ids: int, p: str = "x") -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"p": pa.array([p] * len(ids)), "id": pa.array(ids, pa.int64())})


def table(location: str, *features: str, **more: Any) -> Snapshot:
    """A table partitioned by `p` with the rows (x, 1) and (y, 2)."""
    made, metadata = declared(*features, partitioned=True, **more)
    with Transaction.creating(location, TableConfiguration(made, metadata)) as transaction:
        transaction.write([rows(1), rows(2, p="y")])
    return Snapshot.load(location)


def test_rows_of_mixed_partitions_become_a_file_for_each(location: str) -> None:
    table(location)
    values = {"p": [*"xyzxyz", None, "x"], "id": list(range(10, 18))}
    mixed = pa.RecordBatch.from_pydict(values, pa.schema([("p", pa.string()), ("id", pa.int64())]))
    with Transaction.on(Snapshot.load(location)) as transaction:
        written = transaction.write([mixed.slice(0, 5), mixed.slice(5)])
    assert sorted(written["num_records"].to_pylist()) == [1, 2, 2, 3]
    found = Table.open(location).scan(where="id >= 10").to_arrow()
    assert sorted(found["id"].to_pylist()) == values["id"]
    assert found.filter(pc.equal(found["p"], "x"))["id"].to_pylist() == [10, 13, 17]


def content(location: str) -> list[tuple[str, int]]:
    return sorted((r["p"], r["id"]) for r in Table.open(location).scan().to_arrow().to_pylist())


def data_files(location: str) -> set[str]:
    return {
        status.path
        for partition in ("p=x", "p=y")
        for status in store_for(location).list_from(f"{location}/{partition}/")
    }


def test_c015_many_changes_are_one_version(location: str) -> None:
    snapshot = table(location, "domainMetadata")
    with Transaction.on(snapshot, Operation("MY JOB"), engine_info="me") as transaction:
        old = transaction.read(where="p = 'x'")
        transaction.remove(old.files)
        transaction.write([rows(3)])
        transaction.write([rows(4, 5)])
        transaction.set_application_version("job", 7)
        transaction.set_domain("com.example.mark", "1")
        assert content(location) == [("x", 1), ("y", 2)]
    assert transaction.version == 1
    assert transaction.phase is Phase.COMMITTED
    assert content(location) == [("x", 3), ("x", 4), ("x", 5), ("y", 2)]
    assert len(actions(location, 1, "remove")) == 1
    assert len(actions(location, 1, "add")) == 2
    assert actions(location, 1, "txn")[0]["version"] == 7
    assert (info(location, 1)["operation"], info(location, 1)["engineInfo"]) == ("MY JOB", "me")
    assert info(location, 1)["isBlindAppend"] is False


def test_drafts_are_values(location: str) -> None:
    transaction = Transaction.on(table(location))
    before = transaction.draft
    transaction.write([rows(3)])
    assert before.adds.num_rows == 0
    assert transaction.draft.adds.num_rows == 1
    assert transaction.draft.transaction_id == before.transaction_id


def test_an_exception_leaves_the_table_and_its_files_as_they_were(location: str) -> None:
    snapshot = table(location)
    before = data_files(location)
    transaction = Transaction.on(snapshot)

    def change() -> None:
        with transaction:
            transaction.write([rows(3)])
            assert len(data_files(location)) == 3
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change()
    assert transaction.phase is Phase.DISCARDED
    assert not has_version(location, 1)
    assert data_files(location) == before


def test_a_conflict_deletes_what_was_written_and_nothing_else(location: str) -> None:
    snapshot, before = table(location), set()
    transaction = Transaction.on(snapshot)

    def change() -> None:
        with transaction:
            transaction.read(where="p = 'x' AND id < 10")
            transaction.add(_existing(location))
            transaction.write([rows(3)])
            with Transaction.on(snapshot) as winner:
                winner.write([rows(4)])
            before.update(data_files(location))

    with pytest.raises(ConcurrentAppendError):
        change()
    assert content(location) == [("x", 1), ("x", 4), ("y", 2)]
    assert len(before) == 5  # two at first, one of the winner, one staged by hand, one written
    assert len(data_files(location)) == 4


def _existing(location: str) -> pa.Table:
    store_for(location).write(f"{location}/p=x/by-hand", b"")
    return files(file("p=x/by-hand", "x"))


def test_what_was_read_counts_and_nothing_beyond(location: str) -> None:
    snapshot = table(location)
    with Transaction.on(snapshot) as transaction:
        transaction.read(where="p = 'x' AND id < 10")
        transaction.write([rows(3)])
        with Transaction.on(snapshot) as winner:
            winner.write([rows(50), rows(5, p="y")])
    assert content(location) == [("x", 1), ("x", 3), ("x", 50), ("y", 2), ("y", 5)]


def test_a_read_file_that_is_removed_conflicts(location: str) -> None:
    snapshot = table(location)
    transaction = Transaction.on(snapshot)

    def change() -> None:
        with transaction:
            assert transaction.read(where="p = 'y'").files.num_rows == 1
            transaction.write([rows(3)])
            with Transaction.on(snapshot) as winner:
                winner.remove(winner.read(where="p = 'y'").files)

    with pytest.raises(ConcurrentDeleteReadError):
        change()


def test_c180_an_application_that_was_looked_at_conflicts(location: str) -> None:
    snapshot = table(location)
    transaction = Transaction.on(snapshot)

    def change() -> None:
        with transaction:
            assert transaction.application_version("job") is None
            transaction.write([rows(3)])
            with Transaction.on(snapshot) as winner:
                winner.set_application_version("job", 1)

    with pytest.raises(ConcurrentTransactionError):
        change()
    assert Transaction.on(Snapshot.load(location)).application_version("job") == 1


def test_c201_c205_system_domains_are_not_the_users(location: str) -> None:
    transaction = Transaction.on(table(location, "domainMetadata"))
    for change in (
        lambda: transaction.set_domain("delta.x", "1"),
        lambda: transaction.remove_domain("delta.x"),
    ):
        with pytest.raises(InvalidOperationError, match=r"'delta\.x'"):
            change()


def test_c201_c202_a_system_domain_that_is_there_is_not_removed_either(location: str) -> None:
    snapshot = table(location, "rowTracking", "domainMetadata")
    with pytest.raises(InvalidOperationError, match="reserved"):
        Transaction.on(snapshot).remove_domain("delta.rowTracking")


def test_c204_a_removal_keeps_what_the_domain_was(location: str) -> None:
    table(location, "domainMetadata")
    with Transaction.on(Snapshot.load(location)) as transaction:
        transaction.set_domain("com.x", "0").set_domain("com.x", "1")
    with Transaction.on(Snapshot.load(location)) as transaction:
        transaction.remove_domain("com.x")
    assert actions(location, 2, "domainMetadata") == [{"domain": "com.x", "configuration": "1", "removed": True}]
    assert Snapshot.load(location).domains() == {}


def test_nothing_is_committed_where_nothing_changes(location: str) -> None:
    snapshot = table(location)
    with Transaction.on(snapshot) as transaction:
        transaction.read(where="id = 1")
        transaction.write([])
        transaction.declare(snapshot.configuration)
    assert transaction.version == 0
    assert not has_version(location, 1)


def test_an_ended_transaction_stays_ended(location: str) -> None:
    with Transaction.on(table(location)) as transaction:
        transaction.write([rows(3)])
    for again in (transaction.commit, transaction.discard, lambda: transaction.write([])):
        with pytest.raises(InvalidOperationError, match="is committed"):
            again()
    assert len(content(location)) == 3


def test_only_files_of_the_table_are_removed(location: str) -> None:
    transaction = Transaction.on(table(location))
    with pytest.raises(InvalidOperationError, match="'other' is not part of version 0"):
        transaction.remove(pa.table({"path": ["other"]}))
    found = transaction.read().files
    transaction.remove(pa.concat_tables([found, found])).remove(found.slice(1)).commit()
    assert len(actions(location, 1, "remove")) == 2
    assert content(location) == []


@pytest.mark.parametrize(
    ("columns", "error", "match"),
    [
        ({"p": ["x"]}, SchemaMismatchError, "have the columns p, and the table has p, id"),
        ({"p": ["x"], "id": [1], "more": [1]}, SchemaMismatchError, "p, id, more"),
        ({"p": ["x"], "ID": [1]}, SchemaMismatchError, "p, ID"),
        ({"p": ["x"], "id": ["one"]}, ConstraintViolationError, "column 'id'"),
        ({"p": ["x"], "id": [[1]]}, ConstraintViolationError, "column 'id'"),
        ({"p": [[1]], "id": [1]}, ConstraintViolationError, "column 'p'"),
    ],
)
def test_rows_have_the_columns_of_the_table(
    location: str, columns: dict[str, list[Any]], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match), Transaction.on(table(location)) as transaction:
        transaction.write([pa.RecordBatch.from_pydict(columns)])
    assert content(location) == [("x", 1), ("y", 2)]
    assert len(data_files(location)) == 2


def test_tables_that_cannot_be_written_are_refused_at_once(location: str) -> None:
    create(location, "unheardOf")
    with pytest.raises(UnsupportedFeatureError, match="unheardOf"):
        Transaction.on(Snapshot.load(location))


def test_rows_can_be_written_to_a_table_with_not_null_columns(location: str) -> None:
    required = {**field("id"), "nullable": False}
    with Transaction.creating(location, declare(protocol(1, 2), fields=[required])) as transaction:
        transaction.write([pa.RecordBatch.from_pydict({"id": pa.array([1], pa.int64())})])
    assert Snapshot.load(location).num_files() == 1


def test_rows_of_a_table_with_void_columns_go_in_as_they_come_out(location: str) -> None:
    members = {"type": "struct", "fields": [field("a"), {**field("v"), "type": "void"}]}
    fields = [field("id"), {**field("n"), "type": "void"}, {**field("s"), "type": members}]
    with Transaction.creating(location, declare(protocol(1, 2), fields=fields)) as transaction:
        transaction.write([pa.RecordBatch.from_pylist([{"id": 1, "s": {"a": 1, "v": None}}])])
    read = Table.open(location).scan().to_arrow()
    assert read.to_pylist() == [{"id": 1, "n": None, "s": {"a": 1, "v": None}}]
    with Transaction.on(Snapshot.load(location)) as transaction:
        transaction.write(read.to_batches())
    assert Table.open(location).scan().to_arrow().to_pylist() == read.to_pylist() * 2
    with pytest.raises(SchemaMismatchError, match="id, n, s"), Transaction.on(Snapshot.load(location)) as transaction:
        transaction.write([pa.RecordBatch.from_pylist([{"id": 1, "n": 5, "s": None}])])


def test_rows_that_need_spark_are_refused(location: str) -> None:
    checked, metadata = declared("checkConstraints", properties={"delta.constraints.positive": "id > 0"})
    with pytest.raises(InvalidOperationError, match=r"CHECK constraint 'positive'.*DataFrame"):
        Transaction.creating(location, TableConfiguration(checked, metadata)).write([rows(1)])


# ----------------------------------------------------------------------------------------------- uncertain ends
class Answers:
    """Commits, or does not, and answers as told."""

    def __init__(self, location: str, answer: CommitResult, landing: bool) -> None:
        self.real, self.answer, self.landing = FilesystemCommitter(store_for(location)), answer, landing

    def commit(self, request: CommitRequest) -> CommitResult:
        if self.landing:
            self.real.commit(request)
        return self.answer


LOST = StorageError("The connection was lost.", path="x")


@pytest.mark.parametrize("landing", [True, False])
@pytest.mark.parametrize(
    ("answer", "error"), [(Unknown(LOST), CommitStateUnknownError), (Transient(LOST), StorageError)]
)
def test_files_stay_where_the_commit_may_have_landed(
    location: str, answer: CommitResult, error: type[Exception], landing: bool
) -> None:
    snapshot = table(location)
    committer = Answers(location, answer, landing)
    with pytest.raises(error), Transaction.on(snapshot, committer=committer, policy=NO_WAIT) as transaction:
        transaction.write([rows(3)])
    assert len(data_files(location)) == 3
    assert content(location) == [("x", 1), *([("x", 3)] if landing else []), ("y", 2)]


def test_files_stay_where_what_follows_the_commit_fails(location: str) -> None:
    snapshot = table(location)
    fault = Fault(kind="write_if_absent", path_part=".crc")
    with (
        intercepted(lambda store: FaultyStore(store, fault)),
        pytest.warns(DeltaWarning, match="is committed"),
        Transaction.on(snapshot) as transaction,
    ):
        transaction.write([rows(3)])
    assert content(location) == [("x", 1), ("x", 3), ("y", 2)]


def test_a_crash_leaves_everything_where_it_is(location: str) -> None:
    snapshot = table(location)
    transaction = Transaction.on(snapshot)

    def change() -> None:
        with transaction:
            transaction.write([rows(3)])
            raise SimulatedCrash("here")

    with pytest.raises(SimulatedCrash):
        change()
    assert len(data_files(location)) == 3
    assert content(location) == [("x", 1), ("y", 2)]


def test_files_that_cannot_be_deleted_are_no_error(location: str) -> None:
    snapshot = table(location)
    transaction = Transaction.on(snapshot)
    transaction.write([rows(3)])
    with intercepted(lambda store: FaultyStore(store, Fault(kind="delete"))):
        transaction.discard()
    assert len(data_files(location)) == 3


def test_row_ids_and_times_come_with_it(location: str) -> None:
    snapshot = table(
        location,
        "rowTracking",
        "domainMetadata",
        "inCommitTimestamp",
        properties={"delta.enableInCommitTimestamps": "true"},
    )
    with Transaction.on(snapshot) as transaction:
        transaction.write([rows(3, 4, 5)])
    assert [a["baseRowId"] for a in actions(location, 1, "add")] == [2]
    assert commit(draft(), transaction_state(transaction)).timestamp > info(location, 1)["inCommitTimestamp"]


def transaction_state(transaction: Transaction) -> Any:
    return transaction._base


HALF = "a\ud83d"  # of a surrogate pair


@pytest.mark.parametrize(
    "change",
    [
        lambda location: create(location, properties={"key": HALF}),
        lambda location: create(location, properties={HALF: "value"}),
        lambda location: Transaction.on(table(location)).set_user_metadata(HALF),
        lambda location: Transaction.on(table(location)).set_application_version(HALF, 1),
        lambda location: commit(draft(HALF), create(location)),
        lambda location: schema_to_json(StructType((StructField(HALF, LONG),))),
        lambda location: check_property("key", HALF),
        lambda location: parse_options({"userMetadata": HALF}),
    ],
    ids=["value", "key", "user metadata", "application", "operation", "column", "property", "option"],
)
def test_a_text_that_is_not_unicode_is_refused_by_name(location: str, change: Callable[[str], object]) -> None:
    with pytest.raises(InvalidOperationError, match=r"'a\\ud83d' contains an unpaired surrogate"):
        change(location)
    assert not has_version(location, 1)


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("damage", ["cut off", "not JSON"])
def test_a_table_whose_newest_commit_is_damaged_takes_no_commit(
    damage: str, long: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version checksum says all that an append needs, so that it would not notice by itself."""
    location = str(tmp_path / "t")
    with Transaction.creating(location, with_features(fields=[field("x", "long")])):
        pass
    log = tmp_path / "t" / "_delta_log"
    commit = log / f"{0:020}.json"
    whole = commit.read_bytes()
    assert (log / f"{0:020}.crc").exists()
    commit.write_bytes(whole[:-20] if damage == "cut off" else b"\0" * len(whole))
    clear_cache()
    if long:
        monkeypatch.setattr(base, "_LONG", 10)
        monkeypatch.setattr(base, "_END", 10)
    with pytest.raises(CorruptLogError, match=commit.name):
        Transaction.on(Snapshot.load(location))
    assert not (log / f"{1:020}.json").exists()
    commit.write_bytes(whole)
    with Transaction.on(Snapshot.load(location)) as transaction:
        transaction.set_application_version("a", 1)
    assert (log / f"{1:020}.json").exists()


def test_the_staged_snapshot_shows_what_the_commit_would_leave(location: str) -> None:
    with Transaction.on(table(location)) as transaction:
        assert transaction.staged_snapshot.version == 0
        transaction.remove(transaction.read(where="p = 'x'").files)
        transaction.write([rows(3, 4, p="z")])
        first, second = transaction.staged_snapshot, transaction.staged_snapshot
        assert (first.version, first.num_files(), first.record_count.total) == (1, 2, 3)
        assert first.segment.last_commit != second.segment.last_commit, "neither may be taken for version 1"
        assert Snapshot.load(location).version == 0
    paths = Snapshot.load(location).files(("path",)), first.files(("path",))
    assert sorted(paths[0]["path"].to_pylist()) == sorted(paths[1]["path"].to_pylist())


def test_reads_and_removals_see_what_the_transaction_wrote(location: str) -> None:
    with Transaction.on(table(location)) as transaction:
        transaction.write([rows(3, 4, p="z")])
        found = transaction.read(where="p = 'z'")
        assert found.files.num_rows == 1
        transaction.remove(found.files)
        assert transaction.read(where="p = 'z'").files.num_rows == 0
        transaction.write([rows(5, p="z")])
        assert transaction.draft.reads.paths == frozenset(), "no other commit can change files of the transaction"
    after = Snapshot.load(location)
    assert found.files["path"][0].as_py() not in after.files(("path",))["path"].to_pylist()
    assert (after.version, after.record_count.total) == (1, 3)
