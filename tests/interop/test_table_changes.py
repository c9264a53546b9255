"""Every kind of change of `Table` in tables of every feature, read by delta-spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.interop.conftest import DeltaSparkServer
from tests.interop.content import content
from tests.lengths import FULL
from tests.table_kinds import KINDS, changed

from pyspark_delta.table import Table

WHOLE = ("everything",)  # read at each version, the others after most changes


@pytest.mark.parametrize("name", KINDS)
def test_delta_spark_reads_every_change(delta_spark_server: DeltaSparkServer, tmp_path: Path, name: str) -> None:
    versions = [table.version for _, table in changed(name, tmp_path)]
    for version in versions if FULL or name in WHOLE else versions[-2:-1]:
        expected = Table.open(tmp_path, version=version).scan().to_arrow()
        assert content(delta_spark_server.read(tmp_path, version)) == content(expected), version
