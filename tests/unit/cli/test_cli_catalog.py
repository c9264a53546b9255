"""The commands over a catalog, against a real one."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.managed import IDS, Warehouse
from typer.testing import CliRunner, Result

from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.names import required_name, resolve_or_create
from pyspark_delta.catalog.sql import SqlCatalog
from pyspark_delta.cli.app import app
from pyspark_delta.ddl.create import CreateMode, TableDefinition, create_table
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.storage import store_for


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """A catalog that the environment names, with a table `s.t` of one row."""
    made = Warehouse(tmp_path)
    made.create()
    made.append(7)
    monkeypatch.setenv("PYSPARK_DELTA_CATALOG_URL", made.url)
    monkeypatch.setenv("PYSPARK_DELTA_CATALOG_NAME", made.name)
    return made


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def lines(*arguments: str) -> list[str]:
    """What a command prints, below its header."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()[1:]


def test_schemas_and_tables(warehouse: Warehouse) -> None:
    assert lines("catalog", "create-schema", "other") == []
    assert lines("catalog", "schemas") == ["other", "s"]
    assert lines("catalog", "rename", "s.t", "other.u") == []
    assert lines("catalog", "tables", "other") == [f"{warehouse.name}.other.u"]
    assert invoke("catalog", "drop-schema", "other").exit_code == 1
    assert lines("catalog", "drop", "other.u") == []
    assert lines("catalog", "purge", "--older-than-days", "0") == [f"{warehouse.name}.other.u"]
    assert lines("catalog", "drop-schema", "other") == []
    assert json.loads(invoke("catalog", "schemas", "--json").stdout) == ["s"]


def test_tables_by_name(warehouse: Warehouse) -> None:
    name = warehouse.full("t")
    assert lines("cat", name) == ["7"]
    history = json.loads(invoke("history", name, "--json").stdout)
    assert [entry["version"] for entry in history] == [1, 0]
    published = Path(warehouse.location()) / "_delta_log" / f"{1:020}.json"
    published.unlink()
    assert any("add" in line for line in lines("log", name, "1"))
    assert invoke("catalog", "publish", "s.t").stdout == "Published up to version 1.\n"
    assert published.exists()
    assert "by its path" in invoke("info", warehouse.location()).stderr


def test_registering(warehouse: Warehouse, tmp_path: Path) -> None:
    missing = invoke("catalog", "register", "s.x", str(tmp_path / "nothing"))
    assert (missing.exit_code, "no Delta table" in missing.stderr) == (1, True)
    assert "by its path" in invoke("catalog", "register", "s.x", warehouse.location()).stderr


def test_tokens(warehouse: Warehouse) -> None:
    created = invoke("catalog", "token", "create", "ada", "--scope", "read", "--schema", "main.s", "--days", "1")
    tokens = SqlCatalog.connect(warehouse.url).tokens
    token = tokens.look_up(created.stdout.strip())
    assert token is not None
    assert token.principal == "ada"
    listed = json.loads(invoke("catalog", "token", "list", "--json").stdout)
    assert [(t["principal"], t["scopes"], t["schemas"]) for t in listed] == [("ada", ["read"], ["main.s"])]
    assert invoke("catalog", "token", "revoke", listed[0]["id"]).exit_code == 0
    assert tokens.look_up(created.stdout.strip()) is None
    assert invoke("catalog", "token", "revoke", listed[0]["id"]).exit_code == 1
    assert "valid values" in invoke("catalog", "token", "create", "ada", "--scope", "all").stderr
    assert "main" in invoke("catalog", "token", "create", "ada", "--scope", "read", "--schema", "main").stderr


def test_without_a_catalog(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PYSPARK_DELTA_CATALOG_URL", raising=False)
    result = invoke("catalog", "schemas")
    assert (result.exit_code, "--url" in result.stderr) == (1, True)
    other = invoke("catalog", "--url", f"file://{tmp_path}", "token", "list")
    assert (other.exit_code, "database" in other.stderr) == (1, True)
    assert "ftp" in invoke("catalog", "--url", "ftp://x", "schemas").stderr


def test_nothing_is_pending(warehouse: Warehouse) -> None:
    table = managed_table(warehouse.snapshot().catalog_table)
    assert table is not None
    assert table.publish(store_for(table.location)) == 1
    assert invoke("catalog", "publish", "s.t").stdout == "Published up to version 1.\n"


def test_a_catalog_from_an_older_backup_is_repaired(warehouse: Warehouse, tmp_path: Path) -> None:
    known = invoke("catalog", "repair", "s.t")
    assert "has every published commit; its latest version is 1" in known.stdout
    database, backup = tmp_path / "catalog.db", tmp_path / "backup.db"
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(backup)) as copy:
        source.backup(copy)
    warehouse.append(8)
    warehouse.append(9)
    with closing(sqlite3.connect(backup)) as source, closing(sqlite3.connect(database)) as copy:
        source.backup(copy)
    assert warehouse.ids() == [7]
    assert "lacks versions 2 to 3" in invoke("catalog", "repair", "s.t").stdout
    assert warehouse.ids() == [7]
    assert "now has versions 2 to 3" in invoke("catalog", "repair", "s.t", "--apply").stdout
    assert warehouse.ids() == [7, 8, 9]
    assert warehouse.append(10) == 4
    clear_cache()
    assert warehouse.ids() == [7, 8, 9, 10]
    assert warehouse.snapshot().checksum_differences() == ()
    create_table(str(tmp_path / "plain"), TableDefinition(schema=IDS), CreateMode.CREATE)
    assert invoke("catalog", "register", "s.plain", str(tmp_path / "plain")).exit_code == 0
    assert "does not manage" in invoke("catalog", "repair", "s.plain").stderr


def test_unfinished_tables_are_shown_first_and_then_removed(warehouse: Warehouse) -> None:
    begun = resolve_or_create(required_name(warehouse.full("begun")))
    Path(begun.location).mkdir()
    catalog = warehouse.catalog.catalog
    assert isinstance(catalog, SqlCatalog)
    (left,) = catalog.left_behind(2**62)
    assert invoke("catalog", "clean").stdout == "name\tlocation\tbegun\tremoved\n"  # it is of today
    named = {"name": warehouse.full("begun"), "location": begun.location, "begun": left.created_at}
    now = ("catalog", "clean", "--older-than", "0")
    assert json.loads(invoke(*now, "--json").stdout) == [{**named, "removed": False}]
    assert "Give --apply" in invoke(*now).stdout
    assert Path(begun.location).exists()
    assert json.loads(invoke(*now, "--apply", "--json").stdout) == [{**named, "removed": True}]
    assert json.loads(invoke(*now, "--json").stdout) == []
    assert not Path(begun.location).exists()
    assert catalog.dropped_tables(2**62) == []
