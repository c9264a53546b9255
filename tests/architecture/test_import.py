"""Importing the package: cheap, without side effects, and possible where PySpark is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "pyspark_delta"
HEAVY = ("pyarrow", "numpy", "pyspark", "py4j", "sqlglot", "obstore", "pandas", "typer", "rich", "asyncio", "logging")

# Makes every import of PySpark fail as if it were not installed.
BLOCK_PYSPARK = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in ('pyspark', 'py4j'):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.partition('.')[0])
sys.meta_path.insert(0, Absent())
"""


def run(code: str) -> str:
    """Run code in a fresh interpreter where warnings are errors; its standard output."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_loads_nothing_heavy() -> None:
    code = "import sys; before = set(sys.modules); import pyspark_delta; print(*(set(sys.modules) - before))"
    loaded = {name.partition(".")[0] for name in run(code).split()}
    assert loaded & set(HEAVY) == set()
    assert loaded, "the import must have loaded something"


def test_all_but_spark_can_be_imported_without_pyspark() -> None:
    outside = [
        ".".join(("pyspark_delta", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] != "spark" and path.stem != "__main__"
    ]
    code = f"{BLOCK_PYSPARK}\nimport importlib\nfor name in {outside!r}: importlib.import_module(name)\nprint('all')"
    assert run(code) == "all"


def test_spark_names_say_what_to_install_without_pyspark() -> None:
    code = f"""{BLOCK_PYSPARK}
import pyspark_delta
from pyspark_delta.errors import MissingDependencyError
for name in ("DeltaTable", "enable"):
    try:
        getattr(pyspark_delta, name)
    except MissingDependencyError as error:
        assert "pip install" in str(error), error
    else:
        raise AssertionError(name)
print(pyspark_delta.Table.__name__)
"""
    assert run(code) == "Table"
