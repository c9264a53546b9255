"""Checklist areas APP, INV, CHK, GEN, DEF, IDN, VPC, CLU, IC1, IC2, IWC: when a feature is supported and active."""

from __future__ import annotations

from typing import Any

import pytest
from tests.declarations import declare, field, protocol, with_features

from pyspark_delta.errors import (
    InvalidOperationError,
    InvalidTableError,
    UnsupportedFeatureError,
    UnsupportedTableError,
)
from pyspark_delta.features import active_features, supported_features
from pyspark_delta.features.support import check_readable, check_writable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.rows import ComputedColumn, ComputedKind
from pyspark_delta.transaction.row_rules import check_declared, row_rules


def active_when_listed_or_legacy(
    name: str, legacy_writer: int | None, properties: dict[str, str] | None = None, fields: tuple[Any, ...] = ()
) -> None:
    """The metadata make the feature active where the protocol supports it, and nowhere else."""
    assert name in active_features(with_features(name, properties=properties, fields=fields))
    assert name not in active_features(with_features(name))
    assert name not in active_features(declare(protocol(3, 7, [], []), properties, fields))
    for writer in range(1, 7):
        legacy = declare(protocol(1, writer), properties, fields)
        assert (name in active_features(legacy)) == (legacy_writer is not None and writer >= legacy_writer), writer


def refused(table: TableConfiguration, name: str) -> None:
    """Reading is allowed, writing is refused by the name of the feature."""
    check_readable(table)
    with pytest.raises(UnsupportedFeatureError, match=name) as raised:
        check_writable(table, "/t")
    assert name in raised.value.features


def test_c375_append_only_from_writer_2_or_listed() -> None:
    active_when_listed_or_legacy("appendOnly", 2, {"delta.appendOnly": "true"})
    assert active_features(with_features("appendOnly", properties={"delta.appendOnly": "false"})) == frozenset()


INVARIANT = field("x", "integer", delta__invariants='{"expression":{"expression":"x > 3"}}')


def test_c379_invariants_from_writer_2_or_listed() -> None:
    active_when_listed_or_legacy("invariants", 2, fields=(INVARIANT,))


def checks(table: TableConfiguration) -> list[tuple[str, str]]:
    """Name and condition."""
    check_writable(table)
    return [(check.name, check.condition) for check in row_rules(table).checks]


def test_c380_c381_c382_the_invariant_of_the_example_is_json_or_plain_sql() -> None:
    assert checks(declare(protocol(1, 2), fields=[INVARIANT])) == [("x", "x > 3")]
    raw = field("x", "integer", delta__invariants="x > 3")
    assert checks(declare(protocol(1, 2), fields=[raw])) == [("x", "x > 3")]
    assert checks(declare(protocol(3, 7, [], []), fields=[INVARIANT])) == []


def test_c379_invariant_of_a_nested_field_counts() -> None:
    inner = field("x", "integer", delta__invariants='{"expression":{"expression":"s.x > 3"}}')
    nested = field("s", {"type": "struct", "fields": [inner]})
    assert checks(declare(protocol(1, 2), fields=[nested])) == [("s.x", "s.x > 3")]
    inside_array = field("a", {"type": "array", "elementType": nested["type"], "containsNull": True})
    with pytest.raises(UnsupportedTableError, match="'x' inside an array or map has an invariant"):
        row_rules(declare(protocol(1, 2), fields=[inside_array]))


BIRTH_DATE = {"delta.constraints.birthDateCheck": "birthDate > '1900-01-01'"}


def test_c383_check_constraints_from_writer_3_or_listed() -> None:
    active_when_listed_or_legacy("checkConstraints", 3, BIRTH_DATE)


def test_c384_c388_a_constraint_is_a_property_below_its_prefix() -> None:
    table = declare(protocol(1, 3), BIRTH_DATE, [field("birthDate", "date")])
    assert checks(table) == [("birthDateCheck", "birthDate > '1900-01-01'")]
    assert checks(declare(protocol(1, 3), {"delta.constraint": "not one"})) == []


GENERATED = field("day", "date", delta__generationExpression="CAST(ts AS DATE)")


def test_c389_generated_columns_from_writer_4_or_listed() -> None:
    active_when_listed_or_legacy("generatedColumns", 4, fields=(GENERATED,))
    table = declare(protocol(1, 4), fields=[field("ts", "timestamp"), GENERATED])
    check_writable(table)
    assert row_rules(table).computed == (ComputedColumn("day", ComputedKind.GENERATED, "CAST(ts AS DATE)"),)


DEFAULT = field("c", "integer", CURRENT_DEFAULT="42")


def test_c391_column_defaults_only_where_listed() -> None:
    active_when_listed_or_legacy("allowColumnDefaults", None, fields=(DEFAULT,))
    table = with_features("allowColumnDefaults", fields=[DEFAULT])
    check_writable(table)
    assert row_rules(table).computed == (ComputedColumn("c", ComputedKind.DEFAULT, "42"),)


def test_c394_column_defaults_do_not_concern_readers() -> None:
    table = with_features("allowColumnDefaults", fields=[field(), DEFAULT])
    check_readable(table)
    assert table.schema.fields[1].metadata["CURRENT_DEFAULT"] == "42"


IDENTITY_KEYS = {
    "delta.identity.start": 1,
    "delta.identity.step": 2,
    "delta.identity.highWaterMark": 7,
    "delta.identity.allowExplicitInsert": False,
}


def test_c395_identity_columns_at_writer_6_or_listed() -> None:
    column = {**field(), "metadata": IDENTITY_KEYS}
    active_when_listed_or_legacy("identityColumns", 6, fields=(column,))
    table = declare(protocol(1, 6), fields=[column])
    check_writable(table)
    assert row_rules(table).computed == (ComputedColumn("id", ComputedKind.IDENTITY_ALWAYS, start=9, step=2),)


@pytest.mark.parametrize(
    ("start", "step", "mark", "expected"),
    [(1, 2, None, 1), (1, 2, 7, 9), (1, 2, 8, 9), (1, 2, -5, 1), (5, -3, None, 5), (5, -3, 2, -1), (5, -3, 0, -1)],
)
def test_c399_the_next_number_is_a_multiple_of_the_step_from_the_start_beyond_the_mark(
    start: int, step: int, mark: int | None, expected: int
) -> None:
    keys = {"delta.identity.start": start, "delta.identity.step": step, "delta.identity.allowExplicitInsert": True}
    marked = keys if mark is None else {**keys, "delta.identity.highWaterMark": mark}
    [column] = row_rules(declare(protocol(1, 6), fields=[{**field(), "metadata": marked}])).computed
    assert column == ComputedColumn("id", ComputedKind.IDENTITY_BY_DEFAULT, start=expected, step=step)


@pytest.mark.parametrize("broken", [{"delta.identity.step": 0}, {"delta.identity.start": "1"}])
def test_c395_an_identity_column_that_cannot_count(broken: dict[str, Any]) -> None:
    column = {**field(), "metadata": {**IDENTITY_KEYS, **broken}}
    with pytest.raises(InvalidTableError, match="identity column 'id'"):
        row_rules(declare(protocol(1, 6), fields=[column]))


@pytest.mark.parametrize("key", IDENTITY_KEYS)
def test_c313_c395_c397_any_key_of_an_identity_column_makes_it_one(key: str) -> None:
    column = {**field(), "metadata": {key: IDENTITY_KEYS[key]}}
    assert active_features(with_features("identityColumns", fields=[column])) == {"identityColumns"}


def test_c343_c345_vacuum_protocol_check_is_recognised_and_asks_nothing() -> None:
    table = with_features("vacuumProtocolCheck")
    check_readable(table)
    assert active_features(table) == {"vacuumProtocolCheck"}


def test_c346_ordinary_commits_are_not_affected_by_vacuum_protocol_check() -> None:
    check_writable(with_features("vacuumProtocolCheck"))


def test_c347_clustering_needs_domain_metadata() -> None:
    together = with_features("clustering", "domainMetadata")
    check_readable(together)
    assert active_features(together) == {"clustering", "domainMetadata"}
    check_writable(together)
    check_readable(with_features("clustering"))  # readers have nothing to do with it


@pytest.mark.parametrize(
    ("row", "name", "key"),
    [
        ("C283", "icebergCompatV1", "delta.enableIcebergCompatV1"),
        ("C291", "icebergCompatV2", "delta.enableIcebergCompatV2"),
        ("C302", "icebergWriterCompatV1", "delta.enableIcebergWriterCompatV1"),
    ],
)
def test_c283_c291_c302_iceberg_features_are_active_by_their_property(row: str, name: str, key: str) -> None:
    names = ("columnMapping", "icebergCompatV2", name)
    mapped = {"delta.columnMapping.mode": "id"}
    assert name not in active_features(with_features(*names, properties=mapped)), row
    active = with_features(*names, properties={**mapped, key: "true"})
    assert name in active_features(active), row
    check_writable(active)
    assert name not in active_features(declare(protocol(2, 6), {key: "true"})), row


def test_c283_c291_column_mapping_may_come_from_reader_2() -> None:
    table = declare(protocol(2, 7, None, ["icebergCompatV1", "columnMapping"]))
    check_readable(table)
    check_writable(table)
    assert {"icebergCompatV1", "columnMapping"} <= supported_features(table)


def test_c283_compatibility_without_column_mapping_contradicts_itself() -> None:
    with pytest.raises(InvalidTableError, match="needs 'columnMapping'"):
        check_writable(declare(protocol(1, 7, None, ["icebergCompatV1"])))


def test_c302_writer_compatibility_needs_iceberg_compat_v2() -> None:
    with pytest.raises(InvalidTableError, match="needs 'icebergCompatV2'"):
        check_writable(with_features("columnMapping", "icebergWriterCompatV1"))


def test_c317_an_upgraded_legacy_table_lists_its_features_without_using_them() -> None:
    names = ("appendOnly", "invariants", "columnMapping", "icebergCompatV2", "icebergWriterCompatV1")
    table = with_features(*names)
    assert supported_features(table) == set(names)
    assert active_features(table) == frozenset()
    check_writable(table)


@pytest.mark.parametrize(
    ("row", "feature", "properties", "fields"),
    [
        ("C310", "invariants", {}, (INVARIANT,)),
        ("C311", "changeDataFeed", {"delta.enableChangeDataFeed": "true"}, ()),
        ("C312", "checkConstraints", BIRTH_DATE, ()),
        ("C314", "generatedColumns", {}, (GENERATED,)),
        ("C315", "rowTracking", {"delta.enableRowTracking": "true"}, ()),
    ],
)
def test_c310_c311_c312_c314_c315_inactive_means_without_this(
    row: str, feature: str, properties: dict[str, str], fields: tuple[Any, ...]
) -> None:
    assert feature not in active_features(with_features(feature)), row
    assert feature in active_features(with_features(feature, properties=properties, fields=fields)), row


@pytest.mark.parametrize(
    ("feature", "properties", "metadata", "message"),
    [
        ("checkConstraints", {"delta.constraints.c": "{}"}, {}, "CHECK constraint 'c'.*property 'delta.constraints.c'"),
        ("invariants", {}, {"delta__invariants": "{}"}, "invariant of the column 'n'"),
        ("generatedColumns", {}, {"delta__generationExpression": "{}"}, "generated column 'n'"),
        ("allowColumnDefaults", {}, {"CURRENT_DEFAULT": "{}"}, "default of the column 'n'.*dropDefault"),
    ],
)
def test_text_that_runs_code_is_neither_evaluated_nor_declared(
    feature: str, properties: dict[str, str], metadata: dict[str, str], message: str
) -> None:
    """The text comes from the table, so it can be anything."""

    def table(text: str) -> TableConfiguration:
        n = field("n", "string", **{key: value.format(text) for key, value in metadata.items()})
        configuration = {key: value.format(text) for key, value in properties.items()}
        return declare(protocol(3, 7, [], [feature]), configuration, [n, field("m", "string")])

    hostile, harmless = table("java_method('java.lang.System', 'load', '/x.so')"), table("'a' = 'b'")
    with pytest.raises(InvalidOperationError, match=message) as error:
        row_rules(hostile)
    assert "uses the function 'java_method'" in str(error.value)
    with pytest.raises(InvalidOperationError, match="java_method"):
        check_declared(hostile, harmless)
    with pytest.raises(InvalidOperationError, match="java_method"):
        check_declared(hostile, None)
    check_declared(hostile, hostile)  # another change of the table, such as dropping one of two constraints
    assert row_rules(harmless)


def test_a_length_in_the_declared_type_is_a_number() -> None:
    """The text of the type becomes a condition."""
    metadata = {"__CHAR_VARCHAR_TYPE_STRING": "varchar('1 OR java_method(1)')"}
    column = {"name": "n", "type": "string", "nullable": True, "metadata": metadata}
    assert not row_rules(declare(protocol(1, 2), fields=[column])).checks
