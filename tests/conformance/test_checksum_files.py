"""`_last_checkpoint`, its JSON checksum, and the version checksum file (LCP, CRC)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_delta.actions.columns import DELETION_VECTOR, MODIFICATION_TIME, PARTITION_VALUES, PATH, SIZE
from pyspark_delta.actions.model import DomainMetadata, SetTransaction
from pyspark_delta.errors import ChecksumMismatchError, CorruptLogError
from pyspark_delta.log.file_totals import BIN_BOUNDARIES
from pyspark_delta.log.json_checksum import (
    canonical_string,
    canonical_string_by_pair,
    checksum_matches,
    json_checksum,
    parse_exactly,
)
from pyspark_delta.log.last_checkpoint import parse_last_checkpoint, read_last_checkpoint
from pyspark_delta.log.segment import load_segment
from pyspark_delta.log.version_checksum import parse_checksum
from pyspark_delta.protocol.draft import CommitDraft, Operation, ReadSet
from pyspark_delta.snapshot import Snapshot, validate_checksum
from pyspark_delta.storage import store_for
from pyspark_delta.testing.table_builder import TableBuilder, add, metadata, protocol, remove
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of

EXAMPLE = """{"k0":"'v 0'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4",
"k5": ["v5", "v6", "v7"]}]}}"""
CANONICAL = (
    '"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,"k1"+"k3"+2+"k4"="v4",'
    '"k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6","k1"+"k3"+2+"k5"+2="v7"'
)


def canonical(text: str) -> str:
    return canonical_string(parse_exactly(text))


# ---------------------------------------------------------------------------------------------------------- LCP
def test_c080_the_hint() -> None:
    hint = parse_last_checkpoint(
        b'{"version":10,"size":7,"parts":3,"sizeInBytes":99,"numOfAddFiles":5,"tags":{"a":"b"},"checkpointSchema":{}}'
    )
    assert (hint.version, hint.size, hint.parts, hint.size_in_bytes, hint.num_of_add_files) == (10, 7, 3, 99, 5)
    assert parse_last_checkpoint(b'{"version":10,"size":7}').parts is None


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    """A table of versions 0 to 3 with checkpoints of 1 and 2."""
    table = TableBuilder(tmp_path)
    table.commit(0, [protocol(), metadata(), add("0")])
    for version in (1, 2, 3):
        table.commit(version, [add(str(version))])
    table.classic_checkpoint(1, [protocol(), metadata(), add("0"), add("1")])
    table.classic_checkpoint(2, [protocol(), metadata(), add("0"), add("1"), add("2")])
    return table


def test_c081_the_listing_begins_at_the_hint_and_finds_newer_checkpoints(builder: TableBuilder) -> None:
    builder.hint({"version": 1, "size": 4})
    (builder.log / f"{0:020d}.json").unlink()
    segment = load_segment(store_for(builder.location), builder.location)
    assert segment.checkpoint_version == 2
    assert segment.end_version == 3


@pytest.mark.parametrize(
    "hint",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"version":"x"}',
        b'{"size":1}',
        b'{"version":-1}',
        b'{"version":99999999999999999999}',
        b'{"version":77,"size":1}',
        b'{"version":1,"size":4,"checksum":"00000000000000000000000000000000"}',
        b'{"version":1,"version":1,"checksum":"x"}',
        b"\xff\xfe",
        b'{"checksum":' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
)
def test_c082_a_hint_of_no_use_costs_a_full_listing(builder: TableBuilder, hint: bytes) -> None:
    builder.hint(hint)
    assert Snapshot.load(builder.location).version == 3
    assert Snapshot.load(builder.location).num_files() == 4


def test_c083_the_checksum_is_validated(builder: TableBuilder) -> None:
    value = {"version": 2, "size": 5}
    good = {**value, "checksum": json_checksum(json.dumps(value))}
    builder.hint(good)
    found = read_last_checkpoint(store_for(builder.location), builder.location)
    assert found is not None
    assert found.version == 2
    builder.hint({**good, "size": 6})
    assert read_last_checkpoint(store_for(builder.location), builder.location) is None


def test_c085_c093_the_example() -> None:
    assert canonical(EXAMPLE) == CANONICAL
    assert json_checksum(EXAMPLE) == "6a92d155a59bf2eecbd4b4ec7fd1f875"
    assert hashlib.md5(CANONICAL.encode(), usedforsecurity=False).hexdigest() == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def test_c086_literals_stand_for_themselves() -> None:
    assert canonical('{"a":true,"b":false,"c":null}') == '"a"=true,"b"=false,"c"=null'


@pytest.mark.parametrize("number", ["3.14", "1E5", "1e+05", "-0", "0.10", "123456789012345678901234567890"])
def test_c087_numbers_keep_their_text(number: str) -> None:
    assert canonical(f'{{"a":{number}}}') == f'"a"={number}'


def test_c088_strings_are_encoded_within_quotes() -> None:
    assert canonical('{"a":"hello world"}') == '"a"="hello%20world"'


def test_c089_objects_are_flattened_and_sorted() -> None:
    text = '{"b":{"y":null,"x":"https://delta.io"},"a":10}'
    assert canonical(text) == '"a"=10,"b"+"x"="https%3A%2F%2Fdelta.io","b"+"y"=null'


def test_c090_arrays_have_their_indices_as_names() -> None:
    assert canonical_string([None, "hi ho", parse_exactly("2.71")]) == '0=null,1="hi%20ho",2=2.71'


def test_c091_only_the_checksum_at_the_top_is_left_out() -> None:
    assert canonical('{"k1":"v1","checksum":"daswefdssfd","k3":23}') == '"k1"="v1","k3"=23'
    assert canonical('{"a":{"checksum":1}}') == '"a"+"checksum"=1'


def test_c092_duplicate_keys_are_invalid() -> None:
    with pytest.raises(CorruptLogError, match="twice"):
        parse_exactly('{"a":1,"a":2}')
    with pytest.raises(CorruptLogError):
        parse_last_checkpoint(b'{"version":1,"size":1,"size":1,"checksum":"x"}')


def test_c094_the_unreserved_characters_stay_and_all_others_are_encoded() -> None:
    unreserved = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
    assert canonical(json.dumps({"a": unreserved})) == f'"a"="{unreserved}"'
    assert canonical('{"a":">\'/é"}') == '"a"="%3E%27%2F%C3%A9"'


def test_c095_both_orders_of_long_arrays_are_accepted() -> None:
    value: dict[str, Any] = {"version": 1, "size": 1, "tags": {"l": "x"}, "list": list(range(12))}
    text = json.dumps(value)
    by_path, by_pair = canonical(text), canonical_string_by_pair(parse_exactly(text))
    assert by_path != by_pair
    for order in (by_path, by_pair):
        digest = hashlib.md5(order.encode(), usedforsecurity=False).hexdigest()
        assert checksum_matches(json.dumps({**value, "checksum": digest}))
    assert not checksum_matches(json.dumps({**value, "checksum": "0" * 32}))


# ---------------------------------------------------------------------------------------------------------- CRC
def checksum(**changes: Any) -> dict[str, Any]:
    """The right checksum of version 3 of `builder`."""
    value: dict[str, Any] = {
        "txnId": "t",
        "tableSizeBytes": 400,
        "numFiles": 4,
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": metadata()["metaData"],
        "protocol": protocol()["protocol"],
        **changes,
    }
    return {key: member for key, member in value.items() if member is not None}


def parsed(value: Any) -> Any:
    return parse_checksum(json.dumps(value).encode(), "3.crc")


def test_c105_c106_c107_c108_c113_protocol_metadata_and_counts_come_from_the_checksum(builder: TableBuilder) -> None:
    builder.checksum(3, checksum(numFiles=77, tableSizeBytes=88, metadata={**metadata()["metaData"], "id": "other"}))
    snapshot = Snapshot.load(builder.location)
    assert snapshot.metadata.id == "other"
    assert (snapshot.num_files(), snapshot.size_in_bytes()) == (77, 88)
    found = snapshot.checksum()
    assert found is not None
    assert found.txn_id == "t"
    older = Snapshot.load(builder.location, version=2)
    assert older.metadata.id != "other"
    assert older.num_files() == 3


@pytest.mark.parametrize(
    "missing", ["tableSizeBytes", "numFiles", "numMetadata", "numProtocol", "metadata", "protocol"]
)
def test_c107_c108_c109_c113_required_fields(missing: str) -> None:
    with pytest.raises(CorruptLogError, match=missing):
        parsed(checksum(**{missing: None}))


@pytest.mark.parametrize("name", ["numMetadata", "numProtocol"])
def test_c109_exactly_one(name: str) -> None:
    with pytest.raises(CorruptLogError, match="must be 1"):
        parsed(checksum(**{name: 2}))


def test_c110_the_in_commit_timestamp() -> None:
    assert parsed(checksum(inCommitTimestampOpt=1_700_000_000_000)).in_commit_timestamp == 1_700_000_000_000
    assert parsed(checksum()).in_commit_timestamp is None


def test_c111_c112_transactions_and_domains(builder: TableBuilder) -> None:
    transactions = [{"appId": "a", "version": 7}]
    domains = [{"domain": "d", "configuration": "{}", "removed": False}]
    builder.checksum(3, checksum(setTransactions=transactions, domainMetadata=domains))
    snapshot = Snapshot.load(builder.location)
    assert snapshot.transactions()["a"].version == 7
    assert list(snapshot.domains()) == ["d"]


HISTOGRAM = {"sortedBinBoundaries": [0, 1024, 4096], "fileCounts": [1, 2, 3], "totalBytes": [1, 2, 3]}


@pytest.mark.parametrize("name", ["fileSizeHistogram", "histogramOpt"])
def test_c114_c118_c119_the_histogram_under_both_names(name: str) -> None:
    assert parsed(checksum(**{name: HISTOGRAM})).file_size_histogram == HISTOGRAM


@pytest.mark.parametrize(
    "change",
    [{"sortedBinBoundaries": [1, 2, 3]}, {"fileCounts": [1]}, {"sortedBinBoundaries": [0, 5, 2]}, {"totalBytes": "x"}],
)
def test_c118_a_malformed_histogram_counts_as_none(change: dict[str, Any]) -> None:
    assert parsed(checksum(fileSizeHistogram={**HISTOGRAM, **change})).file_size_histogram is None


def test_c115_c116_c117_c120_further_fields_are_accepted() -> None:
    counts = {"deletedRecordCounts": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]}
    found = parsed(
        checksum(allFiles=[], numDeletedRecordsOpt=5, numDeletionVectorsOpt=2, deletedRecordCountsHistogramOpt=counts)
    )
    assert (found.num_deleted_records, found.num_deletion_vectors) == (5, 2)


def test_c121_c122_validation_names_every_difference(builder: TableBuilder) -> None:
    builder.checksum(3, checksum())
    validate_checksum(Snapshot.load(builder.location))
    transactions = [{"appId": "a", "version": 7}]
    builder.checksum(3, checksum(numFiles=5, tableSizeBytes=1, setTransactions=transactions))
    with pytest.raises(ChecksumMismatchError) as raised:
        validate_checksum(Snapshot.load(builder.location))
    for name in ("numFiles is 5", "but 4 in the log", "tableSizeBytes is 1", "setTransactions"):
        assert name in raised.value.message


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"numFiles":"x"}', "{}"])
def test_c123_a_malformed_checksum_is_as_good_as_none(builder: TableBuilder, content: str) -> None:
    (builder.log / f"{3:020d}.crc").write_text(content)
    snapshot = Snapshot.load(builder.location)
    assert snapshot.num_files() == 4
    assert snapshot.checksum() is None
    validate_checksum(snapshot)


def test_removed_files_are_not_counted(builder: TableBuilder) -> None:
    builder.commit(4, [remove("0")])
    builder.checksum(4, checksum(numFiles=3, tableSizeBytes=300))
    validate_checksum(Snapshot.load(builder.location))


# ------------------------------------------------------------------------------------------- checksums of our commits
def file_rows(*files: tuple[str, int, int | None]) -> pa.Table:
    """Files by path, size, and the cardinality of their deletion vector."""
    rows = [
        {
            "path": path,
            "partition_values": [],
            "size": size,
            "modification_time": 1,
            "deletion_vector": None
            if deleted is None
            else {"storage_type": "i", "path_or_inline_dv": "x", "size_in_bytes": 1, "cardinality": deleted},
        }
        for path, size, deleted in files
    ]
    return pa.Table.from_pylist(rows, pa.schema([PATH, PARTITION_VALUES, SIZE, MODIFICATION_TIME, DELETION_VECTOR]))


def commit(location: str, **members: Any) -> None:
    commit_draft(CommitDraft(operation=Operation("WRITE"), **members), state_of(Snapshot.load(location)))


def written(location: str, version: int) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((Path(location) / "_delta_log" / f"{version:020d}.crc").read_text())
    return value


@pytest.fixture
def counted(tmp_path: Path) -> str:
    """A table whose version 1 was committed here, after one by another engine with its checksum."""
    table = TableBuilder(tmp_path)
    value = metadata(configuration={"delta.enableDeletionVectors": "true"})
    features = protocol(3, 7, ["deletionVectors"], ["domainMetadata"])
    table.commit(0, [features, value])
    counts = {"numFiles": 0, "tableSizeBytes": 0, "numMetadata": 1, "numProtocol": 1, "setTransactions": []}
    more = {"numDeletedRecordsOpt": 0, "numDeletionVectorsOpt": 0, "domainMetadata": []}
    histogram = {"sortedBinBoundaries": [0, 1024, 4096], "fileCounts": [0, 0, 0], "totalBytes": [0, 0, 0]}
    both = {"metadata": value["metaData"], "protocol": features["protocol"], "fileSizeHistogram": histogram}
    table.checksum(0, {**counts, **more, **both})
    commit(
        table.location,
        adds=file_rows(("a", 10, None), ("b", 1024, 3), ("c", 9999, None)),
        transactions=(SetTransaction(app_id="app", version=7, last_updated=5),),
        domains=(DomainMetadata(domain="d", configuration="{}", removed=False),),
    )
    return table.location


def test_c105_c106_c107_c108_c109_c113_c124_each_commit_has_one(counted: str) -> None:
    found = written(counted, 1)
    assert (found["tableSizeBytes"], found["numFiles"]) == (11033, 3)
    assert (found["numMetadata"], found["numProtocol"]) == (1, 1)
    assert found["metadata"]["configuration"] == {"delta.enableDeletionVectors": "true"}
    assert found["protocol"]["readerFeatures"] == ["deletionVectors"]
    info = Snapshot.load(counted).commit_info()
    assert info is not None
    assert found["txnId"] == info.txn_id
    assert "inCommitTimestampOpt" not in found


def test_c111_c112_transactions_and_domains_in_force(counted: str) -> None:
    commit(counted, domains=(DomainMetadata(domain="d", configuration="{}", removed=True),))
    assert written(counted, 1)["setTransactions"] == [{"appId": "app", "version": 7, "lastUpdated": 5}]
    assert written(counted, 1)["domainMetadata"] == [{"domain": "d", "configuration": "{}", "removed": False}]
    assert written(counted, 2)["domainMetadata"] == []
    assert written(counted, 2)["setTransactions"] == written(counted, 1)["setTransactions"]


def test_c114_c118_c119_the_histogram_goes_on_with_the_bins_that_it_has(counted: str) -> None:
    commit(counted, removes=file_rows(("a", 10, None)), adds=file_rows(("d", 1023, None), ("e", 4096, None)))
    assert written(counted, 1)["fileSizeHistogram"] == {
        "sortedBinBoundaries": [0, 1024, 4096],
        "fileCounts": [1, 1, 1],
        "totalBytes": [10, 1024, 9999],
    }
    assert written(counted, 2)["fileSizeHistogram"]["fileCounts"] == [1, 1, 2]
    assert written(counted, 2)["fileSizeHistogram"]["totalBytes"] == [1023, 1024, 14095]


def test_c118_our_own_bins_begin_at_nothing_and_rise() -> None:
    assert BIN_BOUNDARIES[:3] == (0, 8192, 16384)
    assert BIN_BOUNDARIES[-1] == 256 << 30
    assert sorted(set(BIN_BOUNDARIES)) == list(BIN_BOUNDARIES)
    assert len(BIN_BOUNDARIES) == 95


def test_c116_deleted_records_and_deletion_vectors(counted: str) -> None:
    commit(counted, removes=file_rows(("b", 1024, 3)), adds=file_rows(("b", 1024, 5), ("x", 1, 1)))
    found = [
        (written(counted, v)["numDeletedRecordsOpt"], written(counted, v)["numDeletionVectorsOpt"]) for v in (1, 2)
    ]
    assert found == [(3, 1), (6, 2)]


def test_c125_the_numbers_are_those_of_the_state_as_checkpoints_count_it(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.commit(0, [protocol(), metadata(configuration={"delta.checkpointInterval": "2"}), add("a", size=9000)])
    commit(table.location, adds=file_rows(("b", 10, None)))
    assert not (table.log / f"{1:020d}.crc").exists()  # version 0 has none to go on with
    commit(table.location, adds=file_rows(("c", 20, None)), removes=file_rows(("b", 10, None)))
    assert written(table.location, 2)["fileSizeHistogram"]["totalBytes"][:3] == [20, 9000, 0]  # by the checkpoint
    commit(table.location, adds=file_rows(("d", 30, None)))
    validate_checksum(Snapshot.load(table.location))
    assert written(table.location, 3)["numFiles"] == 3


def test_c125_none_where_files_are_added_again(counted: str) -> None:
    commit(counted, adds=file_rows(("a", 10, None)), data_change=False)
    assert not (Path(counted) / "_delta_log" / f"{2:020d}.crc").exists()


def test_c125_files_that_a_commit_depends_on_may_be_added_again(counted: str) -> None:
    again = file_rows(("a", 10, None), ("b", 1024, 3))
    commit(counted, adds=again, data_change=False, reads=ReadSet(paths=frozenset(["a", "b", "c"])))
    counts = ("numFiles", "tableSizeBytes", "fileSizeHistogram", "numDeletedRecordsOpt", "numDeletionVectorsOpt")
    assert [written(counted, 2)[name] for name in counts] == [written(counted, 1)[name] for name in counts]
    validate_checksum(Snapshot.load(counted))
    commit(counted, adds=again, data_change=False, reads=ReadSet(paths=frozenset(["a"])))
    assert not (Path(counted) / "_delta_log" / f"{3:020d}.crc").exists()


def test_c126_one_that_is_there_stays(counted: str) -> None:
    path = Path(counted) / "_delta_log" / f"{2:020d}.crc"
    path.write_text("{}")
    commit(counted, adds=file_rows(("d", 1, None)))
    assert path.read_text() == "{}"


def test_c110_the_time_of_the_commit_exactly_where_commits_carry_it(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    value = metadata(configuration={"delta.enableInCommitTimestamps": "true"})
    features = protocol(3, 7, [], ["inCommitTimestamp"])
    table.commit(0, [{"commitInfo": {"inCommitTimestamp": 5}}, features, value])
    counts = {"numFiles": 0, "tableSizeBytes": 0, "numMetadata": 1, "numProtocol": 1, "inCommitTimestampOpt": 5}
    table.checksum(0, {**counts, "metadata": value["metaData"], "protocol": features["protocol"]})
    commit(table.location, adds=file_rows(("a", 1, None)))
    info = Snapshot.load(table.location).commit_info()
    assert info is not None
    assert written(table.location, 1)["inCommitTimestampOpt"] == info.in_commit_timestamp
