"""What commands print on terminals of different widths, and their help."""

from __future__ import annotations

import inspect
import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.cells import cell_len
from rich.console import Console
from typer.main import get_command
from typer.testing import CliRunner

from pyspark_delta import Table
from pyspark_delta.cli import inspection, listing, rows
from pyspark_delta.cli.app import app
from pyspark_delta.cli.listing import fit
from pyspark_delta.cli.sizes import human_size, short_count

PAGE = Path(__file__).parents[3] / "docs" / "command-line.md"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 30 rows with long and wide texts, and more columns than a terminal has room for."""
    path = tmp_path_factory.mktemp("t") / "t"
    columns: dict[str, Any] = {f"c{i}": [100_000_000 + i] * 30 for i in range(9)}
    made = Table.write(
        path,
        pa.table({"id": list(range(30)), "name": ["日本" * 40, None] * 15, "d": [date(2024, 1, 31)] * 30, **columns}),
        properties={"delta.enableDeletionVectors": True},
    )
    made.delete("id < 7", commit_info="why it was done " * 9)
    return path


def on_terminal(monkeypatch: pytest.MonkeyPatch, width: int, *arguments: str | Path) -> list[str]:
    """Return the lines that a command prints on a terminal of a width."""
    for module in (listing, rows, inspection):
        monkeypatch.setattr(module, "terminal", lambda: Console(width=width, color_system=None, highlight=False))
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


@pytest.mark.parametrize("width", [80, 120])
def test_rows_fit_the_width(table: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    for arguments in (("cat", table), ("files", table), ("history", table, "--metrics"), ("cat", table, "--vertical")):
        assert max(map(cell_len, on_terminal(monkeypatch, width, *arguments))) <= width
    lines = on_terminal(monkeypatch, width, "cat", table)
    assert lines[2].split()[:3] == ["7", "NULL", "2024-01-31"]
    assert "日…" in lines[3]
    assert any("c8" in line and "--vertical" in line for line in lines[22:])
    assert lines[-1].startswith("20 of 23 rows.")
    assert len(on_terminal(monkeypatch, width, "cat", table, "--limit", "23", "--columns", "id")) == 25


def test_nothing_is_cut_with_full_and_in_a_pipe(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "日本" * 40 in on_terminal(monkeypatch, 80, "cat", table, "--full", "--limit", "2")[3]
    assert any("日本" * 40 in line for line in on_terminal(monkeypatch, 80, "cat", table, "--full", "--vertical"))
    monkeypatch.undo()
    assert len(CliRunner().invoke(app, ["cat", str(table)]).stdout.splitlines()) == 24


def test_a_commit_is_one_line(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = on_terminal(monkeypatch, 120, "history", table)
    assert len(lines) == 4
    assert lines[2].split()[3:5] == ["DELETE", "-7"]
    assert "id < 7, userMetadata=why it was" in lines[2]
    assert lines[3].split()[3:6] == ["WRITE", "+30", "+1"]
    assert "numDeletedRows 7" in on_terminal(monkeypatch, 120, "history", table, "--metrics")[3]


def test_info_counts_rows(table: Path) -> None:
    facts = json.loads(CliRunner().invoke(app, ["info", str(table), "--json"]).stdout)
    assert (facts["numRows"], facts["lastCommit"]["operation"]) == (23, "DELETE")
    shown = CliRunner().invoke(app, ["info", str(table)]).stdout
    assert f"{facts['sizeInBytes']} ({human_size(facts['sizeInBytes'])})" in shown


def test_sizes_and_counts() -> None:
    assert [human_size(n) for n in (0, 1023, 1024, 1536, 2**20 - 1, 3 * 2**30)] == [
        "0 bytes",
        "1023 bytes",
        "1.0 KiB",
        "1.5 KiB",
        "1.0 MiB",
        "3.0 GiB",
    ]
    assert [short_count(n) for n in (0, 9999, 12_345, 999_960, 4_500_000)] == ["0", "9999", "12.3k", "1.0M", "4.5M"]


def test_columns_share_the_width() -> None:
    assert fit([3, 50, 50], [3, 10, 10], 200) == [3, 50, 50]
    assert fit([3, 50, 12], [3, 10, 10], 40) == [3, 21, 12]
    assert fit([30, 30, 30], [30, 30, 30], 70) == [30, 30]
    assert fit([300], [300], 80) == [80]


def _commands(group: Any, prefix: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    found = []
    for name, command in group.commands.items():
        nested = getattr(command, "commands", None)
        found += [((*prefix, name), command)] if nested is None else _commands(command, (*prefix, name))
    return found


def test_help_is_not_cut() -> None:
    for group in ([], ["catalog"], ["catalog", "token"]):
        assert "..." not in CliRunner().invoke(app, [*group, "--help"]).stdout.split("Commands:")[1]


def test_the_page_names_every_command_and_option() -> None:
    page = PAGE.read_text()
    for names, command in _commands(get_command(app)):
        assert f"`{' '.join(names)}" in page, names
        for parameter in command.params:
            for name in parameter.opts:
                assert not name.startswith("--") or f"`{name}" in page, (names, name)
        assert inspect.getdoc(command.callback)
