"""Importing the package: cheap, without side effects, and possible where PySpark is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_delta import Table

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


NOT_FOR_TABLES = {
    "pandas", "polars", "pyspark", "py4j", "sqlglot", "rich", "typer", "sqlalchemy", "httpx", "obstore", "asyncio",
}  # fmt: skip


def test_opening_a_table_loads_only_what_every_table_needs(tmp_path: Path) -> None:
    Table.create(tmp_path, "id BIGINT")
    code = f"import sys; from pyspark_delta import Table; Table.open({str(tmp_path)!r}); print(*sys.modules)"
    loaded = {name.partition(".")[0] for name in run(code).split()}
    assert loaded & NOT_FOR_TABLES == set()
    assert "pyspark_delta" in loaded


def test_the_command_line_starts_with_what_every_command_needs() -> None:
    loaded = {name.partition(".")[0] for name in run("import sys, pyspark_delta.cli.app; print(*sys.modules)").split()}
    assert loaded & NOT_FOR_TABLES == {"rich", "typer"}


def test_all_but_spark_can_be_imported_without_pyspark() -> None:
    outside = [
        ".".join(("pyspark_delta", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] != "spark" and path.stem != "__main__"
    ]
    code = f"{BLOCK_PYSPARK}\nimport importlib\nfor name in {outside!r}: importlib.import_module(name)\nprint('all')"
    assert run(code) == "all"


IS_CAUGHT = """
try:
    raise error
except PySparkException as caught:
    assert caught is error
else:
    raise AssertionError
assert (error.getCondition(), error.getErrorClass()) == ("DELTA_TABLE_NOT_FOUND",) * 2
assert (error.getSqlState(), error.getMessageParameters()) == ("42P01", {"location": "/t"})
assert error.getMessage() == str(error) and str(error).startswith("[DELTA_TABLE_NOT_FOUND] There is no Delta table")
assert (error.getQueryContext(), error.getBreakingChangeInfo()) == ([], None)
import pickle
copy = pickle.loads(pickle.dumps(error))
assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
print(len(pickle.dumps(error)) < 400)
"""


@pytest.mark.parametrize(
    "code",
    [
        "from pyspark.errors import PySparkException; from pyspark_delta import TableNotFoundError",
        "from pyspark_delta import TableNotFoundError; from pyspark.errors import PySparkException",
    ],
    ids=["PySpark first", "PySpark last"],
)
def test_errors_are_caught_as_pyspark_exceptions(code: str) -> None:
    assert run(f"{code}\nerror = TableNotFoundError('/t')\n{IS_CAUGHT}") == "True"


def test_errors_are_a_subclass_of_pyspark_exceptions_once_the_spark_package_is_imported() -> None:
    code = """
import sys
from pyspark_delta import DeltaError, TableNotFoundError
assert "pyspark" not in sys.modules
from pyspark_delta import enable
from pyspark.errors import PySparkException
print(issubclass(TableNotFoundError, PySparkException))
"""
    assert run(code) == "True"


def test_an_error_pickled_without_pyspark_is_caught_where_it_is_imported() -> None:
    code = f"{BLOCK_PYSPARK}import pickle, pyspark_delta as d; print(pickle.dumps(d.TableNotFoundError('/t')).hex())"
    load = "from pyspark.errors import PySparkException\nimport pickle"
    assert run(f"{load}\nerror = pickle.loads(bytes.fromhex('{run(code)}'))\n{IS_CAUGHT}") == "True"


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
