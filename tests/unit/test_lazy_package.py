"""Importing the package is cheap and cannot fail: Spark imports it to look for data sources."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pyspark_delta

SOURCE = Path(pyspark_delta.__file__).parents[1]


def run(code: str, **environment: str) -> str:
    """Run a program in a fresh interpreter and return what it prints."""
    full = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]), **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=full, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# A finder that makes a package look absent.
WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(f"No module named '{{name}}'", name=name.partition(".")[0])
sys.meta_path.insert(0, Absent())
"""


def test_importing_loads_neither_pyarrow_nor_pyspark() -> None:
    code = "import sys, pyspark_delta, pyspark_deltapy; print({'pyarrow', 'pyspark', 'numpy'} & set(sys.modules))"
    assert run(code) == "set()"


def test_the_data_source_module_does_not_load_pyarrow() -> None:
    code = "import sys; from pyspark_delta import DefaultSource; print('pyarrow' in sys.modules)"
    assert run(WITHOUT.format(names=["pyarrow"]) + code) == "False"


def test_without_pyspark_the_import_works_and_the_source_is_absent() -> None:
    code = "import pyspark_delta as d, pyspark_deltapy as p; print([hasattr(m, 'DefaultSource') for m in (d, p)])"
    assert run(WITHOUT.format(names=["pyspark"]) + code) == "[False, False]"


def test_without_pyspark_the_names_that_need_it_say_how_to_install_it() -> None:
    code = "import pyspark_delta\ntry: pyspark_delta.enable\nexcept Exception as e: print(type(e).__name__, e)"
    said = run(WITHOUT.format(names=["pyspark"]) + code)
    assert said.startswith("MissingDependencyError")
    assert "pip install 'pyspark-delta[spark]'" in said


@pytest.mark.parametrize(("environment", "name"), [({}, "delta"), ({"PYSPARK_DELTA_SHORT_NAME": "lake"}, "lake")])
def test_the_short_name_follows_the_environment(environment: dict[str, str], name: str) -> None:
    code = (
        "import pyspark_delta, pyspark_deltapy as p; print(pyspark_delta.DefaultSource.name(), p.DefaultSource.name())"
    )
    assert run(code, **environment) == f"{name} deltapy"


def test_an_empty_short_name_claims_none() -> None:
    code = "import pyspark_delta as d, pyspark_deltapy as p; print(hasattr(d, 'DefaultSource'), p.DefaultSource.name())"
    assert run(code, PYSPARK_DELTA_SHORT_NAME="") == "False deltapy"


def test_unknown_names_are_attribute_errors() -> None:
    assert not hasattr(pyspark_delta, "no_such_name")
    with pytest.raises(ImportError):
        from pyspark_delta import no_such_name  # noqa: F401


def test_dir_lists_the_public_names() -> None:
    assert set(pyspark_delta.__all__) <= set(dir(pyspark_delta))
