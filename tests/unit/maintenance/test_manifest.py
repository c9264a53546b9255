"""Symlink manifests: of all partitions, after commits, and for which tables they are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_delta.errors import DeltaWarning, InvalidOperationError, InvalidOptionError
from pyspark_delta.table import Table

KEPT = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}


def manifests(path: Path) -> dict[str, set[str]]:
    """The files of each manifest, by its path."""
    root = path / "_symlink_format_manifest"
    return {str(file.relative_to(root)): set(file.read_text().splitlines()) for file in root.rglob("manifest")}


def live(path: Path) -> dict[str, set[str]]:
    """The same from the log: one manifest for each directory of data files."""
    found: dict[str, set[str]] = {}
    for file in Table.open(path).scan(columns=[]).plan.files["path"].to_pylist():
        directory, _, name = file.rpartition("/")
        directory = directory.replace("%20", " ").replace("%25", "%")
        key = f"{directory}/manifest" if directory else "manifest"
        found.setdefault(key, set()).add(f"file:{path}/{directory}/{name}" if directory else f"file:{path}/{name}")
    return found


def test_a_manifest_lists_the_files_of_each_partition(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id BIGINT, p STRING, q INT", partition_by=["p", "q"])
    table.append(
        [{"id": n, "p": p, "q": q} for n, (p, q) in enumerate([("a b", 1), ("c/%", 2), (None, 1), ("c/%", 3)])]
    )
    table.append({"id": [9], "p": ["a b"], "q": [1]})
    plan = table.generate(plan=True)
    assert (plan.facts()["manifests"], plan.facts()["files"]) == (4, 5)
    assert manifests(tmp_path) == {}
    assert (table.generate().manifests, table.version) == (4, 2)
    assert manifests(tmp_path) == live(tmp_path)
    assert len(manifests(tmp_path)["p=a b/q=1/manifest"]) == 2
    table.delete("q = 2")
    assert table.generate("SYMLINK_FORMAT_MANIFEST").manifests_deleted == 1
    assert manifests(tmp_path) == live(tmp_path)
    table.delete()
    assert table.generate().manifests_deleted == 3
    assert manifests(tmp_path) == {}


def test_a_table_without_partitions_has_one_manifest(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id BIGINT")
    table.generate()
    assert manifests(tmp_path) == {"manifest": set()}
    table.append({"id": [1]})
    table.generate()
    assert manifests(tmp_path) == live(tmp_path)


@pytest.mark.parametrize("partition_by", [["p"], []])
def test_commits_refresh_the_manifests_of_their_partitions(tmp_path: Path, partition_by: list[str]) -> None:
    table = Table.create(tmp_path, "id BIGINT, p STRING", partition_by=partition_by, properties=KEPT)
    table.append({"id": [1, 2, 3], "p": ["a", "b", None]})
    assert manifests(tmp_path) == live(tmp_path)
    table.update({"id": "id + 10"}, "p = 'a'")
    assert manifests(tmp_path) == live(tmp_path)
    table.delete("p = 'b'")
    assert manifests(tmp_path) == live(tmp_path)
    table.overwrite({"id": [5], "p": ["z"]})
    assert manifests(tmp_path) == live(tmp_path)


@pytest.mark.parametrize(
    ("properties", "error_class"),
    [
        ({"delta.columnMapping.mode": "name"}, "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING"),
        ({"delta.enableDeletionVectors": "true"}, "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS"),
    ],
)
def test_tables_that_engines_would_misread_are_refused(
    tmp_path: Path, properties: dict[str, str], error_class: str
) -> None:
    table = Table.create(tmp_path, "id BIGINT", properties=properties)
    table.append({"id": [1, 2]})
    table.delete("id = 1")
    with pytest.raises(InvalidOperationError) as caught:
        table.generate()
    assert caught.value.error_class == error_class
    table.alter().set_properties(KEPT)
    with pytest.warns(DeltaWarning, match="its manifest could not be written"):
        table.append({"id": [3]})
    assert manifests(tmp_path) == {}
    with pytest.raises(InvalidOptionError) as unknown:
        table.generate("hudi")
    assert unknown.value.error_class == "DELTA_UNSUPPORTED_GENERATE_MODE"
