"""What "Coming from delta-spark" says runs in both packages, run with delta-spark; for ours see test_guide.py."""

from __future__ import annotations

import re
from pathlib import Path

from tests.interop.conftest import DeltaSparkServer

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-delta-spark.md"
_BLOCK = re.compile(r"^<!-- also runs with delta-spark -->\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_what_stays_the_same_runs_with_delta_spark(delta_spark_server: DeltaSparkServer, tmp_path: Path) -> None:
    blocks = _BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert blocks
    for block in blocks:
        assert "/data/" in block
        delta_spark_server.ask("run", code=block.replace("/data/", f"{tmp_path}/"))
    assert (tmp_path / "from-delta-spark" / "_delta_log").is_dir()
