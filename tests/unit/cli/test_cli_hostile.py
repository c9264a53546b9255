"""What the command line prints of tables that somebody else made, and to outputs that take nothing."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.lengths import FULL
from typer.testing import CliRunner

from pyspark_delta.cli.app import app
from pyspark_delta.cli.output import cell, visible
from pyspark_delta.testing.table_builder import TableBuilder, add, protocol

CLIPBOARD = "\x1b]52;c;cm0gLXJmIC8=\x07"
C1 = "\x9d52;c;cm0gLXJmIC8=\x9c"
BACKWARDS = "\u202egnp.exe\u2066"
HOSTILE = f"{CLIPBOARD}{C1}{BACKWARDS}\x7f\r\u2028é日𝄞"
CONTROLS = [chr(code) for code in (*range(9), *range(11, 32), *range(0x7F, 0xA0))] + ["\u202e", "\u2066", "\u2028"]
COMMAND = [sys.executable, "-m", "pyspark_delta.cli"]
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    "PYTHONIOENCODING": "utf-8",
    "TERM": "dumb",
}
_COMMIT = {"operation": HOSTILE, "engineInfo": HOSTILE, "operationParameters": {HOSTILE: HOSTILE}}


def _metadata(fields: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    schema = json.dumps({"type": "struct", "fields": fields})
    stored = {"id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema}
    return {"metaData": {**stored, "partitionColumns": [], "configuration": {}, **more}}


def _field(name: str, data_type: str, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": data_type, "nullable": True, "metadata": metadata}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with control characters wherever there are texts."""
    path = tmp_path_factory.mktemp("hostile")
    name = HOSTILE.replace("\r", "")
    pq.write_table(pa.table({name: [HOSTILE, "plain"]}), path / "f.parquet")
    metadata = _metadata(
        [_field(name, "string", comment=HOSTILE)],
        name=HOSTILE,
        description=HOSTILE,
        configuration={HOSTILE: HOSTILE},
    )
    TableBuilder(path).commit(0, [{"commitInfo": {"timestamp": 1, **_COMMIT}}, protocol(), metadata, add("f.parquet")])
    return path


def _done(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[bytes]:
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": ENVIRONMENT, "check": False, **options}
    return subprocess.run([*COMMAND, *map(str, arguments)], **given)


@pytest.mark.parametrize("command", ["info", "schema", "history", "files", "log", "cat", "explain"])
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_no_command_prints_control_characters(table: Path, command: str, form: tuple[str, ...]) -> None:
    where = ("--where", f"`{HOSTILE}`".replace("\r", "") + f" = '{HOSTILE}'") if command == "explain" else ()
    done = CliRunner().invoke(app, [command, str(table), *form, *where])
    assert done.exit_code == 0, done.output
    assert [c for c in CONTROLS if c in done.output.replace("\r\n", "\n")] == []
    assert "\\x1b]52" in done.output or "\\u001b]52" in done.output or command == "files"


def test_an_error_prints_no_control_characters(table: Path) -> None:
    for arguments in (
        ["cat", str(table), "--columns", HOSTILE],
        ["info", str(table / HOSTILE)],
        ["info", "-" + HOSTILE],
    ):
        done = _done(*arguments)
        said = done.stderr.decode()
        assert done.returncode in (1, 2)
        assert [c for c in CONTROLS if c in said] == []
        assert "Error: " in said


def test_a_terminal_is_sent_no_sequence_of_the_data(table: Path) -> None:
    ours, theirs = pty.openpty()
    done = _done("cat", table, stdout=theirs, env={**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "200"})
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert done.returncode == 0
    assert "\x1b[1m" in shown  # rich's own
    assert "\x1b]" not in shown
    assert "\x9d" not in shown


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8", "cp1252", "utf-16"] if FULL else ["ascii", "utf-16"])
def test_json_is_json_in_every_encoding(table: Path, encoding: str) -> None:
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = _done("cat", table, "--json", env=environment)
    rows = [list(json.loads(line).values()) for line in done.stdout.decode(encoding).splitlines()]
    assert rows == [[HOSTILE], ["plain"]]
    failed = _done("cat", table, "--json", "--columns", HOSTILE, env=environment)
    assert HOSTILE in json.loads(failed.stderr.decode(encoding))["message"]


def test_a_full_or_closed_output_ends_without_a_traceback(table: Path) -> None:
    with open("/dev/full", "wb") as full:
        for arguments in (["cat", table], ["cat", table, "--json"], ["info", table], ["--help"]):
            done = _done(*arguments, stdout=full)
            assert (done.returncode, done.stderr.count(b"\n")) == (1, 1), done.stderr
            assert b"Error: The output cannot be written: No space left on device." in done.stderr
        assert _done("info", "/nowhere", stderr=full).returncode == 1
    closed = " ".join([*COMMAND, "cat", str(table)])
    done = subprocess.run(["sh", "-c", f"{closed} >&-"], env=ENVIRONMENT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    done = subprocess.run(
        ["sh", "-c", f"{closed} --columns no 2>&-"], env=ENVIRONMENT, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, b"")


def test_a_pipe_that_is_closed_early_ends_without_a_word(table: Path) -> None:
    command = " ".join([*COMMAND, "history", str(table), "--json"])
    done = subprocess.run(["sh", "-c", f"{command} | head -1"], env=ENVIRONMENT, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"[\n", b"")


@pytest.mark.parametrize("time", [-(2**62), -62_200_000_000_000, -1, 253_500_000_000_000, 2**62])
def test_commits_of_odd_times_are_shown(tmp_path: Path, time: int) -> None:
    timed = {"delta.enableInCommitTimestamps": "true"}
    metadata = _metadata([_field("a", "long")], createdTime=time, configuration=timed)
    info = {"commitInfo": {"inCommitTimestamp": time, "timestamp": time, "operation": "WRITE"}}
    features = protocol(1, 7, writer_features=["inCommitTimestamp"])
    TableBuilder(tmp_path).commit(0, [info, features, metadata])
    for command in ("history", "info", "log"):
        done = CliRunner().invoke(app, [command, str(tmp_path), "--json"])
        assert done.exit_code == 0, done.output
        assert json.loads(done.output.splitlines()[0] if command == "log" else done.output)


def test_dates_that_python_lacks_are_shown_as_text(tmp_path: Path) -> None:
    odd = pa.array([-800_000, 0, 3_000_000], pa.date32())
    times = pa.array([-(2**60), 0, 2**60], pa.timestamp("us"))
    nested = pa.StructArray.from_arrays([pa.array([[-800_000], [], None], pa.list_(pa.date32()))], names=["l"])
    pq.write_table(pa.table({"d": odd, "t": times, "n": nested}), tmp_path / "f.parquet")
    list_of_dates = {"type": "array", "elementType": "date", "containsNull": True}
    inner: Any = {"type": "struct", "fields": [{**_field("l", ""), "type": list_of_dates}]}
    fields = [_field("d", "date"), _field("t", "timestamp_ntz"), {**_field("n", ""), "type": inner}]
    features = protocol(3, 7, reader_features=["timestampNtz"], writer_features=["timestampNtz"])
    TableBuilder(tmp_path).commit(0, [features, _metadata(fields), add("f.parquet")])
    done = CliRunner().invoke(app, ["cat", str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.output.splitlines()]
    assert [row["d"] for row in rows] == ["-0221-09-04", "1970-01-01", "10183-09-21"]
    assert rows[1]["t"].startswith("1970-01-01")
    assert rows[0]["n"] == {"l": ["-0221-09-04"]}


@pytest.mark.parametrize("days", ["1e300", "nan", "-1", "inf"])
def test_a_number_of_days_that_is_none_is_wrong_usage(days: str) -> None:
    done = _done("catalog", "--url", "sqlite:///nowhere.db", "purge", "--older-than", days)
    assert done.returncode == 2
    assert b"is not a number of days" in done.stderr


def test_deep_answers_are_json_or_one_sentence(tmp_path: Path) -> None:
    for depth in (90, 126):
        inner: Any = "long"
        for _ in range(depth):
            inner = {"type": "struct", "fields": [{**_field("a", ""), "type": inner}]}
        path = tmp_path / str(depth)
        TableBuilder(path).commit(0, [protocol(), _metadata([{**_field("x", ""), "type": inner}])])
        done = _done("schema", path, "--json")
        assert b"Traceback" not in done.stderr
        assert json.loads(done.stdout) if done.returncode == 0 else done.stderr.startswith(b'{"type":')


def test_a_text_is_made_visible_and_stays_what_it_is_else() -> None:
    assert visible("a\tb\nc é日𝄞") == "a\tb\nc é日𝄞"
    assert cell(HOSTILE) == (
        "\\x1b]52;c;cm0gLXJmIC8=\\x07\\x9d52;c;cm0gLXJmIC8=\\x9c\\u202egnp.exe\\u2066\\x7f\\r\\u2028é日𝄞"
    )
