"""Checklist areas IC1, IC2 and IWC: what tables hold whose files Iceberg reads, or writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.evolving import PLAIN, changed, columns, created, features, stored, versions

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.data.parts import write_files
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, Operation
from pyspark_delta.protocol.state import TableState
from pyspark_delta.schema.arrow import schema_to_arrow
from pyspark_delta.schema.column_mapping import ID, NESTED_IDS, PHYSICAL_NAME
from pyspark_delta.schema.traversal import fields_in
from pyspark_delta.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from pyspark_delta.transaction.finish import finish
from pyspark_delta.transaction.write_plan import FileOptions, write_context

V1, V2, V3 = (f"delta.enableIcebergCompatV{v}" for v in (1, 2, 3))
WRITERS_V1, WRITERS_V3 = (f"delta.enableIcebergWriterCompatV{v}" for v in (1, 3))
NAME = {"delta.columnMapping.mode": "name"}
ALL = [V1, V2, V3, WRITERS_V1, WRITERS_V3]


def refused(kind: str, match: str = "does not comply") -> pytest.RaisesExc[InvalidOperationError]:
    """Raises the error for a broken rule, of delta-spark's class where it has one."""
    check = lambda error: error.error_class == f"DELTA_ICEBERG_COMPAT_VIOLATION.{kind}"  # noqa: E731
    return pytest.raises(InvalidOperationError, match=match, check=check)


# ------------------------------------------------------------------------------------------------------- enabling
@pytest.mark.parametrize(("key", "name"), [(V1, "icebergCompatV1"), (V2, "icebergCompatV2")])
def test_c283_c291_c284_c292_the_property_lists_the_feature_and_maps_columns(key: str, name: str) -> None:
    table = created({key: "true"})
    assert versions(table) == (2, 7)
    assert features(table) == (None, {"appendOnly", "invariants", "columnMapping", name})
    assert table.properties["delta.columnMapping.mode"] == "name"
    assert created({key: "true", "delta.columnMapping.mode": "id"}).properties["delta.columnMapping.mode"] == "id"


@pytest.mark.parametrize("key", ALL)
def test_c284_c292_c303_without_column_mapping_it_is_refused(key: str) -> None:
    with refused("WRONG_REQUIRED_TABLE_PROPERTY", "delta.columnMapping.mode"):
        created({key: "true", "delta.columnMapping.mode": "none"})


def test_c302_c303_c306_writer_compatibility_maps_by_id_and_enables_v2() -> None:
    table = created({WRITERS_V1: "true"})
    assert versions(table) == (2, 7)
    listed = {"columnMapping", "icebergCompatV2", "icebergWriterCompatV1"}
    assert features(table) == (None, {"appendOnly", "invariants"} | listed)
    assert table.properties["delta.columnMapping.mode"] == "id"
    assert table.properties[V2] == "true"
    assert created({WRITERS_V1: "true", V2: "true"}).properties["delta.columnMapping.mode"] == "id"
    with refused("WRONG_REQUIRED_TABLE_PROPERTY", "to be id, found name"):
        created({WRITERS_V1: "true", **NAME})
    with refused("WRONG_REQUIRED_TABLE_PROPERTY", "needs icebergCompatV2"):
        created({WRITERS_V1: "true", V2: "false"})


def test_version_3_enables_row_tracking_and_needs_it() -> None:
    table = created({V3: "true"})
    assert table.properties["delta.enableRowTracking"] == "true"
    with refused("WRONG_REQUIRED_TABLE_PROPERTY", "row ids"):
        created({V3: "true", "delta.enableRowTracking": "false"})
    assert created({WRITERS_V3: "true"}).properties[V3] == "true"


def test_c285_version_1_does_not_go_with_deletion_vectors_even_unused() -> None:
    with refused("DELETION_VECTORS_SHOULD_BE_DISABLED"):
        created({V1: "true", "delta.feature.deletionVectors": "supported"})


def test_c296_version_2_goes_with_deletion_vectors_that_are_disabled() -> None:
    table = created({V2: "true", "delta.feature.deletionVectors": "supported"})
    with refused("DELETION_VECTORS_SHOULD_BE_DISABLED"):
        changed(table, {"delta.enableDeletionVectors": "true"})
    assert "deletionVectors" in (features(created({V3: "true", "delta.enableDeletionVectors": "true"}))[0] or ())


@pytest.mark.parametrize(("one", "other"), [(V1, V2), (V2, V1), (V1, V3), (V2, V3)])
def test_c295_only_one_version_is_active(one: str, other: str) -> None:
    with pytest.raises(InvalidOperationError, match="cannot be combined"):
        created({one: "true", other: "true"})
    swapped = changed(created({one: "true"}), {one: "false", other: "true"}, keeps_files=False)
    assert swapped.properties[other] == "true"


# --------------------------------------------------------------------------------------------------------- columns
PRIMITIVES = [
    *(BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, DecimalType(10, 2)),
    *(STRING, BINARY, BOOLEAN, TIMESTAMP, TIMESTAMP_NTZ, DATE),
]
LISTS: list[DataType] = [ArrayType(LONG), MapType(STRING, LONG)]


def allowed(key: str, data_type: DataType) -> None:
    created({key: "true"}, columns(id=LONG, x=data_type))
    created({key: "true"}, columns(id=LONG, x=columns(y=data_type)))


def not_allowed(key: str, data_type: DataType) -> None:
    for schema in (columns(id=LONG, x=data_type), columns(id=LONG, x=columns(a=LONG, y=data_type))):
        with refused("UNSUPPORTED_DATA_TYPE", "Cast or drop the column"):
            created({key: "true"}, schema)
        with refused("UNSUPPORTED_DATA_TYPE"):
            changed(created({key: "true"}, columns(id=LONG)), schema=schema)


def test_c289_version_1_has_primitive_columns_and_structs() -> None:
    for data_type in PRIMITIVES:
        allowed(V1, data_type)
    for data_type in (*LISTS, VOID, VARIANT):
        not_allowed(V1, data_type)


def test_c300_version_2_has_lists_and_maps_too() -> None:
    for data_type in (*PRIMITIVES, *LISTS):
        allowed(V2, data_type)
    for data_type in (VOID, VARIANT):
        not_allowed(V2, data_type)


def test_c305_writer_compatibility_has_no_small_integers() -> None:
    for data_type in (*PRIMITIVES[2:], *LISTS):
        allowed(WRITERS_V1, data_type)
    for data_type in (BYTE, SHORT, ArrayType(BYTE), VOID, VARIANT):
        not_allowed(WRITERS_V1, data_type)


def test_version_3_has_variants_too() -> None:
    for data_type in (*PRIMITIVES, *LISTS, VARIANT):
        allowed(V3, data_type)
    not_allowed(V3, VOID)
    not_allowed(WRITERS_V3, SHORT)


@pytest.mark.parametrize("key", [V1, V2, V3])
@pytest.mark.parametrize(
    ("before", "after", "works"),
    [
        ("integer", "long", True),
        ("byte", "integer", True),
        ("float", "double", True),
        ("decimal(6,2)", "decimal(8,2)", True),
        ("decimal(6,2)", "decimal(8,3)", False),
        ("integer", "double", False),
        ("integer", "decimal(10,0)", False),
        ("date", "timestamp_ntz", False),
    ],
)
def test_columns_were_widened_only_as_iceberg_does(key: str, before: str, after: str, works: bool) -> None:
    history = {"delta.typeChanges": [{"fromType": before, "toType": after}]}
    schema = StructType((StructField("id", LONG), StructField("x", STRING, metadata=history)))
    if works:
        created({key: "true"}, schema, features=["typeWidening"])
    else:
        with refused("UNSUPPORTED_TYPE_WIDENING"):
            created({key: "true"}, schema, features=["typeWidening"])


def test_c293_c294_ids_of_list_elements_and_map_entries() -> None:
    """The columns of the example: ids are with the nearest field above, and paths begin with its physical name."""
    example = columns(
        col1=ArrayType(ArrayType(INTEGER)),
        col2=MapType(INTEGER, ArrayType(INTEGER)),
        col3=MapType(INTEGER, columns(subcol1=ArrayType(INTEGER))),
    )
    schema = stored(created({WRITERS_V1: "true"}, example))
    found = {f.metadata[PHYSICAL_NAME]: f.metadata[NESTED_IDS] for f in fields_in(schema)}
    assert found == {
        "col-1": {"col-1.element": 5, "col-1.element.element": 6},
        "col-2": {"col-2.key": 7, "col-2.value": 8, "col-2.value.element": 9},
        "col-3": {"col-3.key": 10, "col-3.value": 11},
        "col-4": {"col-4.element": 12},
    }


def test_c293_new_lists_get_ids_above_all_others() -> None:
    table = created({V2: "true"}, columns(id=LONG, a=ArrayType(LONG)))
    wider = StructType((*stored(table), StructField("b", MapType(STRING, LONG))))
    after = changed(table, schema=wider)
    assert after.properties["delta.columnMapping.maxColumnId"] == "6"
    b = stored(after).fields[2]
    assert (b.metadata[ID], sorted(b.metadata[NESTED_IDS].values())) == (4, [5, 6])


def test_c304_physical_names_follow_from_ids() -> None:
    schema = columns(a=INTEGER, b=columns(c=STRING))
    table = created({WRITERS_V1: "true"}, schema)
    names = {f.name: f.metadata[PHYSICAL_NAME] for f in fields_in(stored(table))}
    assert names == {"a": "col-1", "b": "col-2", "c": "col-3"}
    other = created({V2: "true", "delta.columnMapping.mode": "id"})
    with refused("WRONG_PHYSICAL_NAME", "create a new table"):
        changed(other, {WRITERS_V1: "true"})


def test_c307_a_struct_that_is_the_key_of_a_map_does_not_change() -> None:
    def keyed(key: StructType, value: DataType = INTEGER) -> StructType:
        return columns(id=LONG, m=MapType(key, value))

    table = created({WRITERS_V1: "true"}, keyed(columns(s=STRING), columns(v=LONG)))
    with refused("MAP_KEY_CHANGE"):
        changed(table, schema=keyed(columns(s=STRING, t=STRING), columns(v=LONG)))
    changed(table, schema=keyed(columns(s=STRING), columns(v=LONG, w=LONG)))
    plain = created({V2: "true"}, keyed(columns(s=STRING)))
    changed(plain, schema=keyed(columns(s=STRING, t=STRING)))  # the rule is that of writers


# ------------------------------------------------------------------------------------------------- other features
@pytest.mark.parametrize(
    "name", ["vacuumProtocolCheck", "v2Checkpoint", "inCommitTimestamp", "timestampNtz", "typeWidening", "clustering"]
)
def test_c308_features_of_the_list_go_with_writer_compatibility(name: str) -> None:
    created({WRITERS_V1: "true"}, features=[name])


@pytest.mark.parametrize(
    "name", ["allowColumnDefaults", "collations", "variantType", "deletionVectors", "checkpointProtection"]
)
def test_c308_c316_other_features_are_not_even_supported(name: str) -> None:
    with refused("UNSUPPORTED_FEATURES", name):
        created({WRITERS_V1: "true"}, features=[name])


GENERATED = StructField("x", LONG, metadata={"delta.generationExpression": "id + 1"})
IDENTITY = StructField("x", LONG, metadata={"delta.identity.start": 1, "delta.identity.step": 1})
INVARIANT = StructField("x", LONG, metadata={"delta.invariants": '{"expression":{"expression":"x > 3"}}'})


@pytest.mark.parametrize(
    ("name", "properties", "extra"),
    [
        ("invariants", {}, INVARIANT),
        ("changeDataFeed", {"delta.enableChangeDataFeed": "true"}, None),
        ("checkConstraints", {"delta.constraints.c": "id > 0"}, None),
        ("identityColumns", {}, IDENTITY),
        ("generatedColumns", {}, GENERATED),
        ("rowTracking", {"delta.enableRowTracking": "true"}, None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_c309_c310_c311_c312_c313_c314_c315_c317_features_that_may_be_supported_but_not_used(
    name: str, properties: Mapping[str, str], extra: StructField | None
) -> None:
    created({WRITERS_V1: "true"}, features=[name])
    schema = StructType((StructField("id", LONG), *([extra] if extra else [])))
    with refused("UNSUPPORTED_FEATURES", "is not compatible with"):
        created({WRITERS_V1: "true", **properties}, schema)


# ------------------------------------------------------------------------------------------------ existing tables
@pytest.mark.parametrize("key", [V2, V3])
def test_c288_files_from_before_are_not_taken_over(key: str) -> None:
    table = created({**NAME, "delta.enableRowTracking": "true"})
    with refused("CHANGE_VERSION_NEED_REWRITE", "overwrite all rows"):
        changed(table, {key: "true"})
    assert changed(table, {key: "true"}, keeps_files=False).properties[key] == "true"


def test_c288_version_1_takes_over_files_that_need_no_partition_columns() -> None:
    assert changed(created(NAME), {V1: "true"}).properties[V1] == "true"
    with refused("CHANGE_VERSION_NEED_REWRITE"):
        changed(created(NAME, partition_columns=("s",)), {V1: "true"})
    with refused("CHANGE_VERSION_NEED_REWRITE"):
        changed(created(), {V1: "true"})


@pytest.mark.parametrize("key", [V1, V2, V3])
def test_c290_c301_partition_columns_keep_their_names(key: str) -> None:
    schema = columns(id=LONG, part_a=INTEGER, part_b=INTEGER)
    table = created({key: "true"}, schema, ("part_a",))
    wider = columns(id=LONG, part_a=LONG, part_b=INTEGER)
    assert changed(table, schema=wider, keeps_files=False).partition_columns == ("part_a",)
    for partitioning in (("part_b",), ()):
        with refused("REPLACE_TABLE_CHANGE_PARTITION_NAMES"):
            changed(table, partition_columns=partitioning, keeps_files=False)


# ----------------------------------------------------------------------------------------------------------- files
@pytest.mark.parametrize("key", [V1, V2, V3])
def test_c286_c297_files_hold_the_partition_columns_after_the_others(key: str, tmp_path: Path) -> None:
    schema = columns(p=STRING, id=LONG)
    table = created({key: "true"}, schema, ("p",))
    rows = pa.RecordBatch.from_pylist([{"p": "a", "id": 1}], schema_to_arrow(schema))
    (written,) = write_files(write_context(str(tmp_path), table, FileOptions()), [rows])
    names = [f.metadata[PHYSICAL_NAME] for f in stored(table)]
    assert pq.read_table(tmp_path / written.path, partitioning=None).to_pylist() == [{names[1]: 1, names[0]: "a"}]
    assert pq.read_schema(tmp_path / written.path).names == [names[1], names[0]]
    assert names[0] not in written.stats


def test_c293_c299_files_hold_ids_of_elements_and_timestamps_as_int64(tmp_path: Path) -> None:
    schema = columns(t=TIMESTAMP, a=ArrayType(TIMESTAMP), m=MapType(STRING, LONG))
    table = created({WRITERS_V1: "true"}, schema)
    rows = pa.RecordBatch.from_pylist([{"t": 0, "a": [1], "m": [("k", 2)]}], schema_to_arrow(schema))
    (written,) = write_files(write_context(str(tmp_path), table, FileOptions()), [rows])
    leaves = pq.ParquetFile(tmp_path / written.path).schema
    assert [leaves.column(i).physical_type for i in (0, 1)] == ["INT64", "INT64"]
    text = str(leaves)
    for line in ("field_id=4 element", "field_id=5 key", "field_id=6 value"):
        assert line in text


@pytest.mark.parametrize("key", [V1, V2, V3])
def test_c287_c298_every_added_file_tells_its_number_of_rows(key: str) -> None:
    table = created({key: "true"})
    commit_adding(table, '{"numRecords":3}')
    for stats in ('{"nullCount":{}}', None):
        with pytest.raises(InvalidOperationError, match=r"numRecords"):
            commit_adding(table, stats)
    commit_adding(created(NAME), None)  # other tables may do without


def test_c296_no_added_file_has_a_deletion_vector() -> None:
    with refused("DELETION_VECTORS_NOT_PURGED"):
        commit_adding(created({V2: "true"}), '{"numRecords":3}', deletion_vector=True)


def commit_adding(table: TableConfiguration, stats: str | None, *, deletion_vector: bool = False) -> None:
    """Complete a commit that adds a file with these statistics to the table."""
    fields = {f.name: f for f in FILE_FIELDS}
    values: dict[str, object] = {
        "path": "f.parquet",
        "partition_values": [],
        "size": 1,
        "modification_time": 1,
        "stats": stats,
    }
    if deletion_vector:
        vector = {"storage_type": "u", "path_or_inline_dv": "x" * 20, "offset": 1, "size_in_bytes": 4, "cardinality": 1}
        values["deletion_vector"] = vector
    adds = pa.Table.from_pylist([values], pa.schema([fields[name] for name in values]))
    base = TableState(location="/t", version=3, configuration=replace(table, location="/t"))
    finish(CommitDraft(operation=Operation("WRITE"), adds=adds), base)


def test_the_rules_of_version_3_for_defaults() -> None:
    def with_default(text: str) -> StructType:
        return StructType((*PLAIN, StructField("x", INTEGER, metadata={"CURRENT_DEFAULT": text})))

    for constant in ("7", "-7", "NULL", "DATE '2024-01-01'", "true"):
        created({V3: "true"}, with_default(constant))
    with refused("UNSUPPORTED_DEFAULT_VALUE"):
        created({V3: "true"}, with_default("1 + 1"))
