"""Tables that deltalake writes in every way that it has are not accused of anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from pyspark_delta.maintenance.checking import CheckRequest, check_table

ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "p": ["a", "b"] * 50, "x": [0.5] * 100})


def appended(path: str) -> None:
    for _ in range(3):
        write_deltalake(path, ROWS, mode="append", partition_by=["p"])


def overwritten(path: str) -> None:
    write_deltalake(path, ROWS)
    write_deltalake(path, ROWS.slice(0, 10), mode="overwrite")
    write_deltalake(path, ROWS.slice(0, 1), mode="overwrite", predicate="p = 'a'")


def changed(path: str) -> None:
    write_deltalake(path, ROWS)
    table = DeltaTable(path)
    table.delete("id < 10")
    table.update({"x": "1.5"}, predicate="id = 20")
    table.merge(
        ROWS.slice(0, 30), "t.id = s.id", source_alias="s", target_alias="t"
    ).when_matched_update_all().when_not_matched_insert_all().execute()


def arranged(path: str) -> None:
    appended(path)
    table = DeltaTable(path)
    table.optimize.compact()
    table.optimize.z_order(["id"])
    table.create_checkpoint()
    write_deltalake(path, ROWS, mode="append")


def fed(path: str) -> None:
    write_deltalake(path, ROWS, configuration={"delta.enableChangeDataFeed": "true"})
    DeltaTable(path).update({"x": "1.5"}, predicate="id = 20")


def restored(path: str) -> None:
    changed(path)
    DeltaTable(path).restore(0)


def evolved(path: str) -> None:
    write_deltalake(path, ROWS)
    wider = ROWS.append_column("y", pa.array([None] * 100, pa.timestamp("us", "UTC")))
    write_deltalake(path, wider, mode="append", schema_mode="merge")
    table = DeltaTable(path)
    table.alter.add_constraint({"positive": "id >= 0"})
    table.alter.set_table_properties({"delta.appendOnly": "true"})


@pytest.mark.parametrize(
    "make", [appended, overwritten, changed, arranged, fed, restored, evolved], ids=lambda make: str(make.__name__)
)
def test_tables_of_deltalake_are_sound(tmp_path: Path, make: Callable[[str], None]) -> None:
    make(str(tmp_path / "t"))
    result = check_table(str(tmp_path / "t"), CheckRequest("data"))
    assert [str(finding) for finding in (*result.errors, *result.warnings)] == []
    assert result.skipped == ()
