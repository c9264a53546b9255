"""Checklist areas PRO, FEA and VER: versions, feature lists, and what stops a reader or a writer."""

from __future__ import annotations

import pytest
from tests.declarations import declare, protocol, with_features

from pyspark_delta.errors import DeltaError, InvalidTableError, UnsupportedFeatureError, UnsupportedTableError
from pyspark_delta.features import active_features, all_features, find_feature, supported_features
from pyspark_delta.features.support import check_readable, check_writable
from pyspark_delta.protocol.feature import FeatureKind


@pytest.mark.parametrize(
    "broken",
    [
        protocol(2, 5, readers=["columnMapping"]),
        protocol(1, 2, writers=["appendOnly"]),
        protocol(1, 7, readers=["deletionVectors"], writers=["deletionVectors"]),
        protocol(0, 2),
        protocol(1, 0),
    ],
    ids=str,
)
def test_c002_c184_feature_lists_exist_only_at_reader_3_and_writer_7(broken: object) -> None:
    with pytest.raises(InvalidTableError):
        check_readable(declare(broken), "/t")  # type: ignore[arg-type]


@pytest.mark.parametrize("legacy", [(1, 1), (1, 2), (1, 3), (1, 6), (2, 2), (2, 5), (2, 6)])
def test_c187_c190_legacy_versions_are_read_without_feature_lists(legacy: tuple[int, int]) -> None:
    check_readable(declare(protocol(*legacy)))


def test_c187_plain_table_is_readable_and_writable() -> None:
    plain = declare(protocol(1, 2))
    check_readable(plain)
    check_writable(plain)
    assert supported_features(plain) == {"appendOnly", "invariants"}
    assert active_features(plain) == frozenset()


@pytest.mark.parametrize("beyond", [protocol(4, 7, ["x"], ["x"]), protocol(9, 9), protocol(3, 8, [], [])], ids=str)
def test_c185_reader_version_beyond_support_names_it_and_says_upgrade(beyond: object) -> None:
    with pytest.raises(UnsupportedTableError, match="Upgrade pyspark-delta") as raised:
        check_readable(declare(beyond), "/t")  # type: ignore[arg-type]
    assert f"reader version {beyond.min_reader_version}" in raised.value.message  # type: ignore[attr-defined]
    assert "'/t'" in raised.value.message
    assert raised.value.error_class == "DELTA_INVALID_PROTOCOL_VERSION"


def test_c185_writer_version_beyond_support_stops_writing_only() -> None:
    newer = declare(protocol(1, 8))
    check_readable(newer)
    with pytest.raises(UnsupportedTableError, match=r"writer version 8.*Upgrade pyspark-delta"):
        check_writable(newer)


def test_c188_both_protocols_of_the_example_support_the_same_features() -> None:
    at_two = declare(protocol(2, 7, None, ["columnMapping", "identityColumns"]))
    at_three = declare(protocol(3, 7, ["columnMapping"], ["columnMapping", "identityColumns"]))
    for equivalent in (at_two, at_three):
        check_readable(equivalent)
        assert supported_features(equivalent) == {"columnMapping", "identityColumns"}


def test_c191_c223_unknown_reader_feature_is_refused_by_name() -> None:
    table = declare(
        protocol(3, 7, ["deletionVectors", "newOne", "otherOne"], ["deletionVectors", "newOne", "otherOne"])
    )
    with pytest.raises(UnsupportedFeatureError) as raised:
        check_readable(table, "/t")
    assert raised.value.features == ("newOne", "otherOne")
    assert raised.value.operation == "read"
    assert "upgrade" in raised.value.message


def test_c191_c224_unknown_writer_feature_stops_writing_only() -> None:
    table = declare(protocol(3, 7, [], ["appendOnly", "newOne"]))
    check_readable(table)
    with pytest.raises(UnsupportedFeatureError) as raised:
        check_writable(table)
    assert raised.value.features == ("newOne",)
    assert raised.value.error_class == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"


@pytest.mark.parametrize(
    "broken",
    [protocol(3, 7, None, []), protocol(3, 7, [], None), protocol(1, 7, None, None)],
    ids=["reader-list", "writer-list", "writer-list-at-reader-1"],
)
def test_c222_lists_must_be_present_at_3_and_7(broken: object) -> None:
    with pytest.raises(InvalidTableError, match="is absent"):
        check_readable(declare(broken))  # type: ignore[arg-type]


def test_c222_lists_may_be_empty() -> None:
    check_readable(declare(protocol(3, 7, [], [])))
    check_writable(declare(protocol(3, 7, [], [])))
    check_writable(declare(protocol(1, 7, None, [])))


@pytest.mark.parametrize("writer", [1, 2, 5, 6])
def test_c226_c403_reader_3_needs_writer_7(writer: int) -> None:
    with pytest.raises(InvalidTableError, match="needs writer version 7"):
        check_readable(declare(protocol(3, writer, [], None)))


def test_c226_c230_reader_feature_that_writers_do_not_list_stops_writing() -> None:
    one_sided = declare(protocol(3, 7, ["deletionVectors"], []))
    check_readable(one_sided)
    with pytest.raises(InvalidTableError, match="deletionVectors"):
        check_writable(one_sided)


def test_c231_supported_differs_from_active() -> None:
    listed = with_features("appendOnly")
    assert supported_features(listed) == {"appendOnly"}
    assert active_features(listed) == frozenset()
    enabled = with_features("appendOnly", properties={"delta.appendOnly": "true"})
    assert active_features(enabled) == {"appendOnly"}
    check_writable(enabled)  # rows may be added


def test_c231_a_property_without_the_feature_activates_nothing() -> None:
    assert active_features(declare(protocol(1, 1), {"delta.appendOnly": "true"})) == frozenset()


WRITER_ONLY = (
    *("appendOnly", "invariants", "checkConstraints", "generatedColumns", "allowColumnDefaults", "changeDataFeed"),
    *("identityColumns", "rowTracking", "domainMetadata", "icebergCompatV1", "icebergCompatV2", "clustering"),
)


def test_c232_writer_only_features() -> None:
    for name in WRITER_ONLY:
        assert _kind(name) is FeatureKind.WRITER, name


def test_c233_reader_writer_features() -> None:
    for name in ("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"):
        assert _kind(name) is FeatureKind.READER_WRITER, name


def test_c234_features_that_the_name_table_omits_are_known() -> None:
    assert _kind("inCommitTimestamp") is FeatureKind.WRITER
    assert _kind("catalogManaged") is FeatureKind.READER_WRITER
    assert _kind("icebergWriterCompatV1") is FeatureKind.WRITER


IMPLIED = {
    1: frozenset(),
    2: frozenset(["appendOnly", "invariants"]),
    3: frozenset(["checkConstraints"]),
    4: frozenset(["changeDataFeed", "generatedColumns"]),
    5: frozenset(["columnMapping"]),
    6: frozenset(["identityColumns"]),
}


@pytest.mark.parametrize("writer", [1, 2, 3, 4, 5, 6])
def test_c235_c402_writer_versions_imply_features_cumulatively(writer: int) -> None:
    expected = frozenset().union(*(IMPLIED[version] for version in range(1, writer + 1)))
    assert supported_features(declare(protocol(2 if writer >= 5 else 1, writer))) == expected


def test_c235_reader_2_implies_column_mapping() -> None:
    assert "columnMapping" in supported_features(declare(protocol(2, 7, None, [])))
    assert "columnMapping" not in supported_features(declare(protocol(1, 4)))


def test_c235_c403_reader_2_is_column_mapping() -> None:
    implied = {f.name for f in all_features() if f.legacy_reader_version is not None}
    assert implied == {"columnMapping"}


def test_the_golden_protocol_at_reader_5_is_refused_with_version_and_feature() -> None:
    names = ["columnMapping", "blahabl", "deletionVectors"]
    with pytest.raises(DeltaError) as raised:
        check_readable(declare(protocol(5, 7, names, names)))
    assert "reader version 5" in raised.value.message
    assert "blahabl" in raised.value.message


def _kind(name: str) -> FeatureKind:
    feature = find_feature(name)
    assert feature is not None, name
    return feature.kind


def test_c251_deletion_vectors_need_both_lists_at_the_feature_versions() -> None:
    feature = find_feature("deletionVectors")
    assert feature is not None
    assert feature.kind is FeatureKind.READER_WRITER
    assert "deletionVectors" not in supported_features(declare(protocol(2, 6)))  # no legacy version implies it
    listed = declare(protocol(3, 7, ["deletionVectors"], ["deletionVectors"]))
    check_readable(listed)
    assert "deletionVectors" in supported_features(listed)
    with pytest.raises(InvalidTableError, match="writerFeatures"):
        check_writable(declare(protocol(3, 7, ["deletionVectors"], [])))
