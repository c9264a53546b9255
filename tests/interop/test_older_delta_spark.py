"""Releases of delta-spark for older releases of Spark: tables with many features change hands in both directions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.interop.conftest import ROOT, DeltaSpark, DeltaSparkServer
from tests.lengths import FULL

from pyspark_delta import Table

RELEASES = ("3.5", "4.0", "4.1") if FULL else ("3.5",)
PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpointPolicy": "v2",
}


@pytest.fixture(scope="module", params=RELEASES)
def older(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeltaSparkServer]:
    """delta-spark for an older release of Spark, running; `make test` sets it up."""
    release = request.param
    python = ROOT / f".venv-{release}" / "bin" / "python"
    jars = tuple(sorted((ROOT / ".cache" / f"jars-{release}").glob("*.jar")))
    if not python.exists() or not jars:
        pytest.skip("delta-spark is not set up; `make test` does it")
    server = DeltaSparkServer(DeltaSpark(python, jars), tmp_path_factory.mktemp("older"))
    yield server
    server.close()


def ours(path: Path, version: int | None = None) -> list[tuple[Any, ...]]:
    rows = Table.open(str(path), version=version).scan(columns=["id", "named", "p", "part"]).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def theirs(server: DeltaSparkServer, path: Path) -> list[tuple[Any, ...]]:
    statement = f"select id, named, p, cast(part as string) as part from delta.`{path}` order by id"
    rows = server.ask("rows", statement=statement)
    return [(row["id"], row["named"], row["p"], date.fromisoformat(row["part"])) for row in rows]


def test_a_table_of_theirs(older: DeltaSparkServer, tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    table, properties = f"delta.`{path}`", ", ".join(f"'{name}' = '{value}'" for name, value in PROPERTIES.items())
    older.sql(
        f"create table {table} (id bigint, name string, p bigint, part date) using delta "
        f"partitioned by (part) tblproperties ({properties})",
        f"insert into {table} select id, concat('n', id), id % 3, date'2024-01-01' + cast(id % 2 as int) "
        "from range(20)",
        f"alter table {table} add constraint positive check (id >= 0)",
        f"alter table {table} rename column name to named",
        f"delete from {table} where id in (3, 4)",
        f"update {table} set named = 'updated' where id = 5",
        f"merge into {table} t using (select 6 as id union all select 100) s on t.id = s.id "
        "when matched then update set named = 'merged' "
        "when not matched then insert (id, named, part) values (s.id, 'inserted', date'2024-02-01')",
    )
    expected = theirs(older, path)
    assert len(expected) == 19
    assert ours(path) == expected
    kinds = Table.open(str(path)).changes(4).to_arrow()["_change_type"].to_pylist()
    assert sorted(set(kinds)) == ["delete", "insert", "update_postimage", "update_preimage"]

    table_of_ours = Table.open(str(path))
    table_of_ours.append({"id": [200], "named": ["ours"], "part": [date(2024, 1, 1)]})
    table_of_ours.delete("id < 2")
    table_of_ours.update({"named": "'again'"}, where="id = 7")
    table_of_ours.checkpoint()
    assert theirs(older, path) == ours(path)
    older.sql(f"update {table} set named = 'last' where id = 200")
    assert [row[1] for row in ours(path) if row[0] == 200] == ["last"]


def test_a_table_of_ours(older: DeltaSparkServer, tmp_path: Path) -> None:
    path = tmp_path / "ours"
    columns = "id BIGINT, named STRING, p BIGINT GENERATED ALWAYS AS (id % 3), part DATE"
    table = Table.create(str(path), columns, partition_by=["part"], properties=PROPERTIES)
    days = [date(2024, 1, 1 + number % 2) for number in range(20)]
    table.append({"id": list(range(20)), "named": [f"n{number}" for number in range(20)], "part": days})
    table.delete("id % 5 = 0")
    table.update({"named": "'updated'"}, where="id = 6")
    table.optimize()
    table.checkpoint()
    assert theirs(older, path) == ours(path)
    older.sql(f"insert into delta.`{path}` (id, named, part) values (50, 'theirs', date'2024-01-01')")
    older.sql(f"delete from delta.`{path}` where id = 7", f"optimize delta.`{path}`")
    assert theirs(older, path) == ours(path)
    assert Table.open(str(path)).check().findings == ()
