"""Which stage of the suite runs a test."""

from __future__ import annotations

import pytest
from tests.plugins.stages import stage_of


@pytest.mark.parametrize(
    ("fixtures", "path", "stage"),
    [
        (["tmp_path"], "tests/unit/maintenance/test_clustering_quality.py", None),
        (["clustered"], "tests/unit/maintenance/test_layouts.py", None),
        (["delta_spark", "spark"], "tests/spark/test_clustering.py", "spark"),
        (["delta_connect", "spark"], "tests/spark/test_clustering.py", "connect"),
        (["delta_cluster", "plain_cluster"], "tests/spark/test_clustering.py", "cluster"),
        (["request"], "tests/cluster/test_cluster.py", "cluster"),
        ([], "tests/bare/test_without_pyspark.py", "bare"),
    ],
)
def test_fixtures_and_folders_say_which(fixtures: list[str], path: str, stage: str | None) -> None:
    assert stage_of(fixtures, path.split("/")) == stage
