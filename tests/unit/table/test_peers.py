"""Every kind of change of `Table` in tables of every feature: deltalake reads the same rows, or names the feature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.table_kinds import KINDS, changed


def in_order(found: pa.Table) -> list[dict[str, Any]]:
    return sorted(found.to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("name", KINDS)
def test_deltalake_reads_every_change_or_names_the_feature(tmp_path: Path, name: str) -> None:
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed; `make test` installs it")

    def read() -> list[dict[str, Any]]:
        peer = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(tmp_path)))
        return in_order(pa.table(peer.execute("select * from t").read_all()))

    for change, table in changed(name, tmp_path):
        if KINDS[name].refused:
            with pytest.raises(deltalake.exceptions.DeltaError, match=KINDS[name].refused):
                read()
        else:
            assert read() == in_order(table.scan().to_arrow()), change
