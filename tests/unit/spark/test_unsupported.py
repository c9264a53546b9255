"""Refusals of what pyspark-delta does not do, by the method's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.spark.api.table import DeltaTable

CALLS = {
    "clone": ("/copy", True),
    "cloneAtVersion": (1, "/copy", True),
    "cloneAtTimestamp": ("2026-01-01", "/copy", True),
    "generate": ("symlink_format_manifest",),
    "dropFeatureSupport": ("deletionVectors", True),
    "convertToDelta": (None, "parquet.`/files`"),
}


@pytest.mark.parametrize("name", CALLS)
def test_methods_are_refused_by_name(name: str, tmp_path: Path) -> None:
    table = DeltaTable(None, str(tmp_path), {})  # type: ignore[arg-type]
    with pytest.raises(InvalidOperationError, match=rf"DeltaTable\.{name}\. Nothing was changed\. \w+") as raised:
        getattr(table, name)(*CALLS[name])
    assert raised.value.error_class == "DELTA_OPERATION_NOT_ALLOWED"
    assert list(tmp_path.iterdir()) == []
