"""Checklist areas MET, PRO, FEA: which protocol a table gets for what it is to have, and how that moves up."""

from __future__ import annotations

import pytest
from tests.declarations import declare, protocol
from tests.evolving import PLAIN, changed, columns, created, features, versions

from pyspark_delta.actions.encode import encode_action
from pyspark_delta.errors import DeltaWarning, InvalidOperationError, InvalidOptionError, UnsupportedFeatureError
from pyspark_delta.features import all_features, find_feature, supported_features
from pyspark_delta.features.support import check_readable
from pyspark_delta.protocol.feature import FeatureKind
from pyspark_delta.schema.column_mapping import mapping_mode
from pyspark_delta.schema.types import LONG, TIMESTAMP_NTZ, VARIANT, ArrayType, StructField, StructType
from pyspark_delta.transaction.evolution import check_listing, default_properties, evolve
from pyspark_delta.transaction.new_table import new_table
from pyspark_delta.transaction.protocol_upgrade import (
    features_of,
    implied_features,
    weakest_protocol,
    with_features,
    with_versions,
)

BASE = {"appendOnly", "invariants"}


# ----------------------------------------------------------------------------------------------------- new tables
def test_c127_c129_c135_c136_version_0_has_protocol_and_every_field_of_metadata() -> None:
    table = new_table(PLAIN, ["s"], {"delta.appendOnly": "true", "mine": "5"}, description="of rows")
    written = encode_action(table.metadata).decode()
    for part in ('"id":"', '"format":{"provider":"parquet","options":{}}', '"schemaString":"', '"createdTime":1'):
        assert part in written
    assert '"partitionColumns":["s"]' in written
    assert '"configuration":{"delta.appendOnly":"true","mine":"5"}' in written
    assert '"description":"of rows"' in written
    assert b'"protocol"' in encode_action(table.protocol)


def test_c130_every_table_has_an_id_of_its_own() -> None:
    assert new_table(PLAIN).metadata.id != new_table(PLAIN).metadata.id


def test_c134_partition_columns_are_logical_names_under_column_mapping() -> None:
    table = new_table(PLAIN, ["S"], {"delta.columnMapping.mode": "name"})
    assert table.partition_columns == ("s",)


def test_c137_the_key_of_the_sample_is_the_users_own() -> None:
    table = created({"appendOnly": "true"})
    assert versions(table) == (1, 2)
    assert table.properties == {"appendOnly": "true"}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, (1, 2)),
        ({"delta.appendOnly": "true"}, (1, 2)),
        ({"delta.constraints.c": "id > 0"}, (1, 3)),
        ({"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}, (2, 5)),
        ({"delta.minWriterVersion": "5"}, (1, 4)),  # column mapping needs reader version 2
        ({"delta.minWriterVersion": "6"}, (1, 6)),
        ({"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"}, (1, 1)),  # no feature is asked for
        ({"delta.ignoreProtocolDefaults": "true"}, (1, 1)),
    ],
)
def test_c187_c235_older_versions_serve_where_they_mean_the_same_features(
    properties: dict[str, str], expected: tuple[int, int]
) -> None:
    table = created(properties)
    assert versions(table) == expected
    assert features(table) == (None, None)
    assert not any(key.startswith("delta.min") or "ignoreProtocol" in key for key in table.properties)


@pytest.mark.parametrize(
    ("properties", "listed"),
    [
        ({"delta.enableChangeDataFeed": "true"}, BASE | {"changeDataFeed"}),
        ({"delta.enableRowTracking": "true"}, BASE | {"rowTracking", "domainMetadata"}),
        ({"delta.feature.identityColumns": "supported"}, BASE | {"identityColumns"}),
        ({"delta.ignoreProtocolDefaults": "true", "delta.appendOnly": "true"}, {"appendOnly"}),
    ],
)
def test_c225_writer_features_alone_are_listed_at_reader_1(properties: dict[str, str], listed: set[str]) -> None:
    table = created(properties)
    assert versions(table) == (1, 7)
    assert features(table) == (None, listed)


def test_c225_column_mapping_alone_is_reader_2_with_writer_features_only() -> None:
    table = created({"delta.columnMapping.mode": "name"})
    assert versions(table) == (2, 7)
    assert features(table) == (None, BASE | {"columnMapping"})


def test_c225_c230_reader_writer_features_are_in_both_lists_writer_features_in_one() -> None:
    table = created({"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"})
    assert versions(table) == (3, 7)
    assert features(table) == ({"columnMapping", "deletionVectors"}, BASE | {"columnMapping", "deletionVectors"})


def test_c222_c226_c230_every_feature_alone_makes_a_valid_protocol() -> None:
    for feature in all_features():
        made = with_features(None, [feature.name])
        if made.min_reader_version == 3:
            readers = {n for n in made.writer_features or () if _kind(n) is FeatureKind.READER_WRITER}
            assert made.reader_features == readers, feature.name
        assert (made.reader_features is None) == (made.min_reader_version < 3), feature.name
        assert (made.writer_features is None) == (made.min_writer_version < 7), feature.name
        if not feature.read_unsupported_reason:
            check_readable(declare(made))


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(("data_type", "feature"), [(TIMESTAMP_NTZ, "timestampNtz"), (VARIANT, "variantType")])
def test_c318_c320_columns_of_a_type_ask_for_its_feature(data_type: object, feature: str, nested: bool) -> None:
    inner = columns(x=data_type)  # type: ignore[arg-type]
    table = created(schema=columns(id=LONG, a=ArrayType(inner)) if nested else StructType((*PLAIN, *inner)))
    assert features(table) == ({feature}, BASE | {feature})


def test_not_null_columns_ask_for_invariants() -> None:
    required = StructType((StructField("id", LONG, nullable=False),))
    assert versions(created(schema=required)) == (1, 2)
    bare = created({"delta.ignoreProtocolDefaults": "true"}, schema=required)
    assert features(bare) == (None, {"invariants"})
    assert not new_table(required, declared=True).schema.fields[0].nullable
    assert new_table(required).schema.fields[0].nullable  # of rows from elsewhere, every column is nullable


def test_defaults_generated_and_identity_columns_ask_for_their_features() -> None:
    def with_metadata(**metadata: object) -> StructType:
        named = {key.replace("__", "."): value for key, value in metadata.items()}
        return StructType((StructField("id", LONG), StructField("x", LONG, metadata=named)))

    assert features(created(schema=with_metadata(CURRENT_DEFAULT="7")))[1] == BASE | {"allowColumnDefaults"}
    assert features(created(schema=with_metadata(delta__generationExpression="id + 1")))[1] == (
        BASE | {"generatedColumns"}
    )
    identity = {"delta__identity__start": 1, "delta__identity__step": 1, "delta__identity__allowExplicitInsert": False}
    assert features(created(schema=with_metadata(**identity)))[1] == BASE | {"identityColumns"}


def test_a_requested_preview_is_listed_by_its_own_name_and_counts_as_the_feature() -> None:
    preview = created({"delta.feature.typeWidening-preview": "supported"})
    assert features(preview)[0] == {"typeWidening-preview"}
    assert changed(preview, {"delta.enableTypeWidening": "true"}).protocol == preview.protocol


# ------------------------------------------------------------------------------------------------------ properties
def test_names_of_properties_are_stored_as_they_are_known() -> None:
    table = created({"DELTA.APPENDONLY": "true", "delta.enableChangeDataCapture": "true"})
    assert table.properties == {"delta.appendOnly": "true", "delta.enableChangeDataFeed": "true"}


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"delta.colummMapping.mode": "name"}, "Did you mean 'delta.columnMapping.mode'"),
        ({"delta.columnMapping.mode": "names"}, "not one of none, name, id"),
        ({"delta.feature.deletionVectors": "false"}, "only valid value is 'supported'"),
        ({"delta.logRetentionDuration": "interval 1 hour"}, "must not be shorter"),
    ],
)
def test_unknown_and_illegal_properties_are_refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        created(properties)


FORMATS = "delta.universalFormat.enabledFormats"
COMPATIBLE = {"delta.enableIcebergCompatV2": "true", FORMATS: "hudi,iceberg"}


@pytest.mark.parametrize("formats", ["foo", "Iceberg", "iceberg, hudi", "hudi,hudi", ","])
def test_unknown_universal_formats_are_refused(formats: str) -> None:
    with pytest.raises(InvalidOptionError, match="not a list of different formats of hudi and iceberg"):
        created({FORMATS: formats})


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({FORMATS: "iceberg"}, "iceberg, which requires Iceberg compatibility. Set delta.enableIcebergCompatV2"),
        ({FORMATS: "hudi", "delta.enableDeletionVectors": "true"}, "hudi, which does not allow deletion vectors"),
    ],
)
def test_universal_formats_require_what_their_metadata_can_say(properties: dict[str, str], message: str) -> None:
    for change in (lambda: created(properties), lambda: changed(created({}), properties)):
        with pytest.raises(InvalidOperationError, match=message) as raised:
            change()
        assert raised.value.error_class == "DELTA_UNIVERSAL_FORMAT_VIOLATION"
    theirs = declare(protocol(3, 7, ["deletionVectors"], ["deletionVectors"]), properties)
    assert changed(theirs, {**properties, "mine": "1"}).properties[FORMATS] == properties[FORMATS]
    assert created(COMPATIBLE).properties[FORMATS] == "hudi,iceberg"


def test_the_format_iceberg_goes_with_iceberg_compatibility() -> None:
    with pytest.warns(DeltaWarning, match="iceberg is removed"):
        after = changed(created(COMPATIBLE), {**COMPATIBLE, "delta.enableIcebergCompatV2": "false"})
    assert after.properties[FORMATS] == "hudi"


def test_properties_that_a_table_has_already_are_not_judged_again() -> None:
    other = {"delta.universalFormat.iceberg.atomicConversion.supported": "true", "delta.unheardOf": "1"}
    table = declare(protocol(1, 2), other)
    assert changed(table, {"mine": "1"}).properties == {**other, "mine": "1"}


@pytest.mark.parametrize(
    "name",
    [
        "delta.columnMapping.maxColumnId",
        "delta.inCommitTimestampEnablementVersion",
        "delta.rowTracking.materializedRowIdColumnName",
    ],
)
def test_c244_users_cannot_set_what_writers_keep(name: str) -> None:
    with pytest.raises(InvalidOptionError, match="maintained by writers") as raised:
        new_table(PLAIN, properties={name: "7"})
    assert raised.value.error_class == "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"


def test_session_defaults_hold_where_the_user_says_nothing() -> None:
    defaults = {"enableDeletionVectors": "true", "delta.appendOnly": "true", "minWriterVersion": "3"}
    assert default_properties({"DELTA.appendOnly": "false"}, defaults) == {
        "DELTA.appendOnly": "false",
        "delta.enableDeletionVectors": "true",
        "delta.minWriterVersion": "3",
    }
    table = new_table(PLAIN, properties={"delta.enableDeletionVectors": "false"}, defaults={"appendOnly": "true"})
    assert table.properties == {"delta.enableDeletionVectors": "false", "delta.appendOnly": "true"}
    assert versions(table) == (1, 2)


def test_session_defaults_of_unknown_properties_are_ignored_with_a_warning() -> None:
    """As in delta-spark, which says nothing: a session may be for other versions too."""
    setting = "spark.databricks.delta.properties.defaults"
    with pytest.warns(
        DeltaWarning, match=rf"{setting}\.apendOnly is ignored. .* Did you mean 'delta.appendOnly'"
    ) as found:
        table = new_table(PLAIN, defaults={"apendOnly": "true", "delta.checkpointInterval": "7"})
    assert len(found) == 1
    assert table.properties == {"delta.checkpointInterval": "7"}
    with pytest.raises(InvalidOptionError, match="apendOnly"):
        new_table(PLAIN, properties={"delta.apendOnly": "true"})
    for name, error_class in (
        ("appendOnly", "DELTA_ILLEGAL_OPTION"),
        ("delta.columnMapping.maxColumnId", "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"),
    ):
        short = name.removeprefix("delta.")
        with pytest.raises(InvalidOptionError, match=rf"The session setting {setting}\.{short} applies") as raised:
            new_table(PLAIN, defaults={name: "maybe"})
        assert raised.value.error_class == error_class


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("clustering", "clustering columns"),
        ("catalogManaged", "existing path"),
        ("noSuchFeature", "is unknown to this version"),
        ("geospatial", "not part of the published"),
    ],
)
def test_features_that_are_not_added_by_name(name: str, advice: str) -> None:
    with pytest.raises(InvalidOperationError, match=advice):
        check_listing(name)
    with pytest.raises(InvalidOperationError):
        new_table(PLAIN, properties={f"delta.feature.{name}": "supported"})


def test_a_feature_that_is_not_written_yet_makes_no_new_table() -> None:
    with pytest.raises(UnsupportedFeatureError):
        new_table(PLAIN, features=["redirectWriterOnly-preview"])


# --------------------------------------------------------------------------------------------------- existing tables
def test_c189_nothing_changes_where_nothing_is_asked() -> None:
    for before in (created(), created({"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"})):
        assert evolve(before, before.metadata) == before
        assert evolve(before, before.metadata).protocol is before.protocol


@pytest.mark.parametrize(
    ("before", "asked", "after"),
    [
        ((1, 2), (2, 5), (2, 5)),
        ((1, 2), (1, 3), (1, 3)),
        ((1, 2), (1, 1), (1, 2)),
        ((1, 2), (3, 7), (1, 2)),  # as delta-spark: versions (3, 7) name no feature
        ((1, 4), (1, 2), (1, 4)),
    ],
)
def test_c227_upgrading_versions_adds_what_they_imply_and_takes_nothing(
    before: tuple[int, int], asked: tuple[int, int], after: tuple[int, int]
) -> None:
    raised = with_versions(protocol(*before), *asked)
    assert (raised.min_reader_version, raised.min_writer_version) == after
    table = declare(protocol(*before))
    by_property = changed(table, {"delta.minReaderVersion": str(asked[0]), "delta.minWriterVersion": str(asked[1])})
    assert by_property.protocol == raised
    assert by_property.properties == {}


@pytest.mark.parametrize("asked", [(0, 2), (4, 7), (1, 8), (1, 0)])
def test_c226_versions_that_do_not_exist_are_refused(asked: tuple[int, int]) -> None:
    with pytest.raises(InvalidOperationError, match="no protocol"):
        with_versions(protocol(1, 2), *asked)


def test_c227_c228_a_legacy_table_lists_every_feature_of_its_versions_when_it_gets_lists() -> None:
    table = changed(declare(protocol(1, 4)), {"delta.enableDeletionVectors": "true"})
    implied = BASE | {"checkConstraints", "changeDataFeed", "generatedColumns"}
    assert features(table) == ({"deletionVectors"}, implied | {"deletionVectors"})


def test_c227_versions_of_a_table_with_lists_add_to_the_lists() -> None:
    table = created({"delta.enableDeletionVectors": "true"})
    raised = with_versions(table.protocol, 2, 5)
    assert raised.reader_features == {"deletionVectors", "columnMapping"}
    assert features_of(raised) == features_of(table.protocol) | implied_features(2, 5)


def test_c235_c237_readers_learn_of_column_mapping_when_it_is_enabled() -> None:
    numbered = created({"delta.minWriterVersion": "6"})  # as of identity columns: readers stay at version 1
    assert "columnMapping" in supported_features(numbered)  # by its writers alone
    assert mapping_mode(numbered) == "none"
    mapped = changed(numbered, {"delta.columnMapping.mode": "name"})
    assert versions(mapped) == (2, 6)
    assert mapping_mode(mapped) == "name"


def test_c229_a_protocol_never_loses_a_feature() -> None:
    rich = created({"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"})
    plain = {"delta.enableDeletionVectors": "false", "delta.enableChangeDataFeed": "false"}
    assert changed(rich, plain).protocol == rich.protocol
    assert evolve(rich, rich.metadata, protocol(1, 2)).protocol == rich.protocol


def test_a_given_protocol_is_the_least_that_the_table_has() -> None:
    cloned = evolve(None, created().metadata, protocol(3, 7, ["deletionVectors"], ["deletionVectors"]))
    assert features(cloned) == ({"deletionVectors"}, {"deletionVectors"})


def test_c235_the_example_of_equivalent_protocols_has_one_weakest_form() -> None:
    made = weakest_protocol({"columnMapping", "identityColumns"})
    assert made == protocol(2, 7, None, ["columnMapping", "identityColumns"])


def test_features_that_exclude_each_other() -> None:
    with pytest.raises(InvalidOperationError, match="cannot be combined"):
        created({"delta.enableIcebergCompatV1": "true", "delta.enableIcebergCompatV2": "true"})


def _kind(name: str) -> FeatureKind:
    feature = find_feature(name)
    assert feature is not None
    return feature.kind
