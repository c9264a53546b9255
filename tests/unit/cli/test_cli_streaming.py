"""The commands for streams, over a table and over checkpoints in the layout of Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pyspark_delta import Table
from pyspark_delta.cli.app import app

OTHER_SOURCE = '{"logOffset":4}'


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def printed(*arguments: str | Path) -> list[dict[str, Any]]:
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    try:
        return [json.loads(result.stdout)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    for number in range(3):
        Table.write(str(path), {"id": [number]}, mode="append")
    return path


def table_id(table: Path) -> str:
    return Table.open(str(table)).snapshot.metadata.id


def offset(table: Path, version: int, index: int = -1, initial: bool = False) -> str:
    facts = {"reservoirId": table_id(table), "reservoirVersion": version, "index": index, "isStartingVersion": initial}
    return json.dumps({"sourceVersion": 1, **facts}, separators=(",", ":"))


def checkpoint(tmp_path: Path, *batches: str, complete: int | None = None, version: str = "v1") -> Path:
    """A checkpoint whose query reads a file source and then a Delta table."""
    path = tmp_path / "checkpoint"
    (path / "offsets").mkdir(parents=True)
    (path / "commits").mkdir()
    (path / "metadata").write_text('{"id":"cc64eac6-18ae-461d-8f1b-0f6094b6f98b"}')
    for number, text in enumerate(batches):
        sources = [OTHER_SOURCE, text] if version == "v1" else [f"1:{text}", f"0:{OTHER_SOURCE}"]
        lines = [version, '{"batchWatermarkMs":0}', *sources]
        (path / "offsets" / str(number)).write_text("\n".join(lines))
        (path / "offsets" / f".{number}.crc").write_bytes(b"crc")
        if complete is None or number < complete:
            (path / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return path


def test_follow_prints_rows_and_continues_from_its_offset_file(table: Path, tmp_path: Path) -> None:
    offsets = tmp_path / "offset"
    assert [row["id"] for row in printed("follow", table, "--once", "--offset-file", offsets)] == [0, 1, 2]
    Table.open(str(table)).append({"id": [7]})
    assert [row["id"] for row in printed("follow", table, "--once", "--offset-file", offsets)] == [7]
    assert json.loads(offsets.read_text())["reservoirVersion"] == 4


def test_follow_prints_one_header_for_all_batches(table: Path) -> None:
    result = invoke("follow", table, "--once", "--max-files", "1", "--where", "id <> 1")
    assert result.stdout.splitlines() == ["id", "0", "2"]


def test_follow_begins_where_it_is_told(table: Path) -> None:
    assert [row["id"] for row in printed("follow", table, "--once", "--from", "2")] == [2]


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_offsets_of_delta_sources_are_listed(table: Path, tmp_path: Path, version: str) -> None:
    path = checkpoint(tmp_path, offset(table, 2, 0, initial=True), offset(table, 3), complete=1, version=version)
    shown = printed("stream", "offsets", path)
    assert [(row["batch"], row["state"], row["source"], row["version"], row["index"]) for row in shown] == [
        (0, "complete", "1", 2, 0),
        (1, "planned", "1", 3, None),
    ]


def test_explain_says_what_is_outstanding(table: Path, tmp_path: Path) -> None:
    path = checkpoint(tmp_path, offset(table, 2, 0, initial=True))
    [facts] = printed("stream", "explain", path, table)
    assert facts["position"] == "after file 0 of the initial snapshot, version 2"
    assert (facts["versions_behind"], facts["files_outstanding"]) == (1, 2)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_reset_moves_the_query_and_keeps_the_old_file(table: Path, tmp_path: Path, version: str) -> None:
    path = checkpoint(tmp_path, offset(table, 3), version=version)
    before = (path / "offsets" / "0").read_text()
    [result] = printed("stream", "reset", path, table, "--to", "1")
    assert json.loads(result["offset"])["reservoirVersion"] == 1
    assert Path(result["saved"]).read_text() == before
    assert not (path / "offsets" / ".0.crc").exists()
    [row] = printed("stream", "offsets", path)
    assert (row["version"], row["index"], row["table_id"]) == (1, None, table_id(table))
    assert OTHER_SOURCE in (path / "offsets" / "0").read_text()


def test_reset_keeps_the_position_in_a_copy(table: Path, tmp_path: Path) -> None:
    path = checkpoint(tmp_path, offset(table, 2, 1, initial=True))
    copy = tmp_path / "copy"
    Table.write(str(copy), {"id": [1]})
    printed("stream", "reset", path, copy, "--to", "same")
    [row] = printed("stream", "offsets", path)
    assert (row["version"], row["index"], row["initial_snapshot"]) == (2, 1, True)
    assert row["table_id"] == table_id(copy)


def test_reset_refuses_a_batch_that_is_not_complete(table: Path, tmp_path: Path) -> None:
    path = checkpoint(tmp_path, offset(table, 2), offset(table, 3), complete=1)
    result = invoke("stream", "reset", path, table, "--to", "0")
    assert result.exit_code == 1
    assert "Batch 1 of the query is planned and not complete" in result.stderr


@pytest.mark.parametrize("to", ["9", "newest"])
def test_reset_refuses_versions_that_do_not_exist(table: Path, tmp_path: Path, to: str) -> None:
    path = checkpoint(tmp_path, offset(table, 3))
    assert "--to is a version up to 3" in invoke("stream", "reset", path, table, "--to", to).stderr


def test_other_directories_are_no_checkpoints(table: Path) -> None:
    result = invoke("stream", "offsets", table)
    assert result.exit_code == 1
    assert "is not the checkpoint of a Spark query" in result.stderr


def test_explain_names_the_table_of_the_checkpoint(table: Path, tmp_path: Path) -> None:
    path = checkpoint(tmp_path, offset(table, 3))
    other = tmp_path / "other"
    Table.write(str(other), {"id": [1]})
    assert f"the table with id {table_id(table)}" in invoke("stream", "explain", path, other).stderr
