"""What is public: pinned member by member, and the only thing that documents and examples use."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import pyspark_delta
from pyspark_delta.inspection import TableDiff
from pyspark_delta.maintenance.checking import CheckResult, Finding
from pyspark_delta.maintenance.checking.repair import RepairPlan, RepairResult, RepairStep
from pyspark_delta.maintenance.clone import ClonePlan, CloneResult
from pyspark_delta.maintenance.convert import ConvertPlan
from pyspark_delta.maintenance.drop_feature import DropFeaturePlan, DropFeatureResult
from pyspark_delta.maintenance.health import HealthReport, HealthTopic
from pyspark_delta.maintenance.layout.quality import ClusteringQuality
from pyspark_delta.maintenance.manifest import ManifestPlan, ManifestResult
from pyspark_delta.maintenance.policy import MaintenancePlan, MaintenanceReport
from pyspark_delta.maintenance.restore import RestorePlan
from pyspark_delta.maintenance.rewriting.layout_metrics import LayoutMetrics
from pyspark_delta.maintenance.rewriting.metrics import RewriteResult
from pyspark_delta.maintenance.rewriting.plan import RewritePlan
from pyspark_delta.maintenance.statistics import StatisticsPlan, StatisticsResult
from pyspark_delta.maintenance.vacuum import VacuumPlan, VacuumResult
from pyspark_delta.spark.api.alter import DeltaTableAlter
from pyspark_delta.spark.api.merge_builder import DeltaMergeBuilder
from pyspark_delta.spark.api.optimize_builder import DeltaOptimizeBuilder, DeltaReorgBuilder
from pyspark_delta.spark.api.transaction import DeltaTransaction
from pyspark_delta.statements.plan import ChangePlan
from pyspark_delta.table import (
    ChangeResult,
    Changes,
    Inspection,
    Scan,
    StreamBatch,
    TableAlter,
    TableMerge,
    TableStream,
)

ROOT = Path(__file__).parents[2]
SURFACE = Path(__file__).with_name("public_surface.txt")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAMS = sorted((ROOT / "examples").rglob("*.py"))
WITH_ALL_MODULES = "pyspark_delta.testing"
# Public methods return these: their members are public, their modules are not.
RETURNED = (
    ChangePlan,
    ChangeResult,
    Changes,
    ClusteringQuality,
    ClonePlan,
    CloneResult,
    ConvertPlan,
    CheckResult,
    DeltaMergeBuilder,
    DeltaOptimizeBuilder,
    DeltaReorgBuilder,
    DeltaTableAlter,
    DeltaTransaction,
    DropFeaturePlan,
    DropFeatureResult,
    Inspection,
    MaintenancePlan,
    MaintenanceReport,
    LayoutMetrics,
    ManifestPlan,
    ManifestResult,
    Finding,
    HealthReport,
    HealthTopic,
    RepairPlan,
    RepairResult,
    RepairStep,
    RestorePlan,
    RewritePlan,
    RewriteResult,
    Scan,
    StatisticsPlan,
    StatisticsResult,
    StreamBatch,
    TableAlter,
    TableDiff,
    TableMerge,
    TableStream,
    VacuumPlan,
    VacuumResult,
)
# class methods make the others
CONSTRUCTED = (pyspark_delta.Budget, pyspark_delta.Cluster, pyspark_delta.IdentityGenerator, pyspark_delta.Sort)
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_public_surface_is_pinned() -> None:
    """A line that is gone or changed breaks users. If it is intended, change the line and note it in CHANGELOG.md."""
    assert list(surface()) == SURFACE.read_text().splitlines()


def test_modules_that_are_public_exist() -> None:
    for module in pyspark_delta.PUBLIC_MODULES:
        assert import_module(module).__doc__


@pytest.mark.parametrize("source", [*PAGES, *PROGRAMS], ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_and_examples_use_public_names_alone(source: Path) -> None:
    text = source.read_text()
    for code in [text] if source.suffix == ".py" else _BLOCK.findall(text):
        assert list(private_uses(ast.parse(code))) == []


def test_private_uses_are_found() -> None:
    private = (
        "from pyspark_delta.log.replay import LogReplay",
        "import pyspark_delta.catalogs",
        "from pyspark_delta import log",
        "from pyspark_delta.catalog.contract import _quoted",
        "import pyspark_delta; pyspark_delta.log",
        "table._snapshot",
    )
    for code in private:
        assert list(private_uses(ast.parse(code))), code
    public = (
        "from pyspark_delta import Table, errors",
        "from pyspark_delta.testing.catalog_contract import CatalogContract",
        "import pyspark_delta.errors; pyspark_delta.connect_catalog; table.__len__",
    )
    for code in public:
        assert list(private_uses(ast.parse(code))) == [], code


def surface() -> Iterator[str]:
    """Yield a line for each public name: for functions with parameters, for classes with their public members."""
    named = {name: getattr(pyspark_delta, name) for name in set(pyspark_delta.__all__) - {"__version__", "errors"}}
    for name, value in sorted((named | {cls.__name__: cls for cls in RETURNED}).items()):
        if inspect.isclass(value) and not issubclass(value, BaseException):
            yield from (f"{name}.{member}" for member in members(value))
        else:
            yield name if inspect.isclass(value) else f"{name}{parameters(value)}"
    yield from pyspark_delta.PUBLIC_MODULES


def members(cls: type) -> Iterator[str]:
    """Yield each method, property and field that the class or a base of this package defines."""
    own = [base for base in cls.__mro__ if base.__module__.startswith("pyspark_delta")]
    fields = set(getattr(cls, "__dataclass_fields__", ()))
    names = {name for base in own for name in {*vars(base), *fields} if not name.startswith("_")}
    for name in sorted(names | {"__init__"} if cls in CONSTRUCTED else names):
        member = inspect.getattr_static(cls, name, None)
        if isinstance(member, classmethod | staticmethod):
            member = member.__func__
        is_value = isinstance(member, property | cached_property) or not callable(member)
        yield name if is_value else f"{name}{parameters(member)}"


def parameters(function: Any) -> str:
    """Return the parameters without types; every default is shown as `...`."""
    signature = inspect.signature(function)
    shown = [
        parameter.replace(
            annotation=parameter.empty, default=parameter.default if parameter.default is parameter.empty else ...
        )
        for parameter in signature.parameters.values()
    ]
    return str(inspect.Signature(shown)).replace("Ellipsis", "...")


def private_uses(tree: ast.AST) -> Iterator[str]:
    """Yield what a program imports or names that is not public."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names if is_ours(alias.name) and not is_public(alias.name))
            case ast.ImportFrom(str() as module, names) if is_ours(module):
                yield from (f"{module}.{alias.name}" for alias in names if not is_member(module, alias.name))
            case ast.Attribute(ast.Name("pyspark_delta"), name) if not is_member("pyspark_delta", name):
                yield f"pyspark_delta.{name}"
            case ast.Attribute(_, name) if name.startswith("_") and not name.endswith("__"):
                yield name


def is_ours(module: str) -> bool:
    return module.partition(".")[0] == "pyspark_delta"


def is_public(module: str) -> bool:
    return module in pyspark_delta.PUBLIC_MODULES or module.startswith(f"{WITH_ALL_MODULES}.")


def is_member(module: str, name: str) -> bool:
    if module == "pyspark_delta":
        return name in pyspark_delta.__all__
    return is_public(module) and not name.startswith("_")
