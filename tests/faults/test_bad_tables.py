"""Damaged tables: every damage is told by a DeltaError that names file and reason, or does no harm."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.faults.damage import DAMAGES, ROWS, Damage, matches, sound

from pyspark_delta.cli.app import run
from pyspark_delta.errors import DeltaError, DeltaWarning
from pyspark_delta.table import Table

each = pytest.mark.parametrize("damage", [pytest.param(d, id=d.name) for d in DAMAGES])


def rows(location: Path) -> list[tuple[Any, ...]]:
    """The rows of a table, in order of their ids."""
    table = Table.open(location)
    table.detail()
    table.history()
    return sorted((tuple(row.values()) for row in table.scan().to_arrow().to_pylist()), key=lambda row: row[0])


def told(damage: Damage) -> AbstractContextManager[Any]:
    """Expects the warning of a damage."""
    return nullcontext() if damage.warns is None else pytest.warns(DeltaWarning, match=damage.warns)


def test_sound_table_is_read(tmp_path: Path) -> None:
    assert rows(sound(tmp_path / "damaged").path) == ROWS


@each
def test_table_tells_the_damage(damage: Damage, tmp_path: Path) -> None:
    table = sound(tmp_path / "damaged")
    damage.apply(table)
    if damage.rows is not None:
        with told(damage):
            assert rows(table.path) == list(damage.rows)
        return
    with pytest.raises(DeltaError) as caught:
        rows(table.path)
    message = caught.value.message
    assert [pattern for pattern in damage.tells if not matches(pattern, message)] == [], message
    assert len(message) < 2000
    assert message.rstrip().endswith("."), message
    assert "\0" not in message


@each
def test_command_line_tells_the_damage(damage: Damage, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = sound(tmp_path / "damaged")
    damage.apply(table)
    with told(damage):
        code = run(["cat", str(table.path), "--json"])
    shown = capsys.readouterr()
    if damage.rows is not None:
        assert code == 0
        assert len(shown.out.splitlines()) == len(damage.rows)
        return
    assert code == 1
    assert shown.err.count("\n") == 1, shown.err
    assert "Traceback" not in shown.err
