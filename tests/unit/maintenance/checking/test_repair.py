"""Repairs remove their findings, leave the rows, and make nothing that was not allowed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import damaged_tables as made
from tests.damaged_tables import log

from pyspark_delta.errors import DeltaError, InvalidOptionError, UnsupportedFeatureError
from pyspark_delta.maintenance.checking import CheckRequest, check_table
from pyspark_delta.maintenance.checking.catalogue import CHECKS
from pyspark_delta.maintenance.checking.derived_repairs import write_sound_checkpoint
from pyspark_delta.maintenance.checking.file_repairs import drop_vectors
from pyspark_delta.maintenance.checking.repair import AUTOMATIC, NAMED, RepairPlan, plan_repair
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.table import Table

Make = Callable[[Path], None]

AUTOMATICALLY: list[tuple[Make, Make, str]] = [
    (made.checkpointed, made.the_hint_is_ahead, "hint"),
    (made.checkpointed, made.the_hint_has_a_wrong_checksum, "hint"),
    (made.checkpointed, made.the_checkpoint_of_the_hint_is_missing, "hint"),
    (made.compacted, made.a_compaction_lacks_a_file, "compaction"),
    (made.plain, made.a_checksum_counts_other_files, "checksum"),
    (made.plain, made.a_checksum_is_torn, "checksum"),
    (made.mapped, made.the_largest_column_id_is_behind, "max-column-id"),
    (made.identity, made.a_high_water_mark_is_behind, "identity"),
    (made.tracked, made.row_ids_are_above_the_mark, "row-id-mark"),
    (made.clustered, made.a_clustering_column_does_not_exist, "clustering-columns"),
    (made.with_vectors, made.bounds_stay_tight, "statistics"),
    (made.plain, made.statistics_count_other_records, "statistics"),
    (made.plain, made.statistics_are_not_json, "statistics"),
    (made.with_vectors, made.a_file_with_a_vector_has_no_number_of_records, "statistics"),
    (made.plain, made.a_minimum_is_above_the_maximum, "statistics"),
    (made.plain, made.there_are_more_nulls_than_records, "statistics"),
    (made.plain, made.a_maximum_is_below_a_value, "statistics"),
    (made.plain, made.a_maximum_of_texts_is_below_a_value, "statistics"),
    (made.with_vectors, made.a_vector_has_another_cardinality, "vector-cardinality"),
    (made.with_vectors, made.a_vector_in_the_log_has_another_cardinality, "vector-cardinality"),
    (made.clustered, made.a_cube_has_no_columns, "cube-tags"),
    (made.clustered, made.a_cube_has_columns_that_the_table_lacks, "cube-tags"),
]


def rows(path: Path) -> pa.Table:
    clear_cache(str(path))
    table = Table.open(path)
    return table.scan().to_arrow().sort_by([(table.schema.names[0], "ascending")])


def planned(path: Path, *allow: str) -> RepairPlan:
    return plan_repair(str(path), allow=allow)


@pytest.mark.parametrize(
    ("clean", "damage", "name"), AUTOMATICALLY, ids=lambda value: getattr(value, "__name__", value)
)
def test_automatic_repairs_leave_the_rows_and_no_finding(tmp_path: Path, clean: Make, damage: Make, name: str) -> None:
    path = tmp_path / "t"
    clean(path)
    before = rows(path)
    damage(path)
    plan = plan_repair(str(path), request=CheckRequest("data"))
    assert [step.name for step in plan.steps if step.allowed] == [name], str(plan)
    result = plan.execute()
    assert (result.repairs, result.unrepaired) == ((name,), ())
    assert rows(path).equals(before)
    after = check_table(str(path), CheckRequest("data"))
    if name == "statistics":  # the old commit stays in the log
        after = check_table(str(path), CheckRequest("data", since=plan.check.version))
    assert after.findings == ()


@pytest.mark.parametrize(
    "damage",
    [
        made.a_checkpoint_lacks_a_file,
        made.a_checkpoint_has_a_file_more,
        made.a_checkpoint_has_another_size,
        made.a_checkpoint_is_cut_off,
    ],
    ids=lambda damage: damage.__name__,
)
def test_a_checkpoint_is_written_from_the_commits(tmp_path: Path, damage: Make) -> None:
    path = tmp_path / "t"
    made.checkpointed(path)
    expected = rows(path)
    damage(path)
    plan = plan_repair(str(path), request=CheckRequest("log"))
    assert plan.facts()["repairs"] == ["checkpoint"]
    assert plan.facts()["not_allowed"] == ["wrong-checkpoints"]
    plan.execute()
    assert log(path, 12, "checkpoint.parquet").exists()
    assert rows(path).equals(expected)
    assert log(path, 10, "checkpoint.parquet").exists()
    assert planned(path, "wrong-checkpoints").execute().repairs == ("checkpoint", "wrong-checkpoints")
    assert not log(path, 10, "checkpoint.parquet").exists()
    assert check_table(str(path)).findings == ()
    assert rows(path).equals(expected)


def test_a_wrong_checkpoint_of_the_newest_version_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made.checkpointed(path)
    expected = rows(path)
    Table.open(path).checkpoint()
    made.checkpoint(path, 12, lambda found: [row for row in found if row["add"] is None])
    assert planned(path, "wrong-checkpoints").execute().repairs == ("checkpoint",)
    assert log(path, 12, "checkpoint.parquet").exists()
    assert check_table(str(path)).findings == ()
    assert rows(path).equals(expected)


@pytest.mark.parametrize(
    ("clean", "damage"),
    [(made.mapped, made.the_largest_column_id_is_behind), (made.checkpointed, made.a_checkpoint_lacks_a_file)],
)
def test_a_table_with_an_unknown_feature_is_not_written(tmp_path: Path, clean: Make, damage: Make) -> None:
    path = tmp_path / "t"
    clean(path)
    damage(path)
    newest = Table.open(path).version
    features = ["columnMapping", "aFeatureOfTheFuture"]
    protocol = {"minReaderVersion": 2, "minWriterVersion": 7, "writerFeatures": features}
    made.add_action(path, newest, {"protocol": protocol})
    before = sorted(file.name for file in (path / "_delta_log").iterdir())
    clear_cache(str(path))
    with pytest.raises(UnsupportedFeatureError, match="aFeatureOfTheFuture"):
        planned(path).execute()
    assert sorted(file.name for file in (path / "_delta_log").iterdir()) == before


def test_missing_files_are_removed_if_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made.plain(path)
    made.a_file_is_missing(path)
    assert planned(path).execute().repairs == ()
    assert Table.open(path).version == 3
    result = Table.open(path).repair(["missing-files"])
    assert (result.repairs, result.version, result.unrepaired) == (("missing-files",), 4, ())
    assert rows(path)["id"].to_pylist() == [*range(10), *range(20, 30)]
    assert Table.open(path).history(1)[0]["operation"] == "FSCK"
    assert check_table(str(path)).errors == ()


def test_files_that_cannot_be_read_are_removed_if_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made.plain(path)
    made.a_page_is_damaged(path)
    request = CheckRequest("data")
    assert plan_repair(str(path), request=request).execute().repairs == ()
    assert plan_repair(str(path), allow=["corrupt-files"], request=request).execute().repairs == ("corrupt-files",)
    assert rows(path)["id"].to_pylist() == [*range(10), *range(20, 30)]
    assert check_table(str(path), request).errors == ()


@pytest.mark.parametrize("damage", [made.a_checksum_counts_other_files, made.a_checksum_is_torn])
@pytest.mark.parametrize("clean", [made.plain, made.timed, made.with_vectors, made.clustered])
def test_the_checksum_of_the_newest_version_is_written_again(tmp_path: Path, clean: Make, damage: Make) -> None:
    path = tmp_path / "t"
    clean(path)
    file = log(path, Table.open(path).version, "crc")
    expected = json.loads(file.read_text())
    wrong = {**expected, "numFiles": 99}
    file.write_text(json.dumps(wrong)[: -30 if damage is made.a_checksum_is_torn else None])
    clear_cache(str(path))
    assert planned(path).execute().repairs == ("checksum",)
    assert json.loads(file.read_text()) == expected
    assert check_table(str(path)).findings == ()


def test_sizes_are_written_if_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made.plain(path)
    expected = rows(path)
    checksum = json.loads(log(path, 3, "crc").read_text())
    made.the_log_has_another_size(path)
    del checksum["fileSizeHistogram"]
    log(path, 3, "crc").write_text(json.dumps({**checksum, "tableSizeBytes": checksum["tableSizeBytes"] + 1}))
    clear_cache(str(path))
    assert planned(path).execute().repairs == ()
    result = planned(path, "file-sizes").execute()
    assert (result.repairs, result.unrepaired) == (("file-sizes",), ())
    assert rows(path).equals(expected)
    assert json.loads(log(path, 4, "crc").read_text())["tableSizeBytes"] == checksum["tableSizeBytes"]
    assert check_table(str(path), CheckRequest("data")).findings == ()


def test_sizes_of_files_that_differ_otherwise_are_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made.plain(path)
    made.a_file_is_longer(path)  # it has no footer at its end
    with_other_rows = made.data_file(path, 3)
    pq.write_table(pq.read_table(with_other_rows).slice(1), with_other_rows)
    result = planned(path, "file-sizes").execute()
    assert (result.repairs, result.version) == ((), 3)
    assert [finding.id for finding in result.unrepaired] == ["F02", "F02"]


@pytest.mark.parametrize(
    "damage",
    [made.a_vector_file_is_missing, made.a_vector_file_is_damaged, made.a_vector_in_the_log_is_damaged],
    ids=lambda damage: damage.__name__,
)
def test_vectors_are_dropped_if_asked_for(tmp_path: Path, damage: Make) -> None:
    path = tmp_path / "t"
    made.with_vectors(path)
    damage(path)
    plan = plan_repair(str(path), request=CheckRequest("footer"))
    assert "the rows that they deleted come back" in str(plan)
    assert "its deleted rows come back" in plan.check.findings[0].advice
    assert plan.execute().repairs == ()
    result = plan_repair(str(path), allow=["drop-vector"], request=CheckRequest("footer")).execute()
    assert (result.repairs, result.unrepaired) == (("drop-vector",), ())
    assert rows(path)["id"].to_pylist() == list(range(30_000))
    assert check_table(str(path), CheckRequest("data")).errors == ()


@pytest.mark.parametrize("damage", [None, made.a_vector_has_another_cardinality])
def test_a_vector_that_can_be_read_is_not_dropped(tmp_path: Path, damage: Make | None) -> None:
    made.with_vectors(tmp_path)
    if damage is not None:
        damage(tmp_path)
    clear_cache(str(tmp_path))
    snapshot = Table.open(tmp_path).snapshot
    assert drop_vectors(snapshot, snapshot.files(("path",))["path"].to_pylist(), "") == frozenset()
    assert not log(tmp_path, 3).exists()


def test_a_vector_that_names_rows_beyond_its_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made.with_vectors(path)
    made.a_vector_names_a_row_beyond_the_file(path)
    result = planned(path).execute()
    assert (result.repairs, [finding.id for finding in result.unrepaired]) == ((), ["D02"])


def test_files_that_are_live_twice_are_removed_once(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made.with_vectors(path)
    expected = rows(path)
    made.a_file_is_live_twice(path)
    assert rows(path).num_rows == 50_000
    assert planned(path, "duplicate-files").execute().repairs == ("checksum", "duplicate-files")
    assert rows(path).equals(expected)
    assert check_table(str(path), CheckRequest(only=["F03"])).findings == ()


@pytest.mark.parametrize(
    ("clean", "damage"),
    [
        (made.plain, made.a_vector_is_used_without_the_feature),
        (made.clustered, made.a_required_feature_is_missing),
        (made.plain, made.a_type_is_used_without_its_feature),
    ],
    ids=lambda value: value.__name__,
)
def test_features_are_added_if_asked_for(tmp_path: Path, clean: Make, damage: Make) -> None:
    path = tmp_path / "t"
    clean(path)
    damage(path)
    assert planned(path).execute().repairs == ()
    assert planned(path, "features").execute().repairs == ("features",)
    assert check_table(str(path), CheckRequest(only=["P", "D"])).findings == ()


def test_a_plan_says_what_it_does_and_what_remains(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made.plain(path)
    made.a_file_is_missing(path)
    made.a_checksum_counts_other_files(path)
    plan = Table.open(path).repair(plan=True)
    assert "and write that of the newest version: 1 finding" in str(plan)
    assert "(needs to be allowed: 'missing-files')" in str(plan)
    assert [finding.id for finding in plan.unrepaired] == ["F01"]
    assert "checksum" in plan._repr_html_()
    assert repr(plan) == f"RepairPlan('{path}', checksum, missing-files)"
    with pytest.raises(InvalidOptionError, match="'everything' is not a repair"):
        planned(path, "everything")


def test_a_table_that_is_sound_is_left_alone(tmp_path: Path) -> None:
    made.plain(tmp_path)
    result = Table.open(tmp_path).repair(NAMED)
    assert (result.repairs, result.version) == ((), 3)


def test_no_checkpoint_is_written_over_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made.checkpointed(path)
    made.a_checkpoint_lacks_a_file(path)
    log(path, 4).unlink()
    with pytest.raises(DeltaError, match="version 4 is missing"):
        write_sound_checkpoint(str(path), {str(log(path, 10, "checkpoint.parquet"))}, {})


def test_all_repairs_are_named_by_findings() -> None:
    named = {check.repair for check in CHECKS.values() if check.repair}
    assert named <= {*AUTOMATIC, *NAMED}
