"""Streams that log clean-up has overtaken, and that go on with the rows that were added since."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lengths import length
from tests.unit.streaming.test_new_rows import MAPPED, ROW_TRACKING, VECTORS, Changes, Row

from pyspark_delta import InvalidOptionError, StreamDataLossError, Table
from pyspark_delta.table.streaming import TableStream

SCHEMA = "id BIGINT, value BIGINT, p STRING"


def lose(path: str, before: int) -> None:
    """What log clean-up leaves when a version is the earliest."""
    for file in (Path(path) / "_delta_log").iterdir():
        if file.name[:20].isdecimal() and int(file.name[:20]) < before:
            file.unlink()


def rows(stream: TableStream) -> list[Row]:
    found = [row for batch in stream for row in batch.to_arrow().to_pylist()]
    return [(row["id"], row["value"], row["p"]) for row in found]


@pytest.mark.parametrize("properties", [ROW_TRACKING, ROW_TRACKING | VECTORS | MAPPED], ids=["plain", "vectors"])
@pytest.mark.parametrize("seed", range(length(3, 40)))
def test_the_rows_added_since_are_returned_once(tmp_path: Path, seed: int, properties: dict[str, str]) -> None:
    path = str(tmp_path / "t")
    Table.create(path, SCHEMA, partition_by=["p"], properties=properties)
    changes = Changes(path, seed)
    changes.append()
    changes.run(4)
    stream = Table.open(path).stream(changes="upserts")
    assert set(rows(stream)) == changes.rows()
    read = changes.rows()

    changes.run(8)
    changes.table.checkpoint()
    lose(path, changes.table.version)
    added = sorted(changes.rows() - read)
    options = {"changes": "upserts", "on_data_loss": "snapshotDiff", "max_files": 1}
    again = Table.open(path).stream(stream.offset, **options)  # type: ignore[arg-type]
    assert sorted(rows(again)) == added

    before = changes.rows()
    changes.append()
    assert set(rows(again)) == changes.rows() - before  # from the log
    repeated = Table.open(path).stream(stream.offset, **options)  # type: ignore[arg-type]
    assert sorted(rows(repeated)) == sorted(changes.rows() - read)


def test_a_condition_and_later_commits(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    Table.create(path, SCHEMA, partition_by=["p"], properties=ROW_TRACKING)
    changes = Changes(path, 0)
    changes.table.append(changes.new(range(4)))
    stream = Table.open(path).stream(where="p = 'p1'")
    assert [row[0] for row in rows(stream)] == [1, 3]
    changes.table.append(changes.new(range(4, 8)))
    changes.table.append(changes.new(range(8, 12)))
    changes.table.checkpoint()
    lose(path, 3)
    again = Table.open(path).stream(stream.offset, where="p = 'p1'", on_data_loss="snapshotDiff")
    first = again.next()
    assert first is not None
    assert first.num_files == 2
    assert sorted(first.to_arrow()["id"].to_pylist()) == [5, 7, 9, 11]
    changes.table.append(changes.new(range(12, 16)))
    assert [row[0] for row in rows(again)] == [13, 15]


def test_what_cannot_be_told_is_an_error(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    Table.create(path, SCHEMA)
    changes = Changes(path, 0)
    changes.append()
    stream = Table.open(path).stream()
    rows(stream)
    changes.append()
    changes.append()
    changes.table.checkpoint()
    lose(path, 3)
    with pytest.raises(StreamDataLossError, match="onDataLoss=snapshotDiff returns those that were added since"):
        rows(Table.open(path).stream(stream.offset))
    with pytest.raises(StreamDataLossError, match=r"does not track rows.*delta\.enableRowTracking"):
        rows(Table.open(path).stream(stream.offset, on_data_loss="snapshotDiff"))
    assert rows(Table.open(path).stream(stream.offset, on_data_loss="skip"))
    for kind in (True, "inserts"):
        with pytest.raises(InvalidOptionError, match="does not tell how a row came to be"):
            Table.open(path).stream(on_data_loss="snapshotDiff", changes=kind)
    with pytest.raises(InvalidOptionError, match="found 'difference'"):
        Table.open(path).stream(on_data_loss="difference")


def test_commits_lost_among_others_are_never_passed_over(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    Table.create(path, SCHEMA, properties=ROW_TRACKING)
    changes = Changes(path, 0)
    changes.append()
    stream = Table.open(path).stream()
    rows(stream)
    changes.append()
    changes.append()
    changes.table.checkpoint()
    (Path(path) / "_delta_log" / f"{2:020}.json").unlink()
    with pytest.raises(StreamDataLossError, match="between others"):
        rows(Table.open(path).stream(stream.offset, on_data_loss="snapshotDiff"))
