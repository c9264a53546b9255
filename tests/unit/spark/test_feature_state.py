"""What writes and statements check before they write files: features as the protocol says them, and clustering.

Statements ask whether a feature is in use as the protocol says it: by legacy versions and preview names too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.hand_made import HandMade, features, field, metadata

from pyspark_delta.errors import AppendOnlyTableError, InvalidOptionError
from pyspark_delta.features.support import check_removable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.schema.types import INTEGER, LONG, StructField, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.statements.merge.clauses import Clause, RowAction, RowKind, evolve_target
from pyspark_delta.statements.target import Target
from pyspark_delta.write.options import WriteOptions
from pyspark_delta.write.target import existing_target

APPEND_ONLY = {"delta.appendOnly": "true"}
WIDENING = {"delta.enableTypeWidening": "true"}
PREVIEW = features("typeWidening-preview")
LONGS = StructType((StructField("id", LONG),))


def versions(reader: int, writer: int) -> dict[str, Any]:
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}}


def table(path: Path, protocol: dict[str, Any], configuration: dict[str, str]) -> Snapshot:
    """A table of one narrow column."""
    made = HandMade(path / "t")
    made.commit(0, protocol, metadata(field("id", "integer"), configuration=configuration))
    return Snapshot.load(str(made.path))


def written(snapshot: Snapshot, mode: str, **options: Any) -> TableConfiguration:
    """What the table declares after a write of longs."""
    return existing_target(snapshot, snapshot.configuration, LONGS, mode, WriteOptions(**options), {}).configuration


@pytest.mark.parametrize("protocol", [versions(1, 2), versions(1, 6), features("appendOnly", reader=[])])
def test_c375_c376_append_only_is_found_before_anything_is_written(protocol: dict[str, Any], tmp_path: Path) -> None:
    snapshot = table(tmp_path, protocol, APPEND_ONLY)
    with pytest.raises(AppendOnlyTableError, match=r"DELETE .*delta\.appendOnly"):
        check_removable(snapshot.configuration, "DELETE")
    with pytest.raises(AppendOnlyTableError, match=r"overwrite .*delta\.appendOnly"):
        written(snapshot, "overwrite")
    assert written(snapshot, "append") == snapshot.configuration


@pytest.mark.parametrize(
    ("protocol", "properties"), [(features("invariants", reader=[]), APPEND_ONLY), (versions(1, 2), {})]
)
def test_c375_rows_may_go_where_append_only_is_not_active(
    protocol: dict[str, Any], properties: dict[str, str], tmp_path: Path
) -> None:
    snapshot = table(tmp_path, protocol, properties)
    check_removable(snapshot.configuration, "DELETE")
    assert written(snapshot, "overwrite") == snapshot.configuration


@pytest.mark.parametrize(("properties", "after"), [(WIDENING, LONG), ({}, INTEGER)])
def test_columns_widen_where_the_preview_of_type_widening_is_active(
    properties: dict[str, str], after: object, tmp_path: Path
) -> None:
    snapshot = table(tmp_path, PREVIEW, properties)
    appended = written(snapshot, "append", merge_schema=True)
    clauses = [Clause(RowKind.NOT_MATCHED, RowAction.INSERT)]
    merged = evolve_target(Target(snapshot), LONGS, clauses).configuration
    assert [c.schema.fields[0].type for c in (appended, merged)] == [after, after]


@pytest.mark.parametrize("partial", [{"replace_where": "id = 1"}, {"dynamic_partitions": True}])
def test_c351_an_overwrite_that_keeps_files_leaves_clustering_as_it_is(partial: dict[str, Any], tmp_path: Path) -> None:
    snapshot = table(tmp_path, versions(1, 2), {})
    data = snapshot.schema
    options = WriteOptions(overwrite_schema=True, cluster_by=("id",), **partial)
    with pytest.raises(InvalidOptionError, match="clusterBy asks for") as raised:
        existing_target(snapshot, snapshot.configuration, data, "overwrite", options, {})
    assert raised.value.error_class == "DELTA_CLUSTERING_COLUMNS_MISMATCH"
    whole = WriteOptions(overwrite_schema=True, cluster_by=("id",))
    assert existing_target(snapshot, snapshot.configuration, data, "overwrite", whole, {}).domains
