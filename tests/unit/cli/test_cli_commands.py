"""The commands over real tables, through the entry point and through real pipes and terminals."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import pyspark_delta
from pyspark_delta.cli.app import app, run

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": False, "metadata": {"comment": "the key"}},
        {"name": "name", "type": "string", "nullable": True, "metadata": {}},
        {"name": "p", "type": "string", "nullable": True, "metadata": {}},
        {
            "name": "s",
            "type": {
                "type": "struct",
                "fields": [
                    {
                        "name": "l",
                        "type": {"type": "array", "elementType": "integer", "containsNull": True},
                        "nullable": True,
                        "metadata": {},
                    }
                ],
            },
            "nullable": True,
            "metadata": {},
        },
    ],
}


def commit(table: Path, version: int, *actions: dict[str, Any]) -> None:
    """Write one commit by hand."""
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    info = {"commitInfo": {"timestamp": 1704110400000 + version, "operation": f"OPERATION {version}"}}
    lines = [json.dumps(action) for action in (info, *actions)]
    (log / f"{version:020d}.json").write_text("\n".join(lines) + "\n")


def add(table: Path, name: str, partition: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Write one data file and return its action."""
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("name", pa.string()),
            ("s", pa.struct([("l", pa.list_(pa.int32()))])),
        ]
    )
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), table / name)
    ids = [row["id"] for row in rows]
    stats = {"numRecords": len(rows), "minValues": {"id": min(ids)}, "maxValues": {"id": max(ids)}}
    return {
        "add": {
            "path": name,
            "partitionValues": {"p": partition},
            "size": (table / name).stat().st_size,
            "modificationTime": 1704110400000,
            "dataChange": True,
            "stats": json.dumps(stats),
        }
    }


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions: two rows in partition a, then one in partition b."""
    path = tmp_path_factory.mktemp("tables") / "tä ble"
    path.mkdir()
    metadata = {
        "id": "7a4c5a5c-5c0e-4a4f-9d0f-3a1b2c3d4e5f",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(SCHEMA),
        "partitionColumns": ["p"],
        "configuration": {"delta.appendOnly": "false"},
        "createdTime": 1704110400000,
    }
    first = add(path, "f0.parquet", "a", [{"id": 1, "name": "x\ty", "s": {"l": [1, None]}}, {"id": 2}])
    commit(path, 0, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}, first)
    commit(path, 1, add(path, "f1.parquet", "b", [{"id": 30, "name": "日本"}]))
    return path


def invoke(*arguments: str | Path) -> Result:
    """Run one command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def printed(*arguments: str | Path) -> str:
    """What a successful command prints."""
    done = invoke(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_info(table: Path) -> None:
    facts = dict(line.split("\t") for line in printed("info", table).splitlines())
    assert (facts["version"], facts["numFiles"], facts["partitionColumns"]) == ("1", "2", "p")
    assert facts["location"] == str(table)
    as_json = json.loads(printed("info", table, "--json", "--version", "0"))
    assert (as_json["version"], as_json["numFiles"]) == (0, 1)
    assert as_json["properties"] == {"delta.appendOnly": "false"}


def test_schema(table: Path) -> None:
    lines = [line.split("\t") for line in printed("schema", table).splitlines()]
    assert lines[1:] == [
        ["id", "long", "not null", "the key"],
        ["name", "string", "", ""],
        ["p", "string", "", "partition column"],
        ["s", "struct", "", ""],
        ["  l", "array<integer>", "", ""],
    ]
    assert json.loads(printed("schema", table, "--json")) == SCHEMA


def test_protocol(table: Path) -> None:
    assert "minWriterVersion\t2" in printed("protocol", table).splitlines()
    assert json.loads(printed("protocol", table, "--json"))["minReaderVersion"] == 1


def test_history(table: Path) -> None:
    lines = [line.split("\t") for line in printed("history", table).splitlines()]
    assert [line[0] for line in lines[1:]] == ["1", "0"]
    assert lines[1][2] == "OPERATION 1"
    assert [c["version"] for c in json.loads(printed("history", table, "--limit", "1", "--json"))] == [1]


def test_files(table: Path) -> None:
    lines = [line.split("\t") for line in printed("files", table).splitlines()]
    assert lines[0][:2] == ["path", "size"]
    assert {line[0] for line in lines[1:]} == {"f0.parquet", "f1.parquet"}
    kept = [json.loads(line) for line in printed("files", table, "--where", "id > 10", "--json").splitlines()]
    assert [(f["path"], f["partition_values"]) for f in kept] == [("f1.parquet", {"p": "b"})]
    assert len(printed("files", table, "--limit", "1").splitlines()) == 2


def test_log(table: Path) -> None:
    kinds = [line.split("\t")[0] for line in printed("log", table, "0").splitlines()[1:]]
    assert kinds == ["commitInfo", "protocol", "metaData", "add"]
    latest = [json.loads(line) for line in printed("log", table, "--json").splitlines()]
    assert [list(action) for action in latest] == [["commitInfo"], ["add"]]


def test_log_prints_commits_of_a_table_that_cannot_be_opened(tmp_path: Path) -> None:
    commit(tmp_path / "t", 5, {"add": {"path": "x"}})
    assert "path=x" in printed("log", tmp_path / "t", "5")


def test_log_names_the_line_that_is_broken(tmp_path: Path) -> None:
    commit(tmp_path / "t", 0)
    with (tmp_path / "t" / "_delta_log" / f"{0:020d}.json").open("a") as file:
        file.write('{"add": \n')
    done = invoke("log", tmp_path / "t", "0")
    assert done.exit_code == 1
    assert "Line 2 of" in done.stderr


def test_cat(table: Path) -> None:
    lines = printed("cat", table, "--columns", "id,name,p", "--where", "p = 'a'").splitlines()
    assert lines == ["id\tname\tp", "1\tx\\ty\ta", "2\t\ta"]
    rows = [json.loads(line) for line in printed("cat", table, "--json").splitlines()]
    assert sorted(rows, key=lambda row: row["id"])[0] == {"id": 1, "name": "x\ty", "p": "a", "s": {"l": [1, None]}}
    assert len(rows) == 3


def test_cat_travels_in_time_and_stops(table: Path) -> None:
    assert len(printed("cat", table, "--version", "0").splitlines()) == 3
    assert len(printed("cat", table, "--limit", "1").splitlines()) == 2
    assert len(printed("cat", table, "--limit", "0").splitlines()) == 1


def test_changes(table: Path, tmp_path: Path) -> None:
    table = Path(shutil.copytree(table, tmp_path / "table"))
    log = table / "_delta_log" / f"{0:020d}.json"
    feed = log.read_text().replace('"delta.appendOnly": "false"', '"delta.enableChangeDataFeed": "true"')
    log.write_text(feed.replace('"minWriterVersion": 2', '"minWriterVersion": 4'))
    columns = ("--columns", "id,_change_type,_commit_version")
    assert printed("changes", table, "--from", "1", *columns).splitlines()[1:] == ["30\tinsert\t1"]
    rows = printed("changes", table, "--from", "0", "--to", "0", "--where", "id > 1", *columns, "--json")
    assert json.loads(rows) == {"id": 2, "_change_type": "insert", "_commit_version": 0}
    assert len(printed("changes", table, "--from", "1970-01-01", "--limit", "2").splitlines()) == 3


def test_explain(table: Path) -> None:
    assert printed("explain", table, "--where", "p = 'b'").strip()
    found = json.loads(printed("explain", table, "--where", "p = 'b' AND id > 1", "--json"))
    assert (found["version"], found["numFiles"]) == (1, 1)
    assert found["stages"][0]["filesBefore"] == 2


# ------------------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("info", "{tmp}/none"), "no Delta table"),
        (("info", "{table}", "--version", "9"), "available versions are 0 to 1"),
        (("info", "{table}", "--timestamp", "soon"), "'soon' is not a timestamp"),
        (("info", "{table}", "--version", "0", "--timestamp", "2024-01-01"), "not both"),
        (("cat", "{table}", "--where", "nome = 1"), "nome"),
        (("cat", "{table}", "--columns", "nome"), "nome"),
        (("cat", "{table}", "-o", "region"), "key=value"),
        (("log", "{table}", "9"), "version 9"),
    ],
)
def test_an_error_is_one_sentence(table: Path, tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    filled = [argument.format(table=table, tmp=tmp_path) for argument in arguments]
    done = invoke(*filled)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: ")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    as_json = invoke(*filled, "--json")
    assert as_json.exit_code == 1
    error = json.loads(as_json.stderr)
    assert set(error) == {"type", "message"}
    assert error["type"].startswith("DELTA_")


@pytest.mark.parametrize("arguments", [["info"], ["nope"], ["info", "/t", "--version", "-1"], ["info", "/t", "--nope"]])
def test_wrong_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert "pyspark-delta --help" in capsys.readouterr().err


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    assert "doctor" in capsys.readouterr().out
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"pyspark-delta {pyspark_delta.__version__}"


# ------------------------------------------------------------------------------------------ pipes and terminals
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(Path(pyspark_delta.__file__).parents[1]),
    "PYTHONWARNINGS": "error",
    "TERM": "xterm",
    "COLUMNS": "100",
}
COMMAND = [sys.executable, "-m", "pyspark_delta.cli"]


def test_a_pipe_gets_plain_text(table: Path) -> None:
    done = subprocess.run([*COMMAND, "cat", str(table)], capture_output=True, env=ENVIRONMENT, check=True)
    assert b"\x1b" not in done.stdout
    assert sorted(done.stdout.decode().splitlines())[0].startswith("1\tx\\ty\ta\t")
    assert done.stderr == b""


def test_a_reader_that_goes_away_is_no_error(table: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "cat", str(table)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), said) == (0, b"")


def test_text_that_the_encoding_lacks_is_escaped(table: Path) -> None:
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([*COMMAND, "cat", str(table)], capture_output=True, env=environment, check=True)
    assert b"\\u65e5\\u672c" in done.stdout


def on_terminal(*arguments: str, term: str = "xterm") -> str:
    """What a command prints on a pseudo-terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*COMMAND, *arguments], stdout=theirs, stderr=theirs, env={**ENVIRONMENT, "TERM": term})
    os.close(theirs)
    chunks = []
    # On Linux the last read of a terminal that the other side closed fails.
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        try:
            while chunk := terminal.read(4096):
                chunks.append(chunk)
        except OSError:
            pass
    assert process.wait() == 0
    return b"".join(chunks).decode()


def test_a_terminal_gets_a_table(table: Path) -> None:
    shown = on_terminal("schema", str(table))
    assert "\x1b[1m" in shown
    assert "──" in shown
    assert "partition column" in shown


def test_a_dumb_terminal_gets_plain_text(table: Path) -> None:
    shown = on_terminal("schema", str(table), term="dumb")
    assert "\x1b" not in shown
    assert "name\tstring" in shown


def test_without_typer_one_sentence_says_what_to_install() -> None:
    code = "import sys; sys.modules['typer'] = None\nfrom pyspark_delta.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 1
    assert "pip install 'pyspark-delta[cli]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("table_id", ["dat/multi_partitioned", "dat/nested_types"])
def test_golden_tables_are_shown(golden_table: Callable[[str], Path], table_id: str) -> None:
    path = golden_table(table_id)
    expected = json.loads(Path(f"{path}.expected.json").read_text())
    facts = json.loads(printed("info", path, "--json"))
    assert (facts["version"], facts["numFiles"]) == (expected["latest_version"], expected["num_files"])
    assert len(printed("cat", path, "--json").splitlines()) == expected["row_count"]
