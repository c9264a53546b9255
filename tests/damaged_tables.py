"""Sound tables, and what may be wrong with them: each damage shows one finding of the checker.

A damage is registered under the id of its finding. `level` is the least level that shows it, `clean` the table that it
damages, which has no finding.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.inline_vectors import vector

from pyspark_delta.table import Table

Edit = Callable[[dict[str, Any]], Any]
VECTORS = {"delta.enableDeletionVectors": "true"}


@dataclass(frozen=True)
class Damage:
    """What is done to a sound table, and the finding that shows it."""

    id: str
    name: str
    clean: Callable[[Path], None]
    apply: Callable[[Path], None]
    level: str


DAMAGES: list[Damage] = []


def shows(id_: str, clean: Callable[[Path], None], level: str = "log") -> Callable[..., Callable[[Path], None]]:
    """Register a damage of a sound table."""

    def register(apply: Callable[[Path], None]) -> Callable[[Path], None]:
        DAMAGES.append(Damage(id_, apply.__name__, clean, apply, level))
        return apply

    return register


# ------------------------------------------------------------------------------------------------------ sound tables
def plain(path: Path) -> None:
    """Four versions: three with rows."""
    table = Table.create(path, "id BIGINT, s STRING, t TIMESTAMP")
    for start in (0, 10, 20):
        table.append(
            {"id": list(range(start, start + 10)), "s": ["a"] * 10, "t": [datetime(2024, 1, 1, tzinfo=UTC)] * 10}
        )


def partitioned(path: Path) -> None:
    table = Table.create(path, "id INT, day DATE, p STRING NOT NULL", partition_by=["day", "p"])
    table.append({"id": [1, 2], "day": [date(2024, 1, 1), date(2024, 1, 2)], "p": ["x", "y"]})


def with_vectors(path: Path) -> None:
    table = Table.create(path, "id BIGINT", properties=VECTORS)
    table.append({"id": list(range(30_000))})
    table.delete("id % 3 = 1")


def checkpointed(path: Path) -> None:
    """Versions 0 to 12 with a checkpoint of version 10, transactions, and a tombstone."""
    table = Table.create(path, "id BIGINT, p STRING", partition_by=["p"])
    for number in range(9):
        table.append({"id": [number], "p": ["x"]}, txn=("app", number))
    table.delete("id = 3")
    table.refresh().checkpoint()
    table.append({"id": [100], "p": ["y"]})
    table.append({"id": [101], "p": ["y"]})


def typed(path: Path) -> None:
    """A checkpoint that has statistics as text and as columns."""
    both = {"delta.checkpoint.writeStatsAsStruct": "true"}
    table = Table.create(path, "id BIGINT, x DOUBLE, t TIMESTAMP", properties=both)
    for number in range(3):
        table.append({"id": [number], "x": [0.1], "t": [datetime(2024, 1, 1, 1, 1, 1, 123456, tzinfo=UTC)]})
    table.refresh().checkpoint()


def v2(path: Path) -> None:
    table = Table.create(path, "id BIGINT", properties={"delta.checkpointPolicy": "v2"})
    for number in range(3):
        table.append({"id": [number]})
    table.refresh().checkpoint()


def compacted(path: Path) -> None:
    plain(path)
    Table.open(path).compact_log(1, 3)


def mapped(path: Path) -> None:
    table = Table.create(path, "id BIGINT, s STRING", properties={"delta.columnMapping.mode": "name"})
    table.append({"id": [1], "s": ["a"]})


def tracked(path: Path) -> None:
    table = Table.create(path, "id BIGINT", properties={"delta.enableRowTracking": "true"})
    table.append({"id": [1, 2, 3]})
    table.append({"id": [4, 5]})


def timed(path: Path) -> None:
    table = Table.create(path, "id BIGINT")
    table.append({"id": [1]})
    table.alter().set_properties({"delta.enableInCommitTimestamps": "true"})
    table.append({"id": [2]})


def identity(path: Path) -> None:
    table = Table.create(path, "n BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 1 INCREMENT BY 1), id INT")
    table.append({"id": [1, 2, 3]})


def clustered(path: Path) -> None:
    table = Table.create(path, "id BIGINT, s STRING", cluster_by=["id"])
    table.append({"id": [1], "s": ["a"]})


def fed(path: Path) -> None:
    table = Table.create(path, "id BIGINT", properties={"delta.enableChangeDataFeed": "true"})
    table.append({"id": [1, 2, 3]})
    table.update({"id": "9"}, where="id = 2")


def append_only(path: Path) -> None:
    table = Table.create(path, "id BIGINT", properties={"delta.appendOnly": "true"})
    table.append({"id": [1]})
    table.append({"id": [2]})


CLEAN = (
    plain,
    partitioned,
    with_vectors,
    checkpointed,
    typed,
    v2,
    compacted,
    mapped,
    tracked,
    timed,
    identity,
    clustered,
    fed,
    append_only,
)


# ------------------------------------------------------------------------------------------------------------- tools
def log(path: Path, version: int, kind: str = "json") -> Path:
    """The commit of a version, or another file of it."""
    return path / "_delta_log" / f"{version:020}.{kind}"


def actions(path: Path, version: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log(path, version).read_text().splitlines()]


def write(path: Path, version: int, *made: dict[str, Any]) -> None:
    """Write the actions of a version; the time of its file stays."""
    file = log(path, version)
    before = file.stat() if file.exists() else None
    file.write_text("".join(json.dumps(action) + "\n" for action in made))
    if before is not None:
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def edit(path: Path, version: int, kind: str, change: Edit) -> None:
    """Change the actions of a kind in a commit; version checksums go, which would differ."""
    found = actions(path, version)
    for action in found:
        if kind in action:
            change(action[kind])
    write(path, version, *found)
    for checksum in (path / "_delta_log").glob("*.crc"):
        checksum.unlink()


def add_action(path: Path, version: int, *more: dict[str, Any]) -> None:
    write(path, version, *actions(path, version), *more)
    for checksum in (path / "_delta_log").glob("*.crc"):
        checksum.unlink()


def the(path: Path, version: int, kind: str) -> dict[str, Any]:
    """The first action of a kind in a commit."""
    found: dict[str, Any] = next(action[kind] for action in actions(path, version) if kind in action)
    return found


def properties(path: Path, **values: str | None) -> None:
    """Set properties in version 0 as no writer would."""

    def change(metadata: dict[str, Any]) -> None:
        for name, value in values.items():
            metadata["configuration"][name.replace("__", ".")] = value

    edit(path, 0, "metaData", change)


def schema(path: Path, change: Edit) -> None:
    """Change the schema in version 0."""

    def changed(metadata: dict[str, Any]) -> None:
        found = json.loads(metadata["schemaString"])
        change(found)
        metadata["schemaString"] = json.dumps(found)

    edit(path, 0, "metaData", changed)


def stats(path: Path, version: int, change: Edit) -> None:
    """Change the statistics of the files that a commit adds."""

    def changed(add: dict[str, Any]) -> None:
        found = json.loads(add["stats"])
        change(found)
        add["stats"] = json.dumps(found)

    edit(path, version, "add", changed)


def checkpoint(path: Path, version: int, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Change the rows of a classic checkpoint."""
    file = log(path, version, "checkpoint.parquet")
    table = pq.read_table(file)
    rows = change(table.to_pylist())
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), file)


def data_file(path: Path, version: int) -> Path:
    return path / str(the(path, version, "add")["path"])


# --------------------------------------------------------------------------------------------------------- log files
@shows("L01", plain)
def a_commit_is_missing(path: Path) -> None:
    log(path, 2).unlink()


@shows("L01", checkpointed)
def a_commit_before_a_checkpoint_is_missing(path: Path) -> None:
    log(path, 5).unlink()


@shows("L01", plain)
def the_first_commit_is_missing(path: Path) -> None:
    log(path, 0).unlink()


@shows("L02", plain)
def a_commit_is_torn(path: Path) -> None:
    file = log(path, 3)
    file.write_bytes(file.read_bytes()[:-20])


@shows("L02", plain)
def a_line_in_the_middle_is_not_json(path: Path) -> None:
    file = log(path, 2)
    first, *rest = file.read_text().splitlines()
    file.write_text("\n".join([first, '{"add":{"path":', *rest]) + "\n")


@shows("L02", plain)
def a_line_has_two_actions(path: Path) -> None:
    found = actions(path, 2)
    found[-1]["remove"] = {"path": "x.parquet", "dataChange": True}
    write(path, 2, *found)


@shows("L03", plain)
def a_size_is_missing(path: Path) -> None:
    edit(path, 2, "add", lambda add: add.pop("size"))


@shows("L03", plain)
def a_data_change_is_missing(path: Path) -> None:
    edit(path, 2, "add", lambda add: add.pop("dataChange"))


@shows("L03", plain)
def a_transaction_has_no_version(path: Path) -> None:
    add_action(path, 2, {"txn": {"appId": "x"}})


@shows("L04", plain)
def a_file_is_added_twice(path: Path) -> None:
    add_action(path, 2, {"add": the(path, 2, "add")})


@shows("L04", plain)
def a_commit_has_two_protocols(path: Path) -> None:
    add_action(path, 0, {"protocol": the(path, 0, "protocol")})


@shows("L04", plain)
def a_commit_has_two_transactions_of_an_application(path: Path) -> None:
    add_action(path, 2, {"txn": {"appId": "x", "version": 1}}, {"txn": {"appId": "x", "version": 2}})


@shows("L05", with_vectors)
def a_path_is_added_with_two_vectors(path: Path) -> None:
    again = {**the(path, 2, "add"), **vector(1, 2)}
    add_action(path, 2, {"add": again})


@shows("L06", with_vectors)
def a_vector_replaces_another_without_a_remove(path: Path) -> None:
    write(path, 2, *(action for action in actions(path, 2) if "remove" not in action))


@shows("L07", plain)
def a_commit_has_a_sidecar(path: Path) -> None:
    add_action(path, 2, {"sidecar": {"path": "x.parquet", "sizeInBytes": 1, "modificationTime": 1}})


@shows("L08", plain)
def the_log_has_an_unknown_file(path: Path) -> None:
    (path / "_delta_log" / "notes.txt").write_text("x")


@shows("L10", plain)
def the_log_is_kept_shorter_than_files(path: Path) -> None:
    properties(path, delta__logRetentionDuration="interval 1 days")


@shows("L11", append_only)
def an_append_only_table_loses_rows(path: Path) -> None:
    removed = {"path": the(path, 1, "add")["path"], "dataChange": True, "deletionTimestamp": 1}
    add_action(path, 2, {"remove": removed})


@shows("L12", plain)
def a_rearrangement_loses_rows(path: Path) -> None:
    first, second = the(path, 1, "add"), the(path, 2, "add")
    removes = [
        {"remove": {"path": add["path"], "dataChange": False, "deletionTimestamp": 1}} for add in (first, second)
    ]
    add_action(path, 3, *removes)
    edit(path, 3, "add", lambda add: add.update(dataChange=False))


# -------------------------------------------------------------------------------------------------------- checkpoints
def _adds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["add"] is not None]


@shows("K01", checkpointed)
def a_checkpoint_lacks_a_file(path: Path) -> None:
    checkpoint(path, 10, lambda rows: [row for row in rows if row not in _adds(rows)[:1]])


@shows("K01", checkpointed)
def a_checkpoint_has_a_file_more(path: Path) -> None:
    def change(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        (first, *_) = _adds(rows)
        return [*rows, {**first, "add": {**first["add"], "path": "p=x/other.parquet"}}]

    checkpoint(path, 10, change)


@shows("K01", checkpointed)
def a_checkpoint_has_an_older_transaction(path: Path) -> None:
    def change(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for row in rows:
            if row["txn"] is not None:
                row["txn"]["version"] = 2
        return rows

    checkpoint(path, 10, change)


@shows("K01", checkpointed)
def a_checkpoint_lacks_a_tombstone(path: Path) -> None:
    checkpoint(path, 10, lambda rows: [row for row in rows if row["remove"] is None])


@shows("K02", checkpointed)
def a_checkpoint_has_another_partition_value(path: Path) -> None:
    def change(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        _adds(rows)[0]["add"]["partitionValues"] = [("p", "z")]
        return rows

    checkpoint(path, 10, change)


@shows("K02", checkpointed)
def a_checkpoint_has_another_size(path: Path) -> None:
    def change(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        _adds(rows)[0]["add"]["size"] += 1
        return rows

    checkpoint(path, 10, change)


@shows("K02", checkpointed)
def a_checkpoint_has_another_maximum(path: Path) -> None:
    def change(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        add = _adds(rows)[0]["add"]
        found = json.loads(add["stats"])
        found["maxValues"]["id"] += 1
        add["stats"] = json.dumps(found)
        return rows

    checkpoint(path, 10, change)


@shows("K03", checkpointed)
def a_checkpoint_is_cut_off(path: Path) -> None:
    file = log(path, 10, "checkpoint.parquet")
    file.write_bytes(file.read_bytes()[:-50])


@shows("K03", v2)
def a_checkpoint_is_of_another_version(path: Path) -> None:
    (file,) = (path / "_delta_log").glob("*.checkpoint.*.json")
    file.write_text(file.read_text().replace('"checkpointMetadata":{"version":3', '"checkpointMetadata":{"version":2'))


@shows("K04", v2, "list")
def a_sidecar_is_missing(path: Path) -> None:
    for file in (path / "_delta_log" / "_sidecars").iterdir():
        file.unlink()


@shows("K04", v2, "list")
def a_sidecar_has_another_size(path: Path) -> None:
    (file,) = (path / "_delta_log").glob("*.checkpoint.*.json")
    found = [json.loads(line) for line in file.read_text().splitlines()]
    for action in found:
        if "sidecar" in action:
            action["sidecar"]["sizeInBytes"] += 1
    file.write_text("".join(json.dumps(action) + "\n" for action in found))


@shows("K05", checkpointed)
def a_part_of_a_checkpoint_is_missing(path: Path) -> None:
    shutil.copy(log(path, 10, "checkpoint.parquet"), log(path, 9, "checkpoint.0000000001.0000000002.parquet"))


@shows("K06", checkpointed)
def a_checkpoint_has_a_unique_name_without_the_feature(path: Path) -> None:
    name = "checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet"
    log(path, 10, "checkpoint.parquet").rename(log(path, 10, name))


@shows("K07", checkpointed)
def the_hint_is_ahead(path: Path) -> None:
    (path / "_delta_log" / "_last_checkpoint").write_text('{"version":99,"size":1}')


@shows("K07", checkpointed)
def the_hint_has_a_wrong_checksum(path: Path) -> None:
    file = path / "_delta_log" / "_last_checkpoint"
    file.write_text(file.read_text().replace('"version":10', '"version":9'))


@shows("K07", checkpointed)
def the_checkpoint_of_the_hint_is_missing(path: Path) -> None:
    log(path, 10, "checkpoint.parquet").unlink()


@shows("K08", compacted)
def a_compaction_lacks_a_file(path: Path) -> None:
    (file,) = (path / "_delta_log").glob("*.compacted.json")
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))


@shows("K09", plain)
def a_checksum_counts_other_files(path: Path) -> None:
    file = log(path, 3, "crc")
    file.write_text(file.read_text().replace('"numFiles":3', '"numFiles":4'))


@shows("K09", plain)
def a_checksum_is_torn(path: Path) -> None:
    file = log(path, 3, "crc")
    file.write_text(file.read_text()[:-30])


@shows("K10", v2, "list")
def a_sidecar_belongs_to_no_checkpoint(path: Path) -> None:
    directory = path / "_delta_log" / "_sidecars"
    (first, *_) = directory.iterdir()
    loose = directory / "00000000-0000-0000-0000-000000000000.parquet"
    shutil.copy(first, loose)
    os.utime(loose, (1, 1))


@shows("K10", plain, "list")
def a_writer_left_a_temporary_file(path: Path) -> None:
    file = path / "_delta_log" / f".{3:020}.json.0a1b.tmp"
    file.write_text("{}")
    os.utime(file, (1, 1))


# -------------------------------------------------------------------------------------------------------- declaration
@shows("P01", plain)
def the_protocol_lists_features_below_version_7(path: Path) -> None:
    edit(path, 0, "protocol", lambda protocol: protocol.update(writerFeatures=["appendOnly"]))


@shows("P01", with_vectors)
def a_feature_is_listed_for_readers_alone(path: Path) -> None:
    edit(path, 0, "protocol", lambda protocol: protocol["writerFeatures"].remove("deletionVectors"))


@shows("P02", plain)
def a_type_is_used_without_its_feature(path: Path) -> None:
    schema(path, lambda found: found["fields"][2].update(type="timestamp_ntz"))


@shows("P03", clustered)
def a_required_feature_is_missing(path: Path) -> None:
    edit(path, 0, "protocol", lambda protocol: protocol["writerFeatures"].remove("domainMetadata"))


@shows("P04", plain)
def a_property_has_an_illegal_value(path: Path) -> None:
    properties(path, delta__checkpointInterval="often")


@shows("P04", plain)
def a_property_is_misspelled(path: Path) -> None:
    properties(path, delta__appendonlyy="true")


@shows("P05", plain)
def the_schema_is_not_json(path: Path) -> None:
    edit(path, 0, "metaData", lambda metadata: metadata.update(schemaString="{"))


@shows("P05", plain)
def two_columns_have_the_same_name(path: Path) -> None:
    schema(path, lambda found: found["fields"][1].update(name="ID"))


@shows("P05", partitioned)
def a_partition_column_is_not_in_the_schema(path: Path) -> None:
    edit(path, 0, "metaData", lambda metadata: metadata.update(partitionColumns=["day", "q"]))


@shows("P06", mapped)
def the_largest_column_id_is_behind(path: Path) -> None:
    properties(path, delta__columnMapping__maxColumnId="1")


@shows("P06", mapped)
def a_column_has_no_physical_name(path: Path) -> None:
    schema(path, lambda found: found["fields"][0]["metadata"].pop("delta.columnMapping.physicalName"))


@shows("P06", mapped)
def two_columns_have_the_same_id(path: Path) -> None:
    schema(path, lambda found: found["fields"][1]["metadata"].update({"delta.columnMapping.id": 1}))


def constrained(path: Path) -> None:
    table = Table.create(path, "id BIGINT")
    table.alter().add_constraint("positive", "id > 0")


@shows("P07", constrained)
def a_constraint_names_an_unknown_column(path: Path) -> None:
    edit(
        path, 1, "metaData", lambda metadata: metadata["configuration"].update({"delta.constraints.positive": "x > 0"})
    )


@shows("P07", constrained)
def a_constraint_is_not_sql(path: Path) -> None:
    edit(path, 1, "metaData", lambda metadata: metadata["configuration"].update({"delta.constraints.positive": "id >"}))


@shows("P08", identity)
def a_high_water_mark_is_behind(path: Path) -> None:
    def change(metadata: dict[str, Any]) -> None:
        found = json.loads(metadata["schemaString"])
        found["fields"][0]["metadata"]["delta.identity.highWaterMark"] = 1
        metadata["schemaString"] = json.dumps(found)

    edit(path, 1, "metaData", change)


@shows("P08", identity)
def an_identity_column_has_the_step_0(path: Path) -> None:
    def change(metadata: dict[str, Any]) -> None:
        found = json.loads(metadata["schemaString"])
        found["fields"][0]["metadata"]["delta.identity.step"] = 0
        metadata["schemaString"] = json.dumps(found)

    edit(path, 0, "metaData", change)
    edit(path, 1, "metaData", change)


@shows("P09", clustered)
def a_clustering_column_does_not_exist(path: Path) -> None:
    edit(path, 0, "domainMetadata", lambda domain: domain.update(configuration='{"clusteringColumns":[["x"]]}'))


def widened(path: Path) -> None:
    table = Table.create(path, "id INT", properties={"delta.enableTypeWidening": "true"})
    table.alter().change_type("id", "BIGINT")


@shows("P11", widened)
def a_type_change_is_not_allowed(path: Path) -> None:
    def change(metadata: dict[str, Any]) -> None:
        metadata["schemaString"] = metadata["schemaString"].replace('"fromType":"integer"', '"fromType":"string"')

    edit(path, 1, "metaData", change)


@shows("P12", with_vectors)
def a_feature_is_dropped(path: Path) -> None:
    add_action(path, 2, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})


@shows("P13", clustered)
def a_domain_is_not_json(path: Path) -> None:
    edit(path, 0, "domainMetadata", lambda domain: domain.update(configuration="{"))


def compatible(path: Path) -> None:
    table = Table.create(
        path, "id BIGINT", properties={"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}
    )
    table.append({"id": [1]})


@shows("P10", compatible)
def an_iceberg_table_has_vectors(path: Path) -> None:
    def change(protocol: dict[str, Any]) -> None:
        for name in ("readerFeatures", "writerFeatures"):
            protocol[name] = [*(protocol.get(name) or ["columnMapping"]), "deletionVectors"]
        protocol["minReaderVersion"] = 3

    edit(path, 0, "protocol", change)
    properties(path, delta__enableDeletionVectors="true")


# -------------------------------------------------------------------------------------------------------------- files
@shows("F01", plain, "list")
def a_file_is_missing(path: Path) -> None:
    data_file(path, 2).unlink()


@shows("F02", plain, "list")
def a_file_is_longer(path: Path) -> None:
    file = data_file(path, 2)
    file.write_bytes(file.read_bytes() + b"x")


@shows("F02", plain, "list")
def the_log_has_another_size(path: Path) -> None:
    edit(path, 2, "add", lambda add: add.update(size=add["size"] + 1))


@shows("F03", with_vectors)
def a_file_is_live_twice(path: Path) -> None:
    write(path, 2, *(action for action in actions(path, 2) if "remove" not in action))


@shows("F04", partitioned)
def a_partition_value_is_missing(path: Path) -> None:
    edit(path, 1, "add", lambda add: add["partitionValues"].pop("day"))


@shows("F04", partitioned)
def a_partition_value_is_of_another_type(path: Path) -> None:
    edit(path, 1, "add", lambda add: add["partitionValues"].update(day="monday"))


@shows("F04", partitioned)
def a_partition_value_is_null_although_it_must_not_be(path: Path) -> None:
    edit(path, 1, "add", lambda add: add["partitionValues"].update(p=None))


@shows("F04", plain)
def a_partition_value_has_no_column(path: Path) -> None:
    edit(path, 1, "add", lambda add: add["partitionValues"].update(p="x"))


@shows("F05", partitioned)
def a_directory_shows_another_value(path: Path) -> None:
    edit(path, 1, "add", lambda add: add["partitionValues"].update(p="z"))


@shows("F06", plain, "footer")
def statistics_count_other_records(path: Path) -> None:
    stats(path, 2, lambda found: found.update(numRecords=11))


@shows("F07", plain, "footer")
def a_file_has_another_type(path: Path) -> None:
    file = data_file(path, 2)
    pq.write_table(pa.table({"id": ["x"] * 10, "s": ["a"] * 10}), file)
    edit(path, 2, "add", lambda add: add.update(size=file.stat().st_size))


@shows("F08", plain, "data")
def a_page_is_damaged(path: Path) -> None:
    file = data_file(path, 2)
    content = bytearray(file.read_bytes())
    content[4:200] = bytes(196)
    file.write_bytes(bytes(content))


@shows("F09", plain, "list")
def a_file_is_outside_of_the_table(path: Path) -> None:
    file = data_file(path, 2)
    outside = path.parent / f"outside-{path.name}.parquet"
    file.rename(outside)
    edit(path, 2, "add", lambda add: add.update(path=outside.as_uri()))


@shows("F10", checkpointed, "list")
def a_removed_file_is_gone_too_early(path: Path) -> None:
    removed = next(action["remove"] for action in actions(path, 10) if "remove" in action)
    (path / removed["path"]).unlink()


@shows("F12", fed, "list")
def a_change_data_file_is_gone(path: Path) -> None:
    shutil.rmtree(path / "_change_data")


@shows("F11", plain, "list")
def a_failed_writer_left_a_file(path: Path) -> None:
    file = path / "part-00000-left.parquet"
    file.write_bytes(b"x")
    os.utime(file, (1, 1))


@shows("F13", plain)
def a_file_is_in_a_hidden_directory(path: Path) -> None:
    edit(path, 2, "add", lambda add: add.update(path="_old/x.parquet"))


@shows("F14", plain)
def a_table_has_many_small_files(path: Path) -> None:
    add = the(path, 2, "add")
    add_action(path, 2, *({"add": {**add, "path": f"{number}.parquet"}} for number in range(150)))


# ------------------------------------------------------------------------------------- statistics, vectors, row ids
@shows("S01", plain)
def statistics_are_not_json(path: Path) -> None:
    edit(path, 2, "add", lambda add: add.update(stats='{"numRecords":10,"minValues":'))


@shows("S01", with_vectors)
def a_file_with_a_vector_has_no_number_of_records(path: Path) -> None:
    stats(path, 2, lambda found: found.pop("numRecords"))


@shows("S02", plain)
def a_minimum_is_above_the_maximum(path: Path) -> None:
    stats(path, 2, lambda found: found["minValues"].update(id=100))


@shows("S02", plain)
def there_are_more_nulls_than_records(path: Path) -> None:
    stats(path, 2, lambda found: found["nullCount"].update(id=11))


@shows("S03", plain, "footer")
def a_maximum_is_below_a_value(path: Path) -> None:
    stats(path, 2, lambda found: found["maxValues"].update(id=18))


@shows("S03", plain, "data")
def a_maximum_of_texts_is_below_a_value(path: Path) -> None:
    stats(path, 2, lambda found: (found["minValues"].update(s="A"), found["maxValues"].update(s="B")))


@shows("S04", with_vectors)
def bounds_stay_tight(path: Path) -> None:
    kept = the(path, 1, "add")["stats"]
    edit(path, 2, "add", lambda add: add.update(stats=kept))


@shows("S05", typed)
def a_maximum_differs_between_text_and_columns(path: Path) -> None:
    def change(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        _adds(rows)[-1]["add"]["stats_parsed"]["maxValues"]["id"] += 1
        return rows

    checkpoint(path, 3, change)


@shows("D01", with_vectors, "list")
def a_vector_file_is_missing(path: Path) -> None:
    for file in path.glob("deletion_vector_*.bin"):
        file.unlink()


@shows("D01", with_vectors, "footer")
def a_vector_file_is_damaged(path: Path) -> None:
    (file,) = path.glob("deletion_vector_*.bin")
    content = bytearray(file.read_bytes())
    content[30] ^= 255
    file.write_bytes(bytes(content))


@shows("D01", with_vectors)
def a_vector_in_the_log_is_damaged(path: Path) -> None:
    made = vector(1, 2)
    made["deletionVector"]["pathOrInlineDv"] = "0" * len(made["deletionVector"]["pathOrInlineDv"])
    edit(path, 2, "add", lambda add: add.update(made))


@shows("D02", with_vectors)
def a_vector_names_a_row_beyond_the_file(path: Path) -> None:
    edit(path, 2, "add", lambda add: add.update(vector(1, 40_000)))


@shows("D02", with_vectors)
def a_vector_in_the_log_has_another_cardinality(path: Path) -> None:
    made = vector(*range(1, 30_000, 3))
    made["deletionVector"]["cardinality"] = 5
    edit(path, 2, "add", lambda add: add.update(made))


@shows("D02", with_vectors, "footer")
def a_vector_has_another_cardinality(path: Path) -> None:
    edit(path, 2, "add", lambda add: add["deletionVector"].update(cardinality=1))


@shows("D03", plain)
def a_vector_is_used_without_the_feature(path: Path) -> None:
    edit(path, 2, "add", lambda add: add.update(vector(1)))


@shows("D04", with_vectors)
def a_vector_is_in_the_directory_of_a_partition(path: Path) -> None:
    found = next(path.rglob("deletion_vector_*.bin"))
    moved = path / "p=1" / found.name
    moved.parent.mkdir()
    found.rename(moved)
    place = {"storageType": "p", "pathOrInlineDv": moved.as_uri()}
    edit(path, 2, "add", lambda add: add["deletionVector"].update(place))


@shows("D04", with_vectors)
def a_vector_is_outside_of_the_table(path: Path) -> None:
    found = next(path.rglob("deletion_vector_*.bin"))
    outside = path.parent / f"outside-{path.name}.bin"
    found.rename(outside)
    place = {"storageType": "p", "pathOrInlineDv": outside.as_uri()}
    edit(path, 2, "add", lambda add: add["deletionVector"].update(place))


@shows("U01", clustered)
def a_cube_has_no_columns(path: Path) -> None:
    edit(path, 1, "add", lambda add: add.update(tags={"ZCUBE_ID": "a"}, clusteringProvider="liquid"))


@shows("U01", clustered)
def a_cube_has_columns_that_the_table_lacks(path: Path) -> None:
    tags = {"ZCUBE_ID": "a", "ZCUBE_ZORDER_BY": '["gone"]'}
    edit(path, 1, "add", lambda add: add.update(tags=tags, clusteringProvider="liquid"))


@shows("D05", with_vectors)
def all_rows_of_a_file_are_deleted(path: Path) -> None:
    edit(path, 2, "add", lambda add: add["deletionVector"].update(cardinality=30_000))


@shows("R01", tracked)
def a_file_has_no_row_ids(path: Path) -> None:
    edit(path, 2, "add", lambda add: add.pop("baseRowId"))


@shows("R02", tracked)
def row_ids_occur_twice(path: Path) -> None:
    edit(path, 2, "add", lambda add: add.update(baseRowId=2))


@shows("R02", tracked)
def row_ids_are_above_the_mark(path: Path) -> None:
    edit(path, 2, "domainMetadata", lambda domain: domain.update(configuration='{"rowIdHighWaterMark":3}'))


@shows("R03", tracked)
def a_row_commit_version_is_in_the_future(path: Path) -> None:
    edit(path, 2, "add", lambda add: add.update(defaultRowCommitVersion=9))


@shows("R04", tracked, "data")
def rows_share_an_id(path: Path) -> None:
    edit(path, 2, "add", lambda add: add.update(baseRowId=2))


@shows("R05", tracked)
def the_column_of_row_ids_has_no_name(path: Path) -> None:
    properties(path, delta__rowTracking__materializedRowIdColumnName=None)


# ------------------------------------------------------------------------------------------------------------ history
@shows("T01", timed)
def a_commit_has_no_time(path: Path) -> None:
    edit(path, 3, "commitInfo", lambda info: info.pop("inCommitTimestamp"))


@shows("T01", timed)
def a_time_does_not_increase(path: Path) -> None:
    edit(path, 3, "commitInfo", lambda info: info.update(inCommitTimestamp=1))


@shows("T01", timed)
def the_time_is_not_in_the_first_line(path: Path) -> None:
    write(path, 3, *reversed(actions(path, 3)))


@shows("T02", timed)
def the_enablement_names_another_version(path: Path) -> None:
    def change(metadata: dict[str, Any]) -> None:
        metadata["configuration"]["delta.inCommitTimestampEnablementVersion"] = "1"

    edit(path, 2, "metaData", change)


@shows("T04", plain)
def a_vacuum_did_not_end(path: Path) -> None:
    edit(path, 3, "commitInfo", lambda info: info.update(operation="VACUUM START"))


@shows("T05", with_vectors, "list")
def a_vector_of_an_earlier_version_is_gone(path: Path) -> None:
    (before,) = path.glob("deletion_vector_*.bin")
    Table.open(path).delete("id = 0")
    before.unlink()
