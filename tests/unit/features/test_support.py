"""The support check where the checklist is silent: what the first writer may do, and advice in refusals."""

from __future__ import annotations

import pytest
from tests.declarations import declare, field, protocol, with_features

from pyspark_delta.errors import InvalidTableError, UnsupportedFeatureError
from pyspark_delta.features.support import check_readable, check_writable


@pytest.mark.parametrize(
    ("feature", "properties"),
    [
        ("appendOnly", {"delta.appendOnly": "true"}),
        ("changeDataFeed", {"delta.enableChangeDataFeed": "true"}),
        ("deletionVectors", {"delta.enableDeletionVectors": "true"}),
        ("typeWidening", {"delta.enableTypeWidening": "true"}),
        ("checkpointProtection", {"delta.requireCheckpointProtectionBeforeVersion": "5"}),
        ("domainMetadata", {}),
        ("columnMapping", {}),
        ("columnMapping", {"delta.columnMapping.mode": "name"}),
        ("variantShredding-preview", {"delta.enableVariantShredding": "true"}),
        ("inCommitTimestamp", {"delta.enableInCommitTimestamps": "true"}),
        ("v2Checkpoint", {"delta.checkpointPolicy": "v2"}),
        ("timestampNtz", {}),
        ("materializePartitionColumns", {}),
    ],
)
def test_features_that_ask_nothing_of_an_append(feature: str, properties: dict[str, str]) -> None:
    check_writable(with_features(feature, properties=properties))


@pytest.mark.parametrize(
    ("feature", "properties"),
    [
        ("redirectWriterOnly-preview", {}),
        ("coordinatedCommits-preview", {}),
    ],
)
def test_features_that_the_first_writer_refuses(feature: str, properties: dict[str, str]) -> None:
    table = with_features(feature, "domainMetadata", properties=properties)
    check_readable(table)
    with pytest.raises(UnsupportedFeatureError, match=feature) as raised:
        check_writable(table, "/t")
    assert raised.value.features == (feature,)
    assert raised.value.operation == "write"


@pytest.mark.parametrize(("feature", "data_type"), [("timestampNtz", "timestamp_ntz"), ("variantType", "variant")])
def test_column_types_that_are_written(feature: str, data_type: str) -> None:
    nested = {"type": "array", "elementType": data_type, "containsNull": True}
    for declared in (data_type, nested):
        check_writable(with_features(feature, fields=[field("x", declared)]))


def test_a_final_feature_needs_what_it_requires_and_a_preview_may_do_without() -> None:
    with pytest.raises(InvalidTableError, match="needs 'variantType'"):
        check_writable(with_features("variantShredding"))
    check_writable(with_features("variantShredding", "variantType"))
    check_writable(declare(protocol(3, 7, ["variantShredding-preview"], ["variantShredding-preview"])))


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("geospatial", "engine that wrote"),
        ("timestampNanos", "nanosecond"),
        ("adaptiveMetadata-preview", "manifests"),
        ("redirectReaderWriter-preview", "Open that table"),
    ],
)
def test_known_features_that_cannot_be_read_come_with_advice(name: str, advice: str) -> None:
    table = declare(protocol(3, 7, [name], [name]))
    with pytest.raises(UnsupportedFeatureError, match=advice) as raised:
        check_readable(table, "/t")
    assert raised.value.features == (name,)


def test_a_reader_writer_feature_that_only_writers_list_is_still_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="geospatial"):
        check_readable(declare(protocol(3, 7, [], ["geospatial"])))


def test_reading_does_not_look_at_the_schema() -> None:
    listed = protocol(3, 7, ["geospatial"], ["geospatial"])
    with pytest.raises(UnsupportedFeatureError, match="geospatial"):
        check_readable(declare(listed, fields=[field("shape", "geometry(OGC:CRS84)")]))


def test_empty_lists_of_a_checkpoint_mean_absent_ones() -> None:
    check_readable(declare(protocol(1, 2, [], [])))
    check_writable(declare(protocol(1, 2, [], [])))


def test_all_obstacles_are_named_at_once() -> None:
    table = declare(protocol(3, 7, ["x", "geospatial", "y"], ["x", "geospatial", "y"]))
    with pytest.raises(UnsupportedFeatureError) as raised:
        check_readable(table)
    assert raised.value.features == ("geospatial", "x", "y")
