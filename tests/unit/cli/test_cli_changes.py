"""The commands that create and change tables, through the entry point; results are read by deltalake and Polars."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.unit.cli.test_cli_hostile import COMMAND, CONTROLS, ENVIRONMENT, HOSTILE
from typer.testing import CliRunner, Result

from pyspark_delta.cli.app import app, run
from pyspark_delta.cli.clauses import ClauseText, parse_clause

SCHEMA = "id BIGINT NOT NULL, at TIMESTAMP, name STRING, amount DECIMAL(10, 2), l ARRAY<STRUCT<d: DATE>>"


def invoke(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def done(*arguments: str | Path, stdin: str | bytes | None = None) -> dict[str, Any]:
    """What a successful command prints as JSON."""
    result = invoke(*arguments, "--json", stdin=stdin)
    assert result.exit_code == 0, result.output
    printed: dict[str, Any] = json.loads(result.stdout)
    return printed


def rows(table: Path) -> list[dict[str, Any]]:
    """The rows, by Polars."""
    return pl.scan_delta(str(table)).sort("id").collect().to_dicts()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    done("create", path, "--schema", SCHEMA)
    return path


@pytest.fixture
def make(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file."""

    def make(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return make


def test_create(tmp_path: Path) -> None:
    path = tmp_path / "t"
    arguments = ("create", path, "--schema", "id BIGINT, day DATE", "--partition-by", "day", "--property", "a.b=c")
    planned = done(*arguments, "--plan")
    assert (planned["properties_set"], planned["columns"]) == ({"a.b": "c"}, {"id": "long", "day": "date"})
    assert not path.exists()
    assert invoke(*arguments, "--comment", "mine").stdout == f"Version 0: created {path}\n"
    created = DeltaTable(str(path)).metadata()
    assert (created.partition_columns, created.configuration, created.description) == (["day"], {"a.b": "c"}, "mine")
    again = invoke(*arguments)
    assert (again.exit_code, "--if-exists replace" in again.stderr) == (1, True)
    assert done(*arguments, "--if-exists", "ignore")["version"] is None
    pq.write_table(pa.table({"x": pa.array([1], pa.int32())}), tmp_path / "f.parquet")
    assert done("create", path, "--like", tmp_path / "f.parquet", "--if-exists", "replace")["version"] == 1
    assert DeltaTable(str(path)).schema().to_json().count('"integer"') == 1


def test_csv_takes_the_types_of_the_table(table: Path, make: Callable[[str, str], Path]) -> None:
    text = 'ID,at,name,amount\n1,2024-01-31,"",1.5\n2,2024-01-31 10:00:00+01:00,,2\n3,,"a\n,b",\n'
    first = make("a.csv", text)
    packed = first.with_suffix(".csv.gz")
    packed.write_bytes(gzip.compress(text.replace("1,2024", "4,2024").encode()))
    assert done("append", table, first, packed, "--user-metadata", "why")["metrics"]["numOutputRows"] == 6
    found = rows(table)
    assert [row["id"] for row in found] == [1, 2, 2, 3, 3, 4]
    assert [str(row["at"])[:19] for row in found[:2]] == ["2024-01-31 00:00:00", "2024-01-31 09:00:00"]
    assert [row["name"] for row in found[:4]] == ["", None, None, "a\n,b"]
    assert str(found[0]["amount"]) == "1.50"
    assert DeltaTable(str(table)).history(1)[0]["userMetadata"] == "why"


def test_printed_json_can_be_appended(table: Path, tmp_path: Path) -> None:
    lines = '{"id": 1, "l": [{"d": "2024-01-31"}, null]}\n{"id": 2, "at": "2024-01-31 01:02:03", "amount": "7.25"}\n'
    done("append", table, "-", "--format", "json", stdin=lines)
    copy = tmp_path / "copy"
    done("create", copy, "--schema", SCHEMA)
    done("append", copy, "-", "--format", "json", stdin=invoke("cat", table, "--json").stdout)
    assert rows(copy) == rows(table)
    assert rows(copy)[0]["l"][0]["d"].isoformat() == "2024-01-31"


def test_a_json_file_without_a_column_leaves_it_to_the_table(tmp_path: Path) -> None:
    path = tmp_path / "t"
    done("create", path, "--schema", "id BIGINT, twice BIGINT GENERATED ALWAYS AS (id * 2)")
    done("append", path, "-", "--format", "json", stdin='{"id": 1}\n')
    assert rows(path) == [{"id": 1, "twice": 2}]


@pytest.mark.parametrize("form", ["parquet", "stream", "file"])
@pytest.mark.parametrize("pipe", [False, True])
def test_binary_formats(table: Path, tmp_path: Path, form: str, pipe: bool) -> None:
    data, path = pa.table({"id": [1, 2], "name": ["x", None]}), tmp_path / "f"
    if form == "parquet":
        pq.write_table(data, path)
    else:
        with (pa.ipc.new_stream if form == "stream" else pa.ipc.new_file)(path, data.schema) as writer:
            writer.write_table(data)
    file_format = "parquet" if form == "parquet" else "arrow"
    source = ("-", path.read_bytes()) if pipe else (path, None)
    done("append", table, source[0], "--format", file_format, stdin=source[1])
    assert [(row["id"], row["name"]) for row in rows(table)] == [(1, "x"), (2, None)]


def test_append_overwrites_evolves_and_runs_once(table: Path, make: Callable[[str, str], Path]) -> None:
    one, two = make("a.csv", "id,name\n1,a\n2,b\n"), make("b.csv", "id,more\n2,9\n")
    assert done("append", table, one, "--txn", "job:1")["version"] == 1
    assert done("append", table, one, "--txn", "job:1")["version"] is None
    planned = done("append", table, two, "--mode", "overwrite", "--where", "id > 1", "--merge-schema", "--plan")
    assert (planned["version"], planned["rows_affected"]) == (1, None)
    assert DeltaTable(str(table)).version() == 1
    done("append", table, two, "--mode", "overwrite", "--where", "id > 1", "--merge-schema")
    assert [(row["id"], row["name"], row["more"]) for row in rows(table)] == [(1, "a", None), (2, None, 9)]


def test_delete_and_update(table: Path, make: Callable[[str, str], Path]) -> None:
    done("append", table, make("a.csv", "id,name\n1,a\n2,b\n3,c\n"))
    assert done("delete", table, "--where", "id = 1", "--plan")["rows_affected"] == 1
    assert invoke("delete", table, "--where", "id = 1").stdout.startswith("Version 2: ")
    assert invoke("delete", table, "--where", "id = 1").stdout == "Nothing was committed: no row changes.\n"
    done("update", table, "--set", "name = 'x, y'", "--set", "amount = 2", "--where", "id = 2")
    assert [(row["id"], row["name"], row["amount"]) for row in rows(table)] == [(2, "x, y", 2), (3, "c", None)]
    done("delete", table, "--all")
    assert rows(table) == []


def test_merge(table: Path, make: Callable[[str, str], Path]) -> None:
    done("append", table, make("a.csv", "id,name\n1,a\n2,b\n3,c\n"))
    source = make("s.csv", "id,name\n2,gone\n3,C\n4,d\n")
    clauses = ("--when-matched", "delete where s.name = 'gone'", "--when-matched", "update set name = s.name")
    result = done("merge", table, source, "--on", "t.id = s.id", *clauses, "--when-not-matched", "insert id = s.id")
    assert result["metrics"]["numTargetRowsDeleted"] == 1
    assert [(row["id"], row["name"]) for row in rows(table)] == [(1, "a"), (3, "C"), (4, None)]


def test_set_and_unset(table: Path) -> None:
    planned = done("set", table, "delta.enableDeletionVectors=true", "--plan")
    assert "deletionVectors" in planned["features_added"]
    assert DeltaTable(str(table)).version() == 0
    assert done("set", table, "delta.appendOnly=true", "mine=a=b")["version"] == 1
    assert DeltaTable(str(table)).metadata().configuration == {"delta.appendOnly": "true", "mine": "a=b"}
    assert done("unset", table, "mine", "--plan")["properties_removed"] == ["mine"]
    done("unset", table, "mine")
    assert DeltaTable(str(table)).metadata().configuration == {"delta.appendOnly": "true"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id\nx\n", "invalid value 'x'"),
        ("id,no\n1,2\n", "--merge-schema"),
        ("id,amount\n1,1.234\n", "data loss"),
        ("id,l\n1,[]\n", "Use Parquet"),
        ("id\n1\n,\n", "Expected 1 columns"),
        ("id,name\n,a\n", "NOT NULL"),
        ("", "first line"),
        ("id,name\n1,\xff\n", "UTF8"),
    ],
)
def test_a_bad_file_writes_nothing(table: Path, tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "bad.csv").write_bytes(text.encode("latin-1"))
    result = invoke("append", table, tmp_path / "bad.csv")
    assert (result.exit_code, result.stdout) == (1, "")
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert DeltaTable(str(table)).version() == 0
    assert list(table.glob("*.parquet")) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["delete", "{t}"],
        ["delete", "{t}", "--all", "--where", "id = 1"],
        ["update", "{t}", "--set", "name", "--all"],
        ["append", "{t}", "f.csv", "--where", "id = 1"],
        ["append", "{t}", "f.csv", "--txn", "x"],
        ["merge", "{t}", "f.csv", "--on", "t.id = s.id"],
        ["merge", "{t}", "f.csv", "--on", "t.id = s.id", "--when-matched", "insert *"],
        ["create", "{t}"],
    ],
)
def test_wrong_usage(table: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert run([argument.format(t=table) for argument in arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert DeltaTable(str(table)).version() == 0


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("update *", ClauseText("update")),
        ("DELETE WHERE s.a = ' where '", ClauseText("delete", "s.a = ' where '")),
        (
            "update set a = f(1, ','), `b,c` = (select 1 where true) where s.a = 2",
            ClauseText("update", "s.a = 2", {"a": "f(1, ',')", "`b,c`": "(select 1 where true)"}),
        ),
    ],
)
def test_clauses(text: str, clause: ClauseText) -> None:
    assert parse_clause(text, "--when-matched", ("update", "delete")) == clause


def test_changes_print_no_control_characters(table: Path) -> None:
    for arguments in (
        ["append", str(table), HOSTILE, "--format", "csv"],
        ["append", str(table), "-", "--format", "csv"],
        ["delete", str(table), "--where", HOSTILE],
        ["merge", str(table), "-", "--format", "csv", "--on", HOSTILE, "--when-matched", "update " + HOSTILE],
        ["set", str(table), "delta." + HOSTILE],
    ):
        ended = subprocess.run(
            [*COMMAND, *arguments],
            input=f"id,{HOSTILE}\n1,2\n".encode(),
            capture_output=True,
            env=ENVIRONMENT,
            check=False,
        )
        said = ended.stderr.decode()
        assert ended.returncode in (1, 2), arguments
        assert [c for c in CONTROLS if c in said] == []
        assert said.startswith("Error: ")
    assert DeltaTable(str(table)).version() == 0
