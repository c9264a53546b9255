"""The registry of table features: complete, in order of requirement, and one module each."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

from pyspark_delta import features
from pyspark_delta.features import all_features, find_feature


def test_each_module_declares_one_feature() -> None:
    modules = {info.name for info in pkgutil.iter_modules(features.__path__)} - {"support"}
    assert len(all_features()) == len(modules)
    assert {type(f).__module__.rpartition(".")[2] for f in all_features()} == modules


def test_names_are_unique() -> None:
    names = [name for f in all_features() for name in f.names]
    assert len(set(names)) == len(names)


def test_features_come_after_what_they_require() -> None:
    seen: set[str] = set()
    for feature in all_features():
        assert set(feature.requires) <= seen, feature.name
        seen.add(feature.name)


def test_required_and_excluded_features_are_known() -> None:
    for feature in all_features():
        for name in (*feature.requires, *feature.excludes):
            assert find_feature(name) is not None, f"{feature.name} names {name}"


@pytest.mark.parametrize(
    ("preview", "final"),
    [
        ("typeWidening-preview", "typeWidening"),
        ("variantType-preview", "variantType"),
        ("variantShredding-preview", "variantShredding"),
        ("collations-preview", "collations"),
        ("catalogOwned-preview", "catalogManaged"),
    ],
)
def test_preview_names_mean_the_final_feature(preview: str, final: str) -> None:
    found = find_feature(preview)
    assert found is not None
    assert found.name == final


def test_every_name_finds_its_feature() -> None:
    assert {name: find_feature(name) for f in all_features() for name in f.names} == {
        name: f for f in all_features() for name in f.names
    }


@pytest.mark.parametrize("name", ["noSuchFeature", "support", "v2_checkpoint", "V2Checkpoint", "../support", ""])
def test_unknown_names_are_not_found(name: str) -> None:
    assert find_feature(name) is None


def test_a_feature_is_found_without_importing_the_others() -> None:
    code = """
import sys
from pyspark_delta.features import find_feature
assert find_feature("v2Checkpoint").name == "v2Checkpoint"
print(sorted(name for name in sys.modules if name.startswith("pyspark_delta.features.")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['pyspark_delta.features.v2_checkpoint']"


def test_what_cannot_be_read_cannot_be_written() -> None:
    for feature in all_features():
        if feature.read_unsupported_reason:
            assert feature.write_unsupported_reason, feature.name
