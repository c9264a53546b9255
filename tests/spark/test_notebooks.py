"""The notebooks of `examples/`: their cells run in order, they plot, and they are committed without outputs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyspark_delta import disable

EXAMPLES = Path(__file__).parents[2] / "examples"
PLOTS = {"flights": 2, "lakehouse": 2}


def cells(name: str) -> list[dict[str, Any]]:
    """The cells of a notebook."""
    document = json.loads((EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    found: list[dict[str, Any]] = document["cells"]
    return found


@pytest.fixture
def notebook_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """The session that `getOrCreate` returns to a notebook."""
    session = spark.newSession()
    monkeypatch.setattr(SparkSession, "_instantiatedSession", session)
    yield session
    disable(session)


@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning:matplotlib", "ignore::DeprecationWarning:dateutil")
def test_the_cells_of_a_notebook_run_in_order(
    notebook_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shown: list[int] = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(len(plt.gcf().axes[0].get_children())))
    names: dict[str, Any] = {"__name__": "notebook"}
    for number, cell in enumerate(cells(name), start=1):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{name}.ipynb, cell {number}", "exec"), names)
    plt.close("all")
    assert len(shown) == PLOTS[name]
    assert all(shown)
    assert names["spark"] is notebook_spark


def test_notebooks_are_committed_without_outputs() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.ipynb")} == set(PLOTS)
    for name in PLOTS:
        code = [cell for cell in cells(name) if cell["cell_type"] == "code"]
        assert [cell for cell in code if cell["outputs"] or cell["execution_count"] is not None] == []
        assert len({cell["id"] for cell in cells(name)}) == len(cells(name))
