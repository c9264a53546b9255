"""Checklist areas CLU, VPC, RT, ICT, CHK, GEN, DEF, IDN, V2C: what features add to a table, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.declarations import declare, protocol
from tests.evolving import changed, columns, created, features

from pyspark_delta.errors import DeltaError, InvalidOperationError, InvalidPredicateError, UnsupportedTableError
from pyspark_delta.schema.types import (
    DAY_TIME_INTERVAL,
    INTEGER,
    LONG,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    StructField,
    StructType,
)
from pyspark_delta.transaction.evolution import evolve

BASE = {"appendOnly", "invariants"}
ROW_ID = "delta.rowTracking.materializedRowIdColumnName"
ROW_VERSION = "delta.rowTracking.materializedRowCommitVersionColumnName"


def with_column(data_type: DataType = LONG, **metadata: object) -> StructType:
    """A column `id`, and a column `x` with this metadata (double underscores stand for dots)."""
    named = {key.replace("__", "."): value for key, value in metadata.items()}
    return StructType((StructField("id", LONG), StructField("x", data_type, metadata=named)))


# --------------------------------------------------------------------------------------------------- what is listed
@pytest.mark.parametrize(
    ("row", "properties", "readers", "writers"),
    [
        ("C064", {"delta.checkpointPolicy": "v2"}, {"v2Checkpoint"}, {"v2Checkpoint"}),
        ("C251", {"delta.enableDeletionVectors": "true"}, {"deletionVectors"}, {"deletionVectors"}),
        ("C322", {"delta.enableRowTracking": "true"}, None, {"rowTracking", "domainMetadata"}),
        (
            "C343",
            {"delta.feature.vacuumProtocolCheck": "supported"},
            {"vacuumProtocolCheck"},
            {"vacuumProtocolCheck"},
        ),
        ("C355", {"delta.enableInCommitTimestamps": "true"}, None, {"inCommitTimestamp"}),
        ("A1", {"delta.enableTypeWidening": "true"}, {"typeWidening"}, {"typeWidening"}),
        (
            "A3",
            {"delta.enableVariantShredding": "true"},
            {"variantShredding", "variantType"},
            {"variantShredding", "variantType"},
        ),
        (
            "B3",
            {"delta.enableMaterializePartitionColumnsFeature": "true"},
            None,
            {"materializePartitionColumns"},
        ),
    ],
)
def test_c064_c251_c322_c343_c355_properties_list_their_features(
    row: str, properties: dict[str, str], readers: set[str] | None, writers: set[str]
) -> None:
    assert features(created(properties)) == (readers, BASE | writers), row
    existing = declare(protocol(1, 2))
    assert features(changed(existing, properties, keeps_files=False)) == (readers, BASE | writers), row


def test_c347_clustering_brings_the_domain_along() -> None:
    assert features(created(features=["clustering"])) == (None, BASE | {"clustering", "domainMetadata"})


def test_c348_a_partitioned_table_is_not_clustered() -> None:
    with pytest.raises(InvalidOperationError, match="partitioned by s") as raised:
        created(features=["clustering"], partition_columns=("s",))
    assert raised.value.error_class == "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY"


def test_collations_are_kept_and_listed() -> None:
    collated = StructField("x", STRING, metadata={"__COLLATIONS": {"x": "icu.UNICODE_CI"}})
    table = created(schema=StructType((StructField("id", LONG), collated)))
    assert features(table) == (None, BASE | {"collations", "domainMetadata"})
    assert table.schema.fields[1].metadata["__COLLATIONS"] == {"x": "icu.UNICODE_CI"}


# ----------------------------------------------------------------------------------------------------- row tracking
def test_c324_c336_names_of_stored_ids_are_given_once() -> None:
    table = created({"delta.enableRowTracking": "true"})
    names = (table.properties[ROW_ID], table.properties[ROW_VERSION])
    assert names[0].startswith("_row-id-col-")
    assert names[1].startswith("_row-commit-version-col-")
    assert changed(table, {"mine": "1"}).properties[ROW_ID] == names[0]
    replaced = replace(table.metadata, configuration={"delta.enableRowTracking": "true"})
    anew = evolve(table, replaced, keeps_files=False)
    assert (anew.properties[ROW_ID], anew.properties[ROW_VERSION]) == names
    other = created({"delta.enableRowTracking": "true"})
    assert other.properties[ROW_ID] != names[0]
    assert evolve(created(), other.metadata, keeps_files=False).properties[ROW_ID] == other.properties[ROW_ID]


@pytest.mark.parametrize("stored", [ROW_ID, ROW_VERSION])
def test_c337_no_column_takes_the_name_of_a_stored_id(stored: str) -> None:
    table = created({"delta.enableRowTracking": "true", "delta.columnMapping.mode": "name"})
    name = table.properties[stored]
    mapped = {"delta.columnMapping.id": 9, "delta.columnMapping.physicalName": name}
    for field in (StructField(name, LONG), StructField("x", LONG, metadata=mapped)):
        with pytest.raises(InvalidOperationError, match="used by row tracking"):
            changed(table, schema=StructType((*table.schema, field)))


def test_c325_c336_files_without_ids_stand_in_the_way_of_row_tracking() -> None:
    with pytest.raises(InvalidOperationError, match="lack row ids"):
        changed(created(), {"delta.enableRowTracking": "true"})
    supported = changed(created(), {"delta.feature.rowTracking": "supported"})
    assert ROW_ID in supported.properties
    with pytest.raises(InvalidOperationError, match="lack row ids"):
        changed(supported, {"delta.enableRowTracking": "true"})
    meaningless = declare(protocol(1, 2), properties={"delta.enableRowTracking": "true"})
    with pytest.raises(InvalidOperationError, match="lack row ids"):
        changed(meaningless, {"delta.feature.rowTracking": "supported"})
    enabled = changed(supported, {"delta.enableRowTracking": "true"}, keeps_files=False)  # they have been given ids
    assert changed(enabled, {"mine": "1"}).properties["delta.enableRowTracking"] == "true"


def test_row_tracking_is_not_suspended_while_it_is_enabled() -> None:
    with pytest.raises(InvalidOperationError, match="both enabled and suspended"):
        created({"delta.enableRowTracking": "true", "delta.rowTrackingSuspended": "true"})


# ---------------------------------------------------------------------------------------------------- change feed
@pytest.mark.parametrize("name", ["_change_type", "_COMMIT_VERSION", "_commit_timestamp"])
def test_columns_with_names_of_the_change_feed(name: str) -> None:
    schema = columns(id=LONG, **{name: STRING})
    created(schema=schema)
    with pytest.raises(InvalidOperationError, match=name) as raised:
        created({"delta.enableChangeDataFeed": "true"}, schema)
    assert raised.value.error_class == "DELTA_RESERVED_COLUMN_NAMES"
    with pytest.raises(InvalidOperationError, match=name):
        changed(created(schema=schema), {"delta.enableChangeDataFeed": "true"})


# ------------------------------------------------------------------------------------------------ computed columns
def test_c384_conditions_are_sql_over_columns_of_the_table() -> None:
    created({"delta.constraints.c": "ID > 0 and length(s) < 5 or s is null"})
    created({"delta.constraints.c": "m['k'] > 0 and exists(l, e -> e.v > id)"}, columns(id=LONG, m=STRING, l=STRING))
    with pytest.raises(InvalidOperationError, match=r"'c' refers to the column 'idd'.*Did you mean 'id'"):
        created({"delta.constraints.c": "idd > 0"})
    with pytest.raises(InvalidPredicateError, match="constraint 'c' cannot be parsed"):
        created({"delta.constraints.c": "id >"})
    with pytest.raises(InvalidOperationError, match="'c' refers to the column 's'"):
        changed(created({"delta.constraints.c": "s > 'a'"}), schema=columns(id=INTEGER))


@pytest.mark.parametrize(
    ("expression", "message"), [("idd + 1", "idd"), ("x + 1", "also generated"), ("id +", "cannot be parsed")]
)
def test_c389_generated_columns_are_sql_over_columns_that_are_not(expression: str, message: str) -> None:
    created(schema=with_column(delta__generationExpression="id + 1"))
    with pytest.raises(DeltaError, match=message):
        created(schema=with_column(delta__generationExpression=expression))


def test_c391_defaults_name_no_column() -> None:
    created(schema=with_column(CURRENT_DEFAULT="cast(7 as bigint) + 1"))
    for expression, message in (("id + 1", "refers to 'id'"), ("7 +", "Cannot parse")):
        with pytest.raises(DeltaError, match=message):
            created(schema=with_column(CURRENT_DEFAULT=expression))


def test_c395_identity_columns_are_longs_that_count() -> None:
    counting = {"delta__identity__start": 1, "delta__identity__step": 1}
    created(schema=with_column(**counting))
    for schema, partitioning, message in (
        (with_column(INTEGER, **counting), (), "not long"),
        (with_column(**{**counting, "delta__identity__step": 0}), (), "has the step 0"),
        (with_column(**counting), ("x",), "partition column"),
    ):
        with pytest.raises(InvalidOperationError, match=message):
            created(schema=schema, partition_columns=partitioning)


# ----------------------------------------------------------------------------------------------------------- columns
def test_a_history_of_types_that_cannot_be_read_is_refused() -> None:
    history = [{"fromType": "string", "toType": "long"}]
    with pytest.raises(UnsupportedTableError, match="was changed from string to long"):
        created({"delta.enableTypeWidening": "true"}, with_column(delta__typeChanges=history))


@pytest.mark.parametrize("data_type", [VARIANT, VOID, ArrayType(LONG), columns(a=LONG)], ids=str)
def test_columns_that_partition_nothing(data_type: DataType) -> None:
    with pytest.raises(InvalidOperationError, match="cannot be a partition column"):
        created(schema=with_column(data_type), partition_columns=("x",))


@pytest.mark.parametrize(
    "schema",
    [
        columns(id=LONG, ID=STRING),
        columns(s=columns(a=LONG, A=LONG)),
        columns(v=VOID),
        columns(id=LONG, l=ArrayType(VOID)),
        columns(id=LONG, s=columns(v=VOID)),
        columns(id=LONG, d=DAY_TIME_INTERVAL),
        columns(**{"": LONG}),
    ],
    ids=str,
)
def test_schemas_that_no_table_has(schema: StructType) -> None:
    for properties in ({}, {"delta.columnMapping.mode": "name"}):
        with pytest.raises(InvalidOperationError):
            created(properties, schema)


def test_void_columns_may_be_declared_beside_others() -> None:
    assert created(schema=columns(id=LONG, v=VOID)).schema.names == ("id", "v")
