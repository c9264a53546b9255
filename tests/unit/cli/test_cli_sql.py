"""The command sql: statements from options, files and standard input, and the shell on a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pyspark_delta import Table
from pyspark_delta.cli.app import app
from pyspark_delta.cli.shell import completions, is_complete
from pyspark_delta.interpreter.names import Namespace
from pyspark_delta.interpreter.session import Session


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Table.write(tmp_path / "orders", {"id": [1, 2, 3], "state": ["new", "paid", "paid"]})
    return tmp_path


def sql(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["sql", *map(str, arguments)], input=stdin)


def test_statements_of_options_then_of_files_run_in_order(folder: Path) -> None:
    script = folder / "script.sql"
    script.write_text("-- count; them\nSELECT count(*) AS n FROM orders;")
    ran = sql("--location", folder, "-e", "DELETE FROM orders WHERE id = 1; SELECT max(id) m FROM orders", "-f", script)
    assert ran.output == "num_affected_rows\n1\nm\n3\nn\n2\n"


def test_statements_of_standard_input_print_json_lines(folder: Path) -> None:
    ran = sql("--location", folder, "--json", stdin="UNDO orders;SELECT id FROM orders ORDER BY id;")
    assert ran.exit_code == 1  # a table with one commit has nothing to undo
    ran = sql("--location", folder, "--json", "--limit", 2, stdin="SELECT id FROM orders ORDER BY id;")
    assert [json.loads(line) for line in ran.stdout.splitlines()] == [{"id": 1}, {"id": 2}]


def test_the_first_error_ends_the_run_and_shows_the_place(folder: Path) -> None:
    ran = sql("--location", folder, "-e", "DELETE FROM orders;\nVACUUM orders RETAIN x HOURS; SELECT 1")
    assert ran.exit_code == 1
    assert ran.stdout == "num_affected_rows\n3\n"
    assert ran.stderr == (
        "Error: Syntax error at or near 'x': expected a number of hours after orders RETAIN.\n"
        "VACUUM orders RETAIN x HOURS\n---------------------^\n"
    )


def test_names_are_those_of_a_catalog(folder: Path) -> None:
    url = f"sqlite:///{folder}/catalog.db"
    made = sql("--url", url, "-e", "CREATE SCHEMA sales; USE sales; CREATE TABLE t (a INT); INSERT INTO t VALUES (7)")
    assert (made.exit_code, made.output) == (0, "")
    assert sql("--url", url, "--schema", "sales", "-e", "SELECT a FROM t").output == "a\n7\n"
    assert sql("--location", folder, "--catalog", "main", "-e", "SELECT 1").exit_code == 1


def test_a_file_that_cannot_be_read_is_an_error(folder: Path) -> None:
    assert "cannot be read" in sql("-f", folder / "nope.sql").output


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- end", True),
        ("SELECT ';", False),
        ("SELECT 1 /* ;", False),
        ("SELECT 1; SELECT 2", False),
        ("-- nothing", True),
    ],
)
def test_a_statement_is_complete_at_its_semicolon(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_completion_knows_words_and_tables(folder: Path) -> None:
    session = Session(Namespace(root=str(folder)))
    assert completions("or", session) == ["orders", "order ", "or "]
    assert completions("VAC", session) == ["VACUUM "]


def test_the_shell_runs_statements_of_several_lines_and_goes_on_after_errors(folder: Path) -> None:
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "XDG_STATE_HOME": str(folder / "state")}
    shell = subprocess.Popen(
        [sys.executable, "-m", "pyspark_delta.cli", "sql", "--location", str(folder)],
        stdin=child,
        stdout=child,
        stderr=subprocess.PIPE,
        env=environment,
    )
    os.close(child)
    os.write(parent, b"SELECT count(*) AS n\nFROM orders;\nSELECT nope;\nSELECT 40 + 2 AS m;\nquit\n")
    shown = _read(parent)
    assert shell.wait(timeout=60) == 0
    assert "n\n3\n" in shown
    assert "m\n42\n" in shown
    assert shell.stderr is not None
    assert "nope" in shell.stderr.read().decode()
    shell.stderr.close()
    history = folder / "state" / "pyspark-delta" / "history"
    assert "SELECT 40 + 2 AS m;" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0


def _read(terminal: int) -> str:
    """Return all that a terminal shows until its program ends."""
    shown = b""
    with contextlib.suppress(OSError):  # the program has ended
        while chunk := os.read(terminal, 65536):
            shown += chunk
    os.close(terminal)
    return shown.decode().replace("\r", "")
