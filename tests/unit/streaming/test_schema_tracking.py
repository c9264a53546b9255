"""Schema tracking: barriers, the schema log in delta-spark's form, and consent to changes that can break a query."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.streaming.queries import Query

from pyspark_delta import InvalidOptionError, StreamDataLossError, StreamSchemaError, Table
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.streaming.options import StreamOptions
from pyspark_delta.streaming.planner import StreamPlanner
from pyspark_delta.streaming.schema_log import SchemaEntry

# An entry that delta-spark 4.4.0 wrote for a table with column mapping, after a rename.
DELTA_SPARK_ENTRY = (
    'v1\n{"tableId":"d231a9e4-3c72-4b7d-9c23-9d96b58cb5b2","deltaCommitVersion":5,"dataSchemaJson":"{\\"type\\":'
    '\\"struct\\",\\"fields\\":[{\\"name\\":\\"c\\",\\"type\\":\\"string\\",\\"nullable\\":true,\\"metadata\\":{'
    '\\"delta.columnMapping.id\\":2,\\"delta.columnMapping.physicalName\\":\\"col-2328\\"}}]}",'
    '"partitionSchemaJson":"{\\"type\\":\\"struct\\",\\"fields\\":[]}","sourceMetadataPath":"file:/ck/sources/0",'
    '"tableConfigurations":{"delta.columnMapping.mode":"name"},"protocolJson":"{\\"protocol\\":{\\"minReaderVersion\\":3,'
    '\\"minWriterVersion\\":7,\\"readerFeatures\\":[\\"columnMapping\\"],\\"writerFeatures\\":[\\"columnMapping\\"]}}",'
    '"previousMetadataSeqNum":1}'
)


@pytest.fixture
def location(tmp_path: Path) -> str:
    location = str(tmp_path / "t")
    properties = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
    Table.create(location, "a INT, b STRING", properties=properties).append({"a": [1], "b": ["x"]})
    return location


@pytest.fixture
def query(location: str, tmp_path: Path) -> Query:
    return Query(location, tmp_path / "checkpoint")


def test_entries_of_delta_spark_are_read_and_written_alike() -> None:
    entry = SchemaEntry.parse(DELTA_SPARK_ENTRY, "1")
    assert (entry.version, entry.previous, entry.partition_columns) == (5, 1, ())
    assert f"v1\n{entry.to_json()}" == DELTA_SPARK_ENTRY


def test_a_rename_stops_the_query_and_needs_consent(location: str, query: Query) -> None:
    """The offsets and entries are those of delta-spark 4.4.0 for the same commits."""
    assert query.run() == [{"a": 1, "b": "x"}]
    Table.open(location).alter().rename_column("b", "c")
    Table.open(location).append({"a": [2], "c": ["y"]})

    with pytest.raises(StreamSchemaError, match="DELTA_STREAMING_METADATA_EVOLUTION"):
        query.run()
    assert query.positions == [(2, -100), (2, -20), (2, -19)]
    assert [entry["deltaCommitVersion"] for entry in query.entries] == [1, 2]

    with pytest.raises(StreamSchemaError, match=r"(?s)RENAME COLUMN.*allowSourceColumnRename'?, '2'") as caught:
        query.run()
    assert caught.value.error_class == "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
    assert query.run(allowSourceColumnRename="2") == [{"a": 2, "c": "y"}]
    assert query.positions[3:] == [(4, -100)]


def test_rows_before_a_change_have_the_schema_of_their_version(location: str, query: Query) -> None:
    query.run()
    Table.open(location).append({"a": [2], "b": ["y"]})
    Table.open(location).alter().drop_columns("b")
    Table.open(location).append({"a": [3]})

    with pytest.raises(StreamSchemaError, match="METADATA_EVOLUTION"):
        query.run()
    assert query.rows[1:] == [{"a": 2, "b": "y"}]
    assert query.run(allowSourceColumnDrop="always") == [{"a": 3}]


def test_added_columns_need_no_consent(location: str, query: Query) -> None:
    query.run()
    Table.open(location).alter().add_columns("d INT")
    Table.open(location).append({"a": [2], "b": ["y"], "d": [5]})
    with pytest.raises(StreamSchemaError, match="METADATA_EVOLUTION"):
        query.run()
    assert query.run() == [{"a": 2, "b": "y", "d": 5}]


def test_changed_types_need_consent(location: str, query: Query) -> None:
    query.run()
    Table.open(location).alter().change_type("a", "BIGINT")
    with pytest.raises(StreamSchemaError, match="METADATA_EVOLUTION"):
        query.run()
    with pytest.raises(StreamSchemaError, match="allowSourceColumnTypeChange"):
        query.run(allowSourceColumnRename="always")
    assert query.run(allowSourceColumnTypeChange="always") == []


def test_a_stream_of_old_versions_begins_with_their_schema(location: str, query: Query) -> None:
    Table.open(location).alter().rename_column("b", "c")
    with pytest.raises(StreamSchemaError, match="at version 1"):
        query.run(startingVersion="1")
    with pytest.raises(StreamSchemaError, match="at version 2"):
        query.run(startingVersion="1")
    assert query.run(startingVersion="1", allowSourceColumnRename="always") == []
    assert [entry["deltaCommitVersion"] for entry in query.entries] == [1, 2]


@pytest.mark.parametrize(("options", "rows"), [({}, [1, 2, 3]), ({"startingVersion": "latest"}, [3])])
def test_a_change_before_the_first_batch_is_followed(
    location: str, query: Query, options: dict[str, str], rows: list[int]
) -> None:
    """A run ended after it had written the schema log, and before its first offset was kept."""
    query.planner(**options).latest(None)
    Table.open(location).alter().add_columns("d INT")
    Table.open(location).append({"a": [2], "b": ["y"], "d": [5]})
    with pytest.raises(StreamSchemaError, match="METADATA_EVOLUTION"):
        query.run(**options)
    assert [entry["deltaCommitVersion"] for entry in query.entries] == [1, 3]
    query.run(**options)
    Table.open(location).append({"a": [3], "b": ["z"], "d": [6]})
    query.run(**options)
    assert sorted(row["a"] for row in query.rows) == rows
    assert query.rows[-1] == {"a": 3, "b": "z", "d": 6}


def test_a_rename_before_the_first_batch_needs_no_consent(location: str, query: Query) -> None:
    query.planner().latest(None)
    Table.open(location).alter().rename_column("b", "c")
    with pytest.raises(StreamSchemaError, match="METADATA_EVOLUTION"):
        query.run()
    assert query.run() == [{"a": 1, "c": "x"}]
    assert [entry.get("previousMetadataSeqNum") for entry in query.entries] == [None, -1]
    Table.open(location).alter().rename_column("c", "d")
    with pytest.raises(StreamSchemaError, match="METADATA_EVOLUTION"):
        query.run()
    with pytest.raises(StreamSchemaError, match="allowSourceColumnRename"):
        query.run()


def test_a_query_that_ended_between_the_barriers_goes_on(location: str, query: Query) -> None:
    """Its last offset is the second barrier, and the first one was not completed."""
    query.run()
    Table.open(location).alter().add_columns("d INT")
    Table.open(location).append({"a": [2], "b": ["y"], "d": [5]})
    planner = query.planner()
    for _ in range(2):
        end = planner.latest(planner.parse(query.offsets[-1]))
        assert end is not None
        query.offsets.append(end.to_json())
    assert query.positions[1:] == [(2, -20), (2, -19)]
    with pytest.raises(StreamSchemaError, match="METADATA_EVOLUTION"):
        query.run()
    assert query.run() == [{"a": 2, "b": "y", "d": 5}]


def test_a_planner_with_another_schema_than_the_first_version_returns_nothing(location: str, query: Query) -> None:
    Table.open(location).alter().rename_column("b", "c")
    planner = query.planner(startingVersion="1")
    for _ in range(2):
        with pytest.raises(StreamSchemaError, match="METADATA_EVOLUTION"):
            planner.latest(None)
    assert [entry["deltaCommitVersion"] for entry in query.entries] == [1]


def plan_without_log(query: Query) -> None:
    """Plan a batch of a query that has no schema log yet."""
    planner = StreamPlanner(Snapshot.load(query.location), StreamOptions(starting_version=1))
    end = planner.latest(planner.parse(query.offsets[-1]) if query.offsets else None)
    assert end is not None
    query.offsets.append(end.to_json())


def test_a_query_gets_a_schema_log_later(location: str, query: Query) -> None:
    plan_without_log(query)
    query.complete = 1
    Table.open(location).append({"a": [2], "b": ["y"]})
    Table.open(location).alter().rename_column("b", "c")
    planner = query.planner()
    for _ in range(2):
        with pytest.raises(StreamSchemaError, match="METADATA_EVOLUTION"):
            planner.latest(planner.parse(query.offsets[-1]))
    with pytest.raises(StreamSchemaError, match="METADATA_EVOLUTION"):
        query.run()
    assert query.rows == [{"a": 2, "b": "y"}]
    assert [entry["deltaCommitVersion"] for entry in query.entries] == [2, 3]


def test_a_schema_log_begins_with_the_columns_of_a_planned_batch(location: str, query: Query) -> None:
    Table.open(location).alter().add_columns("d INT")
    Table.open(location).append({"a": [2], "b": ["y"], "d": [5]})
    plan_without_log(query)
    Table.open(location).alter().rename_column("b", "c")
    for _ in range(2):
        with pytest.raises(StreamSchemaError, match="METADATA_EVOLUTION"):
            query.run(startingVersion="1")
    assert query.rows == [{"a": 1, "b": "x", "d": None}, {"a": 2, "b": "y", "d": 5}]
    assert [entry["deltaCommitVersion"] for entry in query.entries] == [3, 4]


def test_a_schema_log_cannot_begin_with_a_version_that_is_gone(location: str, query: Query) -> None:
    plan_without_log(query)
    Table.open(location).append({"a": [2], "b": ["y"]})
    Table.open(location).append({"a": [3], "b": ["z"]})
    Table.open(location).checkpoint()
    for version in range(3):
        (Path(location) / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(StreamDataLossError, match=r"version 1 of .* the earliest is 3\. Use"):
        query.run()


def test_lost_data_and_schema_tracking_exclude_each_other(location: str, query: Query) -> None:
    with pytest.raises(InvalidOptionError, match="exclude each other"):
        query.run(failOnDataLoss="false")


def test_another_query_cannot_use_the_same_log(location: str, query: Query) -> None:
    query.run()
    late = query.planner()
    end = late.latest(None)
    assert end is not None
    Table.open(location).alter().rename_column("b", "c")
    Table.open(location).alter().rename_column("c", "d")
    with pytest.raises(StreamSchemaError, match="METADATA_EVOLUTION"):
        query.run()
    # The other query reads a copy of the log that lacks the new entry, and has come to another schema.
    path = next((query.checkpoint / "_schema").iterdir()) / "1"
    path.write_text(path.read_text().replace('\\"c\\"', '\\"e\\"'))
    barrier = late.latest(end)
    assert barrier is not None
    with pytest.raises(StreamSchemaError, match="DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"):
        late.release(barrier)


def test_a_guessed_source_does_not_replace_the_one_in_the_log(location: str, query: Query) -> None:
    """delta-spark refuses an entry of another source."""
    planner = query.planner()
    planner.track_source("file:/c/sources/1")
    end = planner.latest(None)
    Table.open(location).alter().rename_column("b", "c")

    planner = query.planner()
    planner.track_source("file:/c/sources/0", is_known=False)
    barrier = planner.latest(planner.latest(end))
    assert barrier is not None
    with pytest.raises(StreamSchemaError, match="DELTA_STREAMING_METADATA_EVOLUTION"):
        planner.release(barrier)
    assert [entry["sourceMetadataPath"] for entry in query.entries] == ["file:/c/sources/1"] * 2
