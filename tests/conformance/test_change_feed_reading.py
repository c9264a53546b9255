"""Reading the change data feed (Change Data Files, Add CDC File; C163-C176, C329, C362), on tables made by hand."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.hand_made import HandMade, Json, add, features, field, metadata, remove
from tests.inline_vectors import vector

from pyspark_delta.errors import (
    CorruptLogError,
    DataFileError,
    DeltaError,
    InvalidOperationError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from pyspark_delta.storage import intercepted
from pyspark_delta.storage.counting import CountingStore, Counts
from pyspark_delta.table import Table

FEED = {"delta.enableChangeDataFeed": "true"}
LEGACY = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}
VECTORS = features("deletionVectors", "changeDataFeed", reader=["deletionVectors"])
MAPPED = {"delta.columnMapping.mode": "name", **FEED}


@pytest.fixture
def made(tmp_path: Path) -> HandMade:
    return HandMade(tmp_path / "table")


def begin(made: HandMade, *fields: Json, protocol: Json = LEGACY, **declared: Any) -> None:
    """Version 0: protocol and metadata, with the feed on; columns `id` unless given."""
    made.commit(0, protocol, metadata(*(fields or (field("id"),)), **{"configuration": FEED, **declared}))


def cdc(
    made: HandMade, name: str, kinds: Iterable[str], partition: dict[str, str | None] | None = None, **rows: Any
) -> Json:
    """Write a change data file; the cdc action for it."""
    table = pa.table({**rows, "_change_type": pa.array(list(kinds))})
    made.data(f"_change_data/{name}", table)
    path = f"_change_data/{name}".replace(" ", "%20")
    return {"cdc": {"path": path, "partitionValues": partition or {}, "size": 1, "dataChange": False}}


def changes(made: HandMade, *args: Any, **kwargs: Any) -> list[tuple[Any, ...]]:
    """The changes as (version, kind, values...), sorted."""
    found = Table.open(made.path).changes(*args, **kwargs).to_arrow()
    found = found.select([name for name in found.column_names if name != "_commit_timestamp"])
    return sorted(
        ((row.pop("_commit_version"), row.pop("_change_type"), *row.values()) for row in found.to_pylist()), key=repr
    )


# ------------------------------------------------------------------------------------------ where changes come from
def test_c163_c164_c174_change_files_say_how_each_row_changed(made: HandMade) -> None:
    begin(made)
    kinds = ["insert", "update_preimage", "update_postimage", "delete"]
    made.commit(1, cdc(made, "cdc 0.parquet", kinds, id=[1, 2, 3, 4]))
    assert changes(made, 0) == [(1, kind, number) for number, kind in sorted(enumerate(kinds, 1), key=lambda k: k[1])]


def test_c163_a_change_file_without_kinds_is_refused(made: HandMade) -> None:
    begin(made)
    action = cdc(made, "c.parquet", ["insert"], id=[1])
    pq.write_table(pa.table({"id": [1]}), made.path / "_change_data" / "c.parquet")
    made.commit(1, action)
    with pytest.raises(DataFileError, match="_change_type"):
        changes(made, 0)


def test_c169_change_files_hide_the_other_files_of_their_commit(made: HandMade) -> None:
    begin(made)
    made.commit(1, made.data("a.parquet", {"id": [1, 2]}))
    made.commit(2, remove("a.parquet"), made.data("b.parquet", {"id": [2]}), cdc(made, "c", ["delete"], id=[1]))
    assert changes(made, 1) == [(1, "insert", 1), (1, "insert", 2), (2, "delete", 1)]


def test_c170_without_change_files_added_files_are_inserts_and_removed_files_deletes(made: HandMade) -> None:
    begin(made)
    made.commit(1, made.data("a.parquet", {"id": [1]}), made.data("b.parquet", {"id": [2]}))
    made.commit(2, remove("a.parquet"), made.data("c.parquet", {"id": [3]}))
    assert changes(made, 2) == [(2, "delete", 1), (2, "insert", 3)]
    assert changes(made, 1, ending_version=1) == [(1, "insert", 1), (1, "insert", 2)]


def test_c170_removed_files_leave_out_rows_that_were_deleted_before(made: HandMade) -> None:
    begin(made, protocol=VECTORS)
    file = made.data("a.parquet", {"id": [1, 2, 3]})["add"]
    made.commit(1, {"add": {**file, **vector(1)}})
    made.commit(2, remove("a.parquet", **vector(1)))
    assert changes(made, 1, ending_version=1) == [(1, "insert", 1), (1, "insert", 3)]
    assert changes(made, 2) == [(2, "delete", 1), (2, "delete", 3)]


def test_c166_a_data_file_may_be_a_change_file_too(made: HandMade) -> None:
    begin(made)
    rows = pa.table({"id": [1, 2], "_change_type": ["insert", "update_postimage"]})
    file = made.data("both.parquet", rows)
    made.commit(1, file, {"cdc": {"path": "both.parquet", "partitionValues": {}, "size": 1, "dataChange": False}})
    made.commit(2, remove("both.parquet"))
    assert changes(made, 1, ending_version=1) == [(1, "insert", 1), (1, "update_postimage", 2)]
    assert changes(made, 2) == [(2, "delete", 1), (2, "delete", 2)]  # whatever the file itself says
    assert changes(made, 2, where="_change_type = 'delete'", columns=["_commit_version", "_change_type"]) == [
        (2, "delete"),
        (2, "delete"),
    ]


def test_c173_actions_that_change_no_data_are_no_changes(made: HandMade) -> None:
    begin(made)
    made.commit(1, made.data("a.parquet", {"id": [1]}))
    compacted = made.data("b.parquet", {"id": [1]})["add"]
    made.commit(2, remove("a.parquet", dataChange=False), {"add": {**compacted, "dataChange": False}})
    assert changes(made, 1) == [(1, "insert", 1)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((), (1,), [("delete", 11)]),
        ((1,), (1, 3), [("delete", 13)]),
        ((1, 3), (3,), [("insert", 11)]),
        ((0, 1), (1, 2), [("delete", 12), ("insert", 10)]),
        ((2,), (), [("insert", 12)]),
        ((2,), (2,), []),
    ],
)
def test_c173_a_new_deletion_vector_is_told_apart_row_by_row(
    made: HandMade, before: tuple[int, ...], after: tuple[int, ...], expected: list[tuple[str, int]]
) -> None:
    begin(made, protocol=VECTORS)
    file = made.data("x%20y.parquet", {"id": [10, 11, 12, 13]})["add"]
    (made.path / "x%20y.parquet").rename(made.path / "x y.parquet")
    old, new = (vector(*rows) if rows else {} for rows in (before, after))
    made.commit(1, {"add": {**file, **old}})
    # The remove spells the path in another way; the pair is one file all the same.
    absolute = f"file:{made.path}/x%20y.parquet"
    made.commit(2, remove(absolute, **old), {"add": {**file, **new}})
    assert changes(made, 2) == [(2, *change) for change in expected]


def test_c173_a_file_whose_vectors_change_in_many_commits_is_read_for_each(made: HandMade) -> None:
    begin(made, protocol=VECTORS)
    file = made.data("a.parquet", pa.table({"id": range(1000)}))["add"]
    made.commit(1, {"add": file})
    for version in range(2, 5):
        old = vector(*range(version - 2)) if version > 2 else {}
        made.commit(version, remove("a.parquet", **old), {"add": {**file, **vector(*range(version - 1))}})
    assert changes(made, 2) == [(2, "delete", 0), (3, "delete", 1), (4, "delete", 2)]


def test_a_merge_that_changed_no_row_has_no_changes(made: HandMade) -> None:
    begin(made)
    made.commit(1, made.data("a.parquet", {"id": [1]}))
    metrics = dict.fromkeys(("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"), "0")
    info = {"commitInfo": {"operation": "MERGE", "operationMetrics": metrics}}
    made.commit(2, info, remove("a.parquet"), made.data("b.parquet", {"id": [1]}))
    assert changes(made, 2) == []


# ----------------------------------------------------------------------------------------- what rows are told besides
def test_c171_rows_have_the_version_and_time_of_their_commit(made: HandMade) -> None:
    begin(made)
    made.commit(1, made.data("a.parquet", {"id": [1]}))
    made.commit(2, cdc(made, "c.parquet", ["delete"], id=[1]))
    for version, seconds in ((1, 1_700_000_000), (2, 1_600_000_000)):
        os.utime(made.commit_file(version), (seconds, seconds))
    found = Table.open(made.path).changes(1).to_arrow().sort_by("_commit_version").to_pylist()
    at = datetime.fromtimestamp(1_700_000_000, tz=UTC)
    assert [row["_commit_version"] for row in found] == [1, 2]
    assert [row["_commit_timestamp"] for row in found] == [at, at.replace(microsecond=1000)]  # never backwards


def test_c362_in_commit_timestamps_count_from_where_they_are_enabled(made: HandMade) -> None:
    begin(made, protocol=features("changeDataFeed", "inCommitTimestamp", reader=[]))
    made.commit(1, made.data("a.parquet", {"id": [1]}))
    enabled = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": "1800000000000",
    }
    made.commit(
        2,
        {"commitInfo": {"inCommitTimestamp": 1_800_000_000_000}},
        metadata(field("id"), configuration={**FEED, **enabled}),
        made.data("b.parquet", {"id": [2]}),
    )
    for version in (0, 1, 2):
        os.utime(made.commit_file(version), (1_700_000_000 + version, 1_700_000_000 + version))
    found = Table.open(made.path).changes(0).to_arrow().to_pylist()
    times = {row["id"]: row["_commit_timestamp"].timestamp() for row in found}
    assert times == {1: 1_700_000_001, 2: 1_800_000_000}


def test_c175_c329_row_ids_are_not_part_of_the_feed(made: HandMade) -> None:
    tracked = {**FEED, "delta.enableRowTracking": "true"}
    begin(
        made,
        protocol=features("changeDataFeed", "rowTracking", "domainMetadata", reader=[]),
        configuration={
            **tracked,
            "delta.rowTracking.materializedRowIdColumnName": "_row-id",
            "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version",
        },
    )
    made.commit(1, cdc(made, "c.parquet", ["insert"], id=[7], **{"_row-id": [1], "_row-version": [1]}))
    assert changes(made, 0) == [(1, "insert", 7)]
    with pytest.raises(InvalidOperationError, match="no column '_row_id'"):
        changes(made, 0, columns=["_row_id"])


def test_c176_partition_values_of_change_files_come_from_the_action(made: HandMade) -> None:
    begin(made, field("id"), field("p", "date"), partition=["p"])
    made.commit(1, made.data("a.parquet", {"id": [1]}, {"p": "2024-01-31"}))
    made.commit(2, cdc(made, "c.parquet", ["delete"], {"p": None}, id=[2], p=["not read"]))
    assert changes(made, 0, columns=["_commit_version", "_change_type", "id", "p"]) == [
        (1, "insert", 1, datetime(2024, 1, 31).date()),
        (2, "delete", 2, None),
    ]
    assert changes(made, 0, where="p is null") == [(2, "delete", 2, None)]


def test_c156_partition_values_that_a_remove_does_not_tell_are_found_elsewhere(made: HandMade) -> None:
    begin(made, field("id"), field("p", "string"), partition=["p"])
    made.commit(1, made.data("a.parquet", {"id": [1]}, {"p": "x"}), made.data("b.parquet", {"id": [2]}, {"p": "y"}))
    made.commit(2, remove("a.parquet"))
    made.commit(3, remove("b.parquet", partitionValues={"p": "y"}))
    both = [(2, "delete", 1, "x"), (3, "delete", 2, "y")]
    assert changes(made, 2) == both  # live before
    assert changes(made, 1)[2:] == both  # added in the range
    made.commit(4, remove("unknown.parquet"))
    with pytest.raises(CorruptLogError, match=r"partition values of data file 'unknown\.parquet'"):
        changes(made, 3)


# ------------------------------------------------------------------------------------------------ columns that change
def test_rows_have_the_columns_at_the_end_of_the_range(made: HandMade) -> None:
    begin(made, field("a", "integer"), protocol=features("changeDataFeed", "typeWidening", reader=["typeWidening"]))
    made.commit(1, made.data("1.parquet", pa.table({"a": pa.array([1], pa.int32())})))
    widened = {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
    made.commit(2, metadata(field("a", "long", **widened), field("b", "string"), configuration=FEED))
    made.commit(3, made.data("3.parquet", {"a": [2**40], "b": ["x"]}))
    assert changes(made, 0, ending_version=1) == [(1, "insert", 1)]
    assert changes(made, 0) == [(1, "insert", 1, None), (3, "insert", 2**40, "x")]


@pytest.mark.parametrize("partition", [["p"], []])
def test_columns_may_be_spelled_in_another_case_by_a_new_schema(made: HandMade, partition: list[str]) -> None:
    begin(made, field("ID"), field("P", "string"), partition=["P"])
    file = made.data("a.parquet", {"ID": [1]}, {"P": "x"})
    made.commit(1, file)
    rows = {"id": [2]} if partition else {"id": [2], "p": ["y"]}
    made.commit(
        2,
        remove("a.parquet", partitionValues={"P": "x"}),
        metadata(field("id"), field("p", "string"), partition=partition, configuration=FEED),
        made.data("b.parquet", rows, {"p": "y"} if partition else {}),
    )
    assert changes(made, 0) == [(1, "insert", 1, "x"), (2, "delete", 1, "x"), (2, "insert", 2, "y")]
    assert changes(made, 2, where="p = 'x'") == [(2, "delete", 1, "x")]


def mapped(name: str, physical: str, number: int, data_type: str = "long") -> Json:
    """A field of a table with column mapping."""
    return field(name, data_type, **{"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical})


@pytest.mark.parametrize("mode", ["name", "id"])
def test_c246_c248_mapped_columns_are_found_under_their_new_names(made: HandMade, mode: str) -> None:
    configuration = {**MAPPED, "delta.columnMapping.mode": mode}
    begin(
        made,
        mapped("id", "col-1", 1),
        mapped("gone", "col-2", 2),
        protocol={"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        configuration=configuration,
    )
    ids = pa.schema([pa.field(f"col-{n}", pa.int64(), metadata={"PARQUET:field_id": str(n)}) for n in (1, 2)])
    made.commit(1, made.data("a.parquet", pa.table({"col-1": [1], "col-2": [2]}, schema=ids)))
    kinds = ids.append(pa.field("_change_type", pa.string()))
    made.data("_change_data/c.parquet", pa.table([[3], [4], ["delete"]], schema=kinds))
    made.commit(2, {"cdc": {"path": "_change_data/c.parquet", "partitionValues": {}, "size": 1, "dataChange": False}})
    made.commit(3, metadata(mapped("key", "col-1", 1), mapped("new", "col-3", 3), configuration=configuration))
    found = Table.open(made.path).changes(0).to_arrow()
    assert found.drop_columns(["_commit_timestamp"]).to_pylist() == [
        {"key": 1, "new": None, "_change_type": "insert", "_commit_version": 1},
        {"key": 3, "new": None, "_change_type": "delete", "_commit_version": 2},
    ]


def test_a_partition_column_that_had_a_name_of_the_feed_is_refused(made: HandMade) -> None:
    columns = [mapped("id", "c1", 1), mapped("v", "_Commit_Version", 2)]
    protocol = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    begin(made, *columns, protocol=protocol, configuration=MAPPED, partition=["v"])
    made.commit(1, made.data("a.parquet", {"c1": [1]}, {"_Commit_Version": "77"}))
    with pytest.raises(
        UnsupportedTableError, match="name '_Commit_Version', which is reserved for the change data feed"
    ):
        changes(made, 0)


@pytest.mark.parametrize(
    ("later", "problem"),
    [
        ([field("b", "long")], "column 'a' was dropped or renamed"),
        ([field("a", "string")], "column 'a' was changed from long to string"),
        (
            [field("a", {"type": "struct", "fields": [field("x")]})],
            "column 'a' was changed from long to struct<x:long>",
        ),
    ],
)
def test_changes_of_columns_that_no_schema_can_show_name_the_versions(
    made: HandMade, later: list[Json], problem: str
) -> None:
    begin(made, field("a"))
    made.commit(1, made.data("1.parquet", {"a": [1]}))
    made.commit(2, metadata(*later, configuration=FEED))
    with pytest.raises(UnsupportedTableError, match=rf"{problem} between the columns at version 0 and .* version 2"):
        changes(made, 0)
    assert changes(made, 0, ending_version=1) == [(1, "insert", 1)]
    assert changes(made, 2) == []


def test_a_mapped_column_that_took_the_place_of_another_is_refused(made: HandMade) -> None:
    protocol = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    begin(made, mapped("a", "col-1", 1), protocol=protocol, configuration=MAPPED)
    made.commit(1, made.data("1.parquet", {"col-1": [1]}))
    made.commit(2, metadata(mapped("a", "col-2", 2), configuration=MAPPED))
    with pytest.raises(UnsupportedTableError, match="column 'a' was replaced"):
        changes(made, 0)


def test_files_are_read_as_the_table_was_partitioned_then(made: HandMade) -> None:
    begin(made, field("id"), field("p", "string"), partition=["p"])
    made.commit(1, made.data("a.parquet", {"id": [1]}, {"p": "x"}))
    made.commit(
        2,
        metadata(field("id"), field("p", "string"), partition=["id"], configuration=FEED),
        remove("a.parquet", partitionValues={"p": "x"}),
        made.data("b.parquet", {"p": ["y"]}, {"id": "2"}),
    )
    assert changes(made, 1) == [(1, "insert", 1, "x"), (2, "delete", 1, "x"), (2, "insert", 2, "y")]


# ---------------------------------------------------------------------------------------------------- what cannot be
def test_c167_c168_versions_without_the_feed_are_named(made: HandMade) -> None:
    made.commit(0, LEGACY, metadata(field("id")))
    made.commit(1, made.data("a.parquet", {"id": [1]}))
    made.commit(2, metadata(field("id"), configuration=FEED))
    made.commit(3, made.data("b.parquet", {"id": [2]}))
    made.commit(4, metadata(field("id")))
    made.commit(5, metadata(field("id"), configuration=FEED), made.data("c.parquet", {"id": [3]}))
    with pytest.raises(InvalidOperationError, match=r"not enabled in versions 0 to 1, 4\. Start from version 5") as off:
        changes(made, 0)
    assert off.value.error_class == "DELTA_MISSING_CHANGE_DATA"
    assert changes(made, 2, ending_version=3) == [(3, "insert", 2)]
    assert changes(made, 5) == [(5, "insert", 3)]
    made.commit(6, features(reader=[]))  # at writer version 7, the property alone does not count
    with pytest.raises(InvalidOperationError, match="not enabled in version 6"):
        changes(made, 5)


def test_the_version_before_the_range_may_have_no_schema(made: HandMade) -> None:
    """As Delta Live Tables begin: the columns come with the second commit, and the feed with them."""
    start = metadata(configuration=FEED, schemaString=None)
    made.commit(0, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, start)
    made.commit(1, LEGACY, metadata(field("id"), configuration=FEED))
    made.commit(2, made.data("a.parquet", {"id": [1, 2]}))
    assert Table.open(made.path).changes(1).to_arrow()["id"].to_pylist() == [1, 2]
    with pytest.raises(CorruptLogError, match="schemaString"):
        Table.open(made.path).changes(0)


def test_a_commit_that_was_cleaned_up_is_named_with_the_first_that_is_left(made: HandMade) -> None:
    declared = (LEGACY, metadata(field("id"), configuration=FEED))
    made.commit(0, *declared)
    for version in (1, 2, 3):
        made.commit(version, made.data(f"{version}.parquet", {"id": [version]}))
    made.checkpoint(2, *declared, add("1.parquet"), add("2.parquet"))
    for version in (0, 1):
        made.commit_file(version).unlink()
    with pytest.raises(VersionNotFoundError, match="available versions are 2 to 3") as gone:
        changes(made, 1)
    assert gone.value.earliest == 2
    assert changes(made, 2) == [(2, "insert", 2), (3, "insert", 3)]


def test_a_data_file_that_was_vacuumed_is_named_with_its_version(made: HandMade) -> None:
    begin(made)
    made.commit(1, made.data("a.parquet", {"id": [1]}))
    made.commit(2, remove("a.parquet"))
    (made.path / "a.parquet").unlink()
    with pytest.raises(DataFileError, match=r"changes of versions 1, 2 .*a\.parquet' does not exist") as gone:
        changes(made, 0)
    assert gone.value.facts["versions"] == [1, 2]
    with pytest.raises(DataFileError, match="changes of version 2 "):
        changes(made, 2)


@pytest.fixture
def dated(made: HandMade) -> HandMade:
    """Versions 0 to 3, committed at 1000, 2000, 3000 and 4000 seconds after the epoch."""
    begin(made)
    for version in (1, 2, 3):
        made.commit(version, made.data(f"{version}.parquet", {"id": [version]}))
    for version in range(4):
        os.utime(made.commit_file(version), (1000 * (version + 1), 1000 * (version + 1)))
    return made


@pytest.mark.parametrize(
    ("start", "end", "versions"),
    [
        (None, None, [1, 2, 3]),
        (500_000, 1_500_000, []),
        (2_000_000, 3_000_000, [1, 2]),
        (2_000_001, 3_999_999, [2]),
        (2_000_001, 2_000_002, []),  # between two commits
        (4_000_000, 4_000_000, [3]),
    ],
)
def test_times_name_the_versions_between_them(
    dated: HandMade, start: int | None, end: int | None, versions: list[int]
) -> None:
    given: dict[str, Any] = {"starting_version": 0} if start is None else {"starting_timestamp": start}
    assert changes(dated, **given, ending_timestamp=end) == [(v, "insert", v) for v in versions]


@pytest.mark.parametrize(
    ("asked", "error_class"),
    [
        ({}, "DELTA_NO_START_FOR_CDC_READ"),
        ({"ending_version": 1}, "DELTA_NO_START_FOR_CDC_READ"),
        ({"starting_version": 1, "starting_timestamp": 0}, "DELTA_MULTIPLE_CDC_BOUNDARY"),
        ({"starting_version": 1, "ending_version": 1, "ending_timestamp": 0}, "DELTA_MULTIPLE_CDC_BOUNDARY"),
        ({"starting_version": -1}, "DELTA_ILLEGAL_OPTION"),
        ({"starting_version": 2, "ending_version": 1}, "DELTA_INVALID_CDC_RANGE"),
        ({"starting_timestamp": 3_000_000, "ending_timestamp": 2_000_000}, "DELTA_INVALID_CDC_RANGE"),
        ({"starting_version": 3, "ending_timestamp": 2_000_000}, "DELTA_INVALID_CDC_RANGE"),
        ({"starting_version": 4}, "DELTA_CDC_START_VERSION_AFTER_LATEST"),
        ({"starting_timestamp": 4_000_001}, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
        ({"starting_timestamp": 5_000_000}, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
        ({"starting_version": 1, "ending_timestamp": 5_000_000}, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
        ({"starting_version": 1, "ending_timestamp": 1}, "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"),
    ],
)
def test_a_range_that_there_is_not_is_refused(dated: HandMade, asked: dict[str, Any], error_class: str) -> None:
    with pytest.raises(DeltaError) as refused:
        changes(dated, **asked)
    assert refused.value.error_class == error_class


@pytest.mark.parametrize(
    ("asked", "versions"),
    [
        ({"starting_version": 4}, []),
        ({"starting_timestamp": 5_000_000}, []),
        ({"starting_version": 3, "ending_timestamp": 5_000_000}, [3]),
        ({"starting_version": 2, "ending_version": 99}, [2, 3]),
    ],
)
def test_there_may_be_no_changes_past_the_end(dated: HandMade, asked: dict[str, Any], versions: list[int]) -> None:
    assert changes(dated, **asked, allow_out_of_range=True) == [(v, "insert", v) for v in versions]


# ---------------------------------------------------------------------------------------------------------- planning
def test_files_whose_constants_do_not_meet_the_condition_are_not_opened(made: HandMade) -> None:
    begin(made, field("id"), field("p", "date"), partition=["p"])
    made.commit(1, made.data("a.parquet", {"id": [1]}, {"p": "2024-01-31"}), add("gone", 1, {"p": "2024-02-01"}))
    made.commit(2, add("gone too", 1, {"p": "2024-01-31"}))
    where = "p < '2024-02-01' and _commit_version < 2 and id = 1"
    assert changes(made, 0, where=where, columns=["_commit_version", "_change_type", "id"]) == [(1, "insert", 1)]
    with pytest.raises(DataFileError, match="changes of version 2"):
        changes(made, 0, where="p < '2024-02-01'")


def test_only_the_commits_of_the_range_are_read(made: HandMade) -> None:
    begin(made)
    for version in range(1, 40):
        made.commit(version, add(f"{version}.parquet"))
    counts = Counts()
    read = []
    for end in (32, 35):
        counts.reset()
        with intercepted(lambda inner: CountingStore(inner, counts)):
            Table.open(made.path, version=39).changes(30, ending_version=end)
        read.append([path for kind, path in counts.log if kind == "read"])
    assert len(read[1]) - len(read[0]) == 3
