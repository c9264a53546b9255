"""The golden tables with their expectations, and the exceptions that have a written reason."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from tests.golden.columnar_digest import columnar_digest
from tests.lengths import FULL

GOLDEN = Path(os.environ.get("PYSPARK_DELTA_GOLDEN") or Path(__file__).parents[3] / "shared" / "golden")

MANY_ROWS = 10_000  # from here on the digest is tried without a Python object per row, which gives the same

# Tables whose data use something outside the published specification; each must be refused by its name.
REFUSED = {
    "kernel-rs-hist/geo-tables-delta__geography_basic": "geospatial",
    "kernel-rs-hist/geo-tables-delta__geometry_multifile": "geospatial",
    "kernel-rs-hist/geo-tables-delta__geometry_stats_only": "geospatial",
    "kernel-rs-hist/geo-tables-runtime__delta__column_mapping_name": "geospatial",
    "kernel-rs-hist/geo-tables-runtime__delta__nested_struct_geometry": "geospatial",
    "kernel-rs-hist/geo-tables-runtime__delta__partitioned_by_int": "geospatial",
    "kernel-rs-hist/geo-tables-runtime__delta__schema_evolved_add_geom": "geospatial",
    "kernel-rs-hist/geo-tables-runtime__delta__stats_as_struct_only": "geospatial",
    "kernel-rs-hist/geo-tables-runtime__delta__with_nulls": "geospatial",
    "kernel-rs/table-with-geo": "geospatial",
}


@dataclass(frozen=True)
class GoldenTable:
    """One table: its folder and what its expected.json says."""

    id: str
    path: Path
    expected: dict[str, Any]

    @property
    def kind(self) -> str:
        return str(self.expected["kind"])


@cache
def golden_tables() -> tuple[GoldenTable, ...]:
    """All tables of the folder, none where it is absent."""
    if not GOLDEN.is_dir():
        return ()
    manifest = json.loads((GOLDEN / "manifest.json").read_text())
    return tuple(
        GoldenTable(
            entry["id"], GOLDEN / entry["path"], json.loads((GOLDEN / f"{entry['path']}.expected.json").read_text())
        )
        for entry in manifest["tables"]
    )


def parametrize(*kinds: str, only: Callable[[GoldenTable], bool] = lambda _: True) -> pytest.MarkDecorator:
    """Run a test once for each readable table of these kinds; skipped with a reason where the folder is absent."""
    chosen = [t for t in golden_tables() if t.kind in kinds and t.id not in REFUSED and only(t)]
    if not golden_tables():
        absent = pytest.mark.skip(reason=f"golden tables not found at {GOLDEN}; set PYSPARK_DELTA_GOLDEN")
        return pytest.mark.parametrize("table", [pytest.param(None, marks=absent, id="absent")])
    return pytest.mark.parametrize("table", [pytest.param(t, id=t.id) for t in chosen])


def that_add_something() -> Callable[[GoldenTable], bool]:
    """Whether a table has a feature or a type of columns that none before it has; true for all at the full length."""
    seen: set[str] = set()

    def adds(table: GoldenTable) -> bool:
        found = {*table.expected["features"], *(json.dumps(column["type"]) for column in table.expected["columns"])}
        new = found - seen
        seen.update(found)
        return FULL or bool(new)

    return adds


@cache
def digest_module() -> ModuleType:
    """The program that made the digests."""
    spec = importlib.util.spec_from_file_location("golden_digest", GOLDEN / "digest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_content(rows: pa.Table, expected: dict[str, Any]) -> None:
    """The rows have the expected columns, count and digest; on a difference the first rows of both are shown."""
    digest = digest_module()
    assert rows.num_rows == expected["row_count"]
    if rows.num_rows >= MANY_ROWS and columnar_digest(rows) == expected["digest"]:
        return
    if digest.digest(rows) == expected["digest"]:
        return
    found = digest.rows_json(rows)
    wanted = expected.get("rows")
    if wanted is None:
        pytest.fail(f"the content digest differs; first rows read: {found[:3]}, columns {rows.schema}")
    differing = [(f, w) for f, w in zip(found, wanted, strict=False) if f != w]
    pytest.fail(f"{len(differing)} rows differ, for example (read, expected): {differing[:2]}; columns {rows.schema}")


def canonical_rows(rows: pa.Table) -> list[str]:
    """The rows in the digest's normal form, sorted: equal lists are equal content."""
    return list(digest_module().canonical_rows(rows))


def unreadable(expected: dict[str, Any]) -> bool:
    """Whether a version's data files are known to be gone."""
    return bool(expected.get("unreadable")) or "digest" not in expected
