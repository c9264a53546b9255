"""The shape of the source: layers, feature modules that stand alone, module sizes and names."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "pyspark_delta"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 450
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}


@dataclass(frozen=True)
class Source:
    """What a module says of itself: `imports` are those of functions too, each a module and the names taken from it."""

    has_docstring: bool
    classes: tuple[str, ...]
    imports: tuple[tuple[str, tuple[str, ...]], ...]


@cache
def _source(module: Path) -> Source:
    tree, classes, imports = ast.parse(module.read_text()), list[str](), list[tuple[str, tuple[str, ...]]]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            classes.append(node.name)
        elif isinstance(node, ast.Import):
            imports += [(alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports.append((node.module, tuple(alias.name for alias in node.names)))
    return Source(bool(ast.get_docstring(tree)), tuple(classes), tuple(imports))


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
    without = [str(m.relative_to(PACKAGE)) for m in MODULES if not _source(m).has_docstring]
    assert without == []


def test_modules_are_named_for_what_they_hold() -> None:
    assert [str(m.relative_to(PACKAGE)) for m in MODULES if m.stem in VAGUE_NAMES] == []


def test_classes_are_named_for_what_they_are() -> None:
    vague = [
        f"{module.relative_to(PACKAGE)}: {name}"
        for module in MODULES
        for name in _source(module).classes
        if name.endswith(("Manager", "Impl", "Helper", "Utils"))
    ]
    assert vague == []


def test_only_the_spark_package_imports_pyspark() -> None:
    offenders = {
        str(module.relative_to(PACKAGE)): name
        for module in MODULES
        if not module.is_relative_to(PACKAGE / "spark")
        for name in _run_time_imports(module)
        if name.partition(".")[0] in ("pyspark", "py4j")
    }
    assert offenders == {}


def test_no_module_imports_a_feature_by_name() -> None:
    features = {f"pyspark_delta.features.{m.stem}" for m in (PACKAGE / "features").glob("*.py")}
    features -= {"pyspark_delta.features.__init__", "pyspark_delta.features.support"}
    offenders = {str(m.relative_to(PACKAGE)): f for m in MODULES if (f := features & set(_run_time_imports(m)))}
    assert offenders == {}


def _name_of(module: Path) -> str:
    return ".".join(("pyspark_delta", *module.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


@cache
def _names() -> frozenset[str]:
    return frozenset(map(_name_of, MODULES))


def _all_imports(module: Path) -> Iterator[str]:
    """The modules that a file imports; a package is not counted where only a module of it is imported."""
    names = _names()
    for origin, taken in _source(module).imports:
        members = {f"{origin}.{name}" for name in taken}
        yield from members & names
        if members - names or not taken:
            yield origin


def _run_time_imports(module: Path) -> Iterator[str]:
    """All modules a file imports, those in functions too."""
    for origin, taken in _source(module).imports:
        yield origin
        yield from (f"{origin}.{name}" for name in taken)


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
