"""The Python examples of the user guide run, page by page, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyspark_delta import disable, disconnect_catalog

ROOT = Path(__file__).parents[2]
# How many blocks of each page say, in a comment before them, why they do not run.
NOT_RUN = {
    "README.md": 0,
    "docs/reading.md": 0,
    "docs/writing.md": 0,
    "docs/streaming.md": 1,
    "docs/changing.md": 0,
    "docs/changing-rows.md": 0,
    "docs/change-feed.md": 0,
    "docs/storage.md": 3,
    "docs/catalogs.md": 1,
    "docs/concurrency.md": 0,
    "docs/errors.md": 0,
    "docs/without-spark.md": 0,
    "docs/sql.md": 0,
    "docs/sql-expressions.md": 0,
    "docs/logging-and-progress.md": 0,
    "docs/interchange.md": 0,
    "docs/maintenance.md": 0,
    "docs/look-inside.md": 0,
    "docs/check.md": 0,
    "docs/dropping-features.md": 0,
    "docs/clustering.md": 0,
    "docs/optimize.md": 0,
    "docs/clone-and-convert.md": 0,
    "docs/coming-from-delta-spark.md": 2,
    "docs/coming-from-deltalake.md": 0,
}
_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^\n]+?) -->\n)?^```python\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)
_DIRECTORY = re.compile(r"(?<=[\"'`/])(?=/(?:data|tmp)/)")


@dataclass(frozen=True)
class Block:
    """A Python block of a page: its code, the line before it, and why it is not run."""

    code: str
    line: int
    reason: str | None


def _blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text()
    return [Block(m["code"], text.count("\n", 0, m.start("code")), m["reason"]) for m in _BLOCK.finditer(text)]


@pytest.fixture
def guide_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """The session that `getOrCreate` returns to a page: one of its own, without the settings of other pages."""
    session = spark.newSession()
    monkeypatch.setattr(SparkSession, "_instantiatedSession", session)
    yield session
    disable(session)
    disconnect_catalog()


@pytest.mark.parametrize("page", NOT_RUN)
def test_the_examples_of_a_page_run_in_order(guide_spark: SparkSession, tmp_path: Path, page: str) -> None:
    """Paths below /data and /tmp are those of a temporary directory; a failure shows the line of the page."""
    blocks = _blocks(page)
    assert len(blocks) == (ROOT / page).read_text().count("```python")
    assert sum(block.reason is not None for block in blocks) == NOT_RUN[page]
    names: dict[str, Any] = {"__name__": "guide"}
    for block in blocks:
        if block.reason is None:
            code = "\n" * block.line + _DIRECTORY.sub(str(tmp_path), block.code)
            exec(compile(code, str(ROOT / page), "exec"), names)
    assert names.get("spark", guide_spark) is guide_spark


def test_every_page_with_examples_is_listed() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert {str(p.relative_to(ROOT)) for p in pages if "```python" in p.read_text()} == set(NOT_RUN)
