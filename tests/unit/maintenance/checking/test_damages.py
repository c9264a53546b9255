"""Each check of the catalogue finds the damage that it is for, and nothing in the sound table."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.damaged_tables import CLEAN, DAMAGES, Damage

from pyspark_delta.maintenance.checking import CheckRequest, CheckResult, check_table
from pyspark_delta.maintenance.checking.catalogue import CHECKS

SHOWN_ELSEWHERE = {
    "A01": "test_catalog.py",
    "K11": "test_history.py",
    "K12": "test_history.py",
    "K13": "test_catalog.py",
    "L09": "test_history.py",
    "T03": "test_catalog.py",
}


def checked(path: Path, level: str = "data") -> CheckResult:
    return check_table(str(path), CheckRequest(level))  # type: ignore[arg-type]


@pytest.mark.parametrize("make", CLEAN, ids=lambda make: make.__name__)
def test_sound_tables_have_no_finding(tmp_path: Path, make: object) -> None:
    make(tmp_path / "t")  # type: ignore[operator]
    assert str(checked(tmp_path / "t")).endswith("nothing was found")


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: f"{damage.id}-{damage.name}")
def test_damages_are_found(tmp_path: Path, damage: Damage) -> None:
    path = tmp_path / "t"
    damage.clean(path)
    damage.apply(path)
    result = checked(path, damage.level)
    assert damage.id in result.ids(), str(result)
    only = check_table(str(path), CheckRequest(damage.level, only=[damage.id]))  # type: ignore[arg-type]
    assert set(only.ids()) == {damage.id}
    ignored = check_table(str(path), CheckRequest(damage.level, ignore=[damage.id]))  # type: ignore[arg-type]
    assert damage.id not in ignored.ids()


def test_every_check_has_a_damage() -> None:
    assert set(CHECKS) == {damage.id for damage in DAMAGES} | set(SHOWN_ELSEWHERE)
