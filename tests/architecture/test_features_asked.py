"""Table features are asked for in one way: `features.is_supported` and `is_active`, by a member of `Feature`.

Anything else forgets something: legacy versions, preview names, or that a property counts only with its feature.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyspark_delta.features import Feature, all_features, find_feature
from pyspark_delta.protocol import properties
from pyspark_delta.protocol.properties import TableProperty

PACKAGE = Path(__file__).parents[2] / "src" / "pyspark_delta"
NAMES = {name for feature in all_features() for name in feature.names}
GATES = {
    constant: value.name
    for constant, value in vars(properties).items()
    if isinstance(value, TableProperty)
    and (constant.startswith("ENABLE_ICEBERG") or value.name in {f"delta.{gate}" for gate in (
        "appendOnly", "checkpointPolicy", "columnMapping.mode", "enableChangeDataFeed", "enableDeletionVectors",
        "enableInCommitTimestamps", "enableRowTracking", "enableTypeWidening", "enableVariantShredding",
    )})
}  # fmt: skip

# Members of JSON objects of the log and of the checkpoint schema that happen to have the name of a feature.
JSON_MEMBERS = {"domainMetadata", "inCommitTimestamp", "v2Checkpoint"}
JSON_MODULES = ("actions/", "commit/contents.py", "log/", "transaction/commit_info.py", "transaction/winner.py")
JSON_MODULES += ("transaction/version_checksum.py", "maintenance/checking/checkpoints.py")
JSON_MODULES += ("maintenance/checking/commit_contents.py",)
# Below `features`: one question each about column mapping and managed tables, and the words of a message.
BELOW = {"protocol/configuration.py", "protocol/iceberg_writers.py"}
# Where features are declared, and where protocols change feature by feature.
PROTOCOL_CHANGES = {"protocol/feature.py", "transaction/metadata_conflicts.py"}
# What says how a table is made, and never asks: contract suites that ship with the package.
EXEMPT = ("features/", "testing/")

MODULES = sorted(
    m for m in PACKAGE.rglob("*.py") if not m.relative_to(PACKAGE).as_posix().startswith(EXEMPT)
)  # fmt: skip


def offences(source: str, where: str) -> Iterator[str]:
    """What a module says of features in another way."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr="supports" | "listed_name")):
                if where not in PROTOCOL_CHANGES:
                    yield f"line {node.lineno}: asks a feature by its name"
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="of")) if name in GATES:
                yield f"line {node.lineno}: reads {name}, which counts only with its feature"
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str() as text), *_]) if (
                text in GATES.values()
            ):
                yield f"line {node.lineno}: reads '{text}', which counts only with its feature"
            case ast.Constant(value=str() as text) if text in NAMES and where not in BELOW:
                if text not in JSON_MEMBERS or not where.startswith(JSON_MODULES):
                    yield f"line {node.lineno}: names the feature '{text}', which Feature or find_feature knows"


def test_no_module_asks_a_feature_in_another_way() -> None:
    names = {module.relative_to(PACKAGE).as_posix(): module for module in MODULES}
    assert {name: said for name, m in names.items() if (said := list(offences(m.read_text(), name)))} == {}


@pytest.mark.parametrize(
    "source",
    [
        'configuration.supports("x")',
        "feature.listed_name(configuration)",
        "ENABLE_ROW_TRACKING.of(properties)",
        "CHECKPOINT_POLICY.of(properties)",
        'properties.get("delta.enableInCommitTimestamps", "")',
        'protocol.writer_features and "deletionVectors" in protocol.writer_features',
        'features=("clustering",)',
        '"typeWidening-preview"',
        '"inCommitTimestamp"',
    ],
)
def test_other_ways_are_found(source: str) -> None:
    assert len(list(offences(source, "ddl/types.py"))) == 1


def test_the_properties_that_turn_features_on_are_known() -> None:
    assert len(GATES) == 14
    assert {value for value in GATES.values() if "iceberg" in value.lower()} != set()


def test_every_member_is_the_final_name_of_a_feature() -> None:
    for member in Feature:
        found = find_feature(member)
        assert found is not None, member
        assert found.name == member.value
