"""The shape of the source: layers, feature modules that stand alone, module sizes and names."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "pyspark_delta"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 450
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}


def test_layers_hold() -> None:
    command = Path(sys.executable).with_name("lint-imports")
    assert command.exists(), "import-linter is not installed: `make setup`"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [str(command), "--no-cache"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_modules_import_each_other_in_a_circle() -> None:
    # Deferred imports and those for type checkers count: a circle that they hold open is still a circle.
    names = {_name_of(module): module for module in MODULES}
    imported = {name: set(_all_imports(module)) & names.keys() - {name} for name, module in names.items()}
    TopologicalSorter(imported).prepare()  # raises CycleError, which names the circle


def test_no_module_outgrows_its_idea() -> None:
    too_long = {str(m.relative_to(PACKAGE)): n for m in MODULES if (n := len(m.read_text().splitlines())) > MAX_LINES}
    assert too_long == {}


def test_every_module_opens_with_a_sentence() -> None:
    without = [str(m.relative_to(PACKAGE)) for m in MODULES if not ast.get_docstring(ast.parse(m.read_text()))]
    assert without == []


def test_modules_are_named_for_what_they_hold() -> None:
    assert [str(m.relative_to(PACKAGE)) for m in MODULES if m.stem in VAGUE_NAMES] == []


def test_classes_are_named_for_what_they_are() -> None:
    vague = [
        f"{module.relative_to(PACKAGE)}: {node.name}"
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.ClassDef) and node.name.endswith(("Manager", "Impl", "Helper", "Utils"))
    ]
    assert vague == []


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(PACKAGE)))
def test_only_the_spark_package_imports_pyspark(module: Path) -> None:
    if module.is_relative_to(PACKAGE / "spark"):
        return
    found = {name for name in _run_time_imports(module) if name.partition(".")[0] in ("pyspark", "py4j")}
    assert found <= _looked_for_in_the_environment(module)


def test_no_module_imports_a_feature_by_name() -> None:
    features = {f"pyspark_delta.features.{m.stem}" for m in (PACKAGE / "features").glob("*.py")}
    features -= {"pyspark_delta.features.__init__", "pyspark_delta.features.support"}
    offenders = {str(m.relative_to(PACKAGE)): f for m in MODULES if (f := features & set(_run_time_imports(m)))}
    assert offenders == {}


def _looked_for_in_the_environment(module: Path) -> set[str]:
    """The doctor looks whether PySpark is there; nothing else may."""
    return {"pyspark"} if module == PACKAGE / "cli" / "doctor.py" else set()


def _name_of(module: Path) -> str:
    return ".".join(("pyspark_delta", *module.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def _all_imports(module: Path) -> Iterator[str]:
    """The modules that a file imports; a package is not counted where only a module of it is imported."""
    names = {_name_of(other) for other in MODULES}
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from members & names
            if members - names:
                yield node.module


def _run_time_imports(module: Path) -> Iterator[str]:
    """All modules a file imports, those in functions too."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_rules_of_a_table_are_read_through_the_check() -> None:
    """Features say what the table stores; `row_rules` lets through what is safe to evaluate."""
    calls = re.compile(r"\.(?:row_checks|computed_columns)\(")
    callers = {str(m.relative_to(PACKAGE)) for m in MODULES if calls.search(m.read_text())}
    assert callers == {"transaction/row_rules.py"}


def test_merge_is_read_in_a_dozen_modules_that_the_documents_name() -> None:
    named = ["spark/api/merge_builder.py"]
    for folder, pattern in (
        ("statements/merge", "[a-z]*.py"),
        ("engines/arrow", "*.py"),
        ("spark/engine/dml", "merge*.py"),
    ):
        found = sorted(module.name for module in (PACKAGE / folder).glob(pattern))
        merging = ("merge.py", "bound_merge.py", "key_search.py")
        named += [f"{folder}/{name}" for name in found if folder != "engines/arrow" or name in merging]
    assert len(named) <= 12
    text = (ROOT / "docs" / "architecture.md").read_text()
    [paragraph] = re.findall(r"To read MERGE, begin with .*?\n\n", text, re.DOTALL)
    assert [name for name in named if name.rpartition("/")[2] not in paragraph] == []
