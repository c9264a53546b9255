"""Repairs remove their findings, leave the rows, and make nothing that was not allowed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import damaged_tables as made
from tests.damaged_tables import log

from pyspark_delta.errors import CommitConflictError, DeltaError, InvalidOptionError, UnsupportedFeatureError
from pyspark_delta.maintenance.checking import CheckRequest, check_table
from pyspark_delta.maintenance.checking.catalogue import CHECKS
from pyspark_delta.maintenance.checking.derived_repairs import write_sound_checkpoint
from pyspark_delta.maintenance.checking.file_repairs import (
    clear_cubes,
    compute_statistics,
    correct_cardinalities,
    drop_vectors,
    trust_sizes,
)
from pyspark_delta.maintenance.checking.repair import RepairPlan, plan_repair
from pyspark_delta.maintenance.checking.repair_catalogue import AUTOMATIC, NAMED
from pyspark_delta.maintenance.checking.table_repairs import add_required_features, advance_row_id_mark, assign_row_ids
from pyspark_delta.snapshot import Snapshot
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
    (made.v2, made.a_sidecar_belongs_to_no_checkpoint, "log-leftovers"),
    (made.plain, made.a_writer_left_a_temporary_file, "log-leftovers"),
    (made.tracked, made.a_file_has_no_row_ids, "row-ids"),
    (made.clustered, made.a_required_feature_is_missing, "required-features"),
    (made.typed, made.a_maximum_differs_between_text_and_columns, "checkpoint"),
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
    ("clean", "damage", "name"),
    [
        (made.mapped, made.the_largest_column_id_is_behind, "max-column-id"),
        (made.checkpointed, made.a_checkpoint_lacks_a_file, "checkpoint"),
        (made.plain, made.statistics_count_other_records, "statistics"),
        (made.plain, made.the_log_has_another_size, "file-sizes"),
        (made.with_vectors, made.a_vector_has_another_cardinality, "vector-cardinality"),
        (made.clustered, made.a_cube_has_no_columns, "cube-tags"),
        (made.tracked, made.a_file_has_no_row_ids, "row-ids"),
        (made.plain, made.a_checksum_counts_other_files, "checksum"),
        (made.plain, made.the_log_has_an_unknown_file, "unknown-files"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_table_with_an_unknown_feature_is_not_changed(tmp_path: Path, clean: Make, damage: Make, name: str) -> None:
    path = tmp_path / "t"
    clean(path)
    damage(path)
    _require_an_unknown_feature(path)
    before = sorted(file.name for file in (path / "_delta_log").iterdir())
    plan = plan_repair(str(path), allow=[name], request=CheckRequest("footer"))
    assert name in plan.facts()["repairs"]  # type: ignore[operator]
    with pytest.raises(UnsupportedFeatureError, match="aFeatureOfTheFuture"):
        plan.execute()
    assert sorted(file.name for file in (path / "_delta_log").iterdir()) == before


def _require_an_unknown_feature(path: Path) -> None:
    protocol = made.the(path, 0, "protocol")
    known = protocol.get("writerFeatures") or ["appendOnly", "invariants", "columnMapping"]
    protocol |= {"minWriterVersion": 7, "writerFeatures": [*known, "aFeatureOfTheFuture"]}
    newest = Table.open(path).version
    made.write(path, newest, *made.actions(path, newest), {"protocol": protocol})
    clear_cache(str(path))


FILE_REPAIRS: list[tuple[Make, Make, Callable[[Snapshot], object]]] = [
    (made.plain, made.statistics_count_other_records, lambda old: compute_statistics(old, _paths(old), "")),
    (made.plain, made.the_log_has_another_size, lambda old: trust_sizes(old, _paths(old), "")),
    (made.with_vectors, made.a_vector_has_another_cardinality, lambda old: correct_cardinalities(old, _paths(old), "")),
    (made.clustered, made.a_cube_has_no_columns, lambda old: clear_cubes(old, "")),
]


def _paths(snapshot: Snapshot) -> list[str]:
    return [str(path) for path in snapshot.files(("path",))["path"].to_pylist()]


@pytest.mark.parametrize("removed", [False, True], ids=["append", "removal"])
@pytest.mark.parametrize(("clean", "damage", "repair"), FILE_REPAIRS, ids=lambda value: str(value.__name__).strip("<>"))
def test_repairs_of_files_and_a_concurrent_commit(
    tmp_path: Path, clean: Make, damage: Make, repair: Callable[[Snapshot], object], removed: bool
) -> None:
    """A repair commits on top of an append, and is refused if its files are removed meanwhile."""
    path = tmp_path / "t"
    clean(path)
    before = rows(path)["id"].to_pylist()
    damage(path)
    clear_cache(str(path))
    old = Table.open(path).snapshot
    table, more = Table.open(path), {"id": [99_999]}
    _ = table.overwrite(more) if removed else table.append(more)
    if removed:
        with pytest.raises(CommitConflictError):
            repair(old)
    else:
        repair(old)
        assert check_table(str(path), CheckRequest("footer", since=old.version, ignore=["F11"])).findings == ()
    assert rows(path)["id"].to_pylist() == [*([] if removed else before), 99_999]
    assert Table.open(path).version == old.version + (1 if removed else 2)


@pytest.mark.parametrize("removed", [False, True], ids=["append", "removal"])
def test_row_ids_are_assigned_beside_a_concurrent_commit(tmp_path: Path, removed: bool) -> None:
    path = tmp_path / "t"
    made.tracked(path)
    made.a_file_has_no_row_ids(path)
    clear_cache(str(path))
    old = Table.open(path).snapshot
    table, more = Table.open(path), {"id": [6]}
    _ = table.overwrite(more) if removed else table.append(more)
    expected = rows(path)
    assign_row_ids(old, "")
    assert rows(path).equals(expected)
    assert check_table(str(path), CheckRequest("data", only=["R"])).findings == ()


def test_a_mark_is_not_advanced_past_a_concurrent_append(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made.tracked(path)
    made.row_ids_are_above_the_mark(path)
    clear_cache(str(path))
    old = Table.open(path).snapshot
    Table.open(path).append({"id": [6]})
    with pytest.raises(CommitConflictError):
        advance_row_id_mark(old, "")


def test_features_are_added_on_top_of_a_concurrent_commit(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made.clustered(path)
    made.a_required_feature_is_missing(path)
    clear_cache(str(path))
    old = Table.open(path).snapshot
    made.write(path, 2, {"commitInfo": {"timestamp": 1, "operation": "x"}})
    assert add_required_features(old, "")
    assert check_table(str(path), CheckRequest(only=["P"])).findings == ()
    assert Table.open(path).version == 3


def test_a_checksum_that_follows_a_wrong_one_is_repaired_next(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made.plain(path)
    made.a_checksum_counts_other_files(path)
    plan = planned(path)
    Table.open(path).append({"id": [99]})
    assert plan.execute().repairs == ("checksum",)
    assert planned(path).execute().repairs == ("checksum",)
    assert check_table(str(path)).findings == ()


LEFT_IN_LOG = [
    (made.checkpointed, made.a_part_of_a_checkpoint_is_missing, "checkpoint-parts"),
    (made.plain, made.the_log_has_an_unknown_file, "unknown-files"),
]


@pytest.mark.parametrize(("clean", "damage", "name"), LEFT_IN_LOG, ids=lambda value: getattr(value, "__name__", value))
def test_files_of_the_log_are_deleted_if_asked_for(tmp_path: Path, clean: Make, damage: Make, name: str) -> None:
    path = tmp_path / "t"
    clean(path)
    expected = rows(path)
    damage(path)
    (finding,) = check_table(str(path)).findings
    assert planned(path).execute().repairs == ()
    assert planned(path, name).execute().repairs == ()  # its writer may not have finished
    os.utime(str(finding.file), (1, 1))
    assert planned(path, name).execute().repairs == (name,)
    assert check_table(str(path)).findings == ()
    assert rows(path).equals(expected)


def test_a_part_stays_if_the_others_have_come(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made.checkpointed(path)
    made.a_part_of_a_checkpoint_is_missing(path)
    part = log(path, 9, "checkpoint.0000000001.0000000002.parquet")
    os.utime(part, (1, 1))
    plan = planned(path, "checkpoint-parts")
    shutil.copy(part, log(path, 9, "checkpoint.0000000002.0000000002.parquet"))
    assert plan.execute().repairs == ()
    assert part.exists()


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


@pytest.mark.parametrize("agrees", [True, False])
def test_missing_files_of_a_clone_are_copied_from_its_source(tmp_path: Path, agrees: bool) -> None:
    """A file that differs from what the log says is no copy, so the missing one is removed."""
    source, path = tmp_path / "source", tmp_path / "t"
    made.plain(source)
    Table.open(source).clone(str(path), shallow=False)
    expected = rows(path)
    name = made.data_file(source, 2).name
    if not agrees:
        made.edit(path, 0, "add", lambda add: add.update(stats=add["stats"].replace('"id":19', '"id":18')))
        for file in (path / "_delta_log").glob("*.checkpoint*"):
            file.unlink()
    (path / name).unlink()
    plan = planned(path, "missing-files")
    assert f"'{source / name}', in the source of this clone" in plan.check.findings[0].message
    result = plan.execute()
    assert ("missing-files" in result.repairs, result.version) == (True, 0 if agrees else 1)
    assert rows(path)["id"].to_pylist() == [i for i in expected["id"].to_pylist() if agrees or not 10 <= i < 20]


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


def test_features_without_effect_are_added_if_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made.plain(path)
    made.a_vector_is_used_without_the_feature(path)
    assert planned(path).execute().repairs == ()
    assert planned(path, "features").execute().repairs == ("features",)
    assert check_table(str(path), CheckRequest(only=["P", "D"])).findings == ()


def test_the_feature_of_a_type_is_added_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made.plain(path)
    made.a_type_is_used_without_its_feature(path)
    made.properties(path, delta__enableDeletionVectors="true")
    plan = planned(path)
    assert (plan.facts()["repairs"], plan.facts()["not_allowed"]) == (["required-features"], ["features"])
    assert plan.execute().repairs == ("required-features",)
    features = Table.open(path).snapshot.configuration.protocol.listed_features
    assert features >= {"timestampNtz"}
    assert "deletionVectors" not in features
    assert {finding.repair for finding in check_table(str(path)).findings} == {"features"}


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
