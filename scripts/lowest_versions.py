"""Runs a chosen part of the tests with the lowest versions that pyproject.toml allows, to prove its lower bounds.

    lowest_versions.py [FOLDER] [-- PYTEST-ARGUMENT ...]

Makes a virtual environment in FOLDER (default: build/lowest), with newest versions of the tools for tests only.
PySpark is left out: the stages of older versions run with it. Needs `uv`, of the dependency group `package`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
WITHOUT = ("all", "spark", "connect")
TESTS = (
    "tests/bare",
    "tests/unit/catalog",
    "tests/unit/cli",
    "tests/unit/data",
    "tests/unit/interpreter",
    "tests/unit/storage",
    "tests/unit/table",
    "tests/server/test_delta_api.py",
    "tests/server/test_tables_over_http.py",
    "tests/contracts/test_sqlite_catalog.py",
)
# What newer versions do better, or what these tests need of them for themselves.
LEFT_OUT = {
    "tests/unit/cli/test_cli_doctor.py": "it expects PySpark",
    "tests/unit/data/test_legacy_calendar.py": "pyarrow before 23 cannot write the times of its files",
    "tests/unit/data/test_polars_decoder.py": "texts come from Polars with pyarrow 24; before, pyarrow decodes them",
    "tests/unit/data/test_reader.py::test_dictionary_large_and_view_columns_of_arrow_writers": "it writes such a file",
    "tests/unit/data/test_row_group_copy.py::test_references_to_places_in_the_old_file_are_dropped": "so does it",
    "tests/unit/data/test_writer.py::test_null_inside_collections_counts_where_the_collection_is_there": (
        "pyarrow refuses to write a null list over values"
    ),
    "tests/unit/table/test_handing_over.py::TestArrow::test_a_requested_schema_casts_the_columns": (
        "pyarrow does not reorder the fields of a struct"
    ),
}
TOOLS = ("pytest", "pytest-xdist")


def main(arguments: list[str]) -> int:
    """Make the environment and run the tests; the exit code of pytest."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    folder = Path(arguments[0]) if at else ROOT / "build" / "lowest"
    python = prepare(folder)
    command = [str(python), "-m", "pytest", *TESTS, "-n", "2", "-q", "-m", "not spark and not connect"]
    for name in LEFT_OUT:
        command += ["--deselect" if "::" in name else "--ignore", name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run([*command, *arguments[at + 1 :]], cwd=ROOT, env=environment, check=False).returncode


def prepare(folder: Path) -> Path:
    """Make the environment with the lowest versions, and return its interpreter."""
    uv = str(Path(sys.executable).with_name("uv"))
    folder.mkdir(parents=True, exist_ok=True)
    lowest, python = folder / "lowest.txt", folder / "venv" / "bin" / "python"
    names = extras()
    chosen = [argument for name in names for argument in ("--extra", name)]
    compiling = [uv, "pip", "compile", "--quiet", "--resolution", "lowest-direct", "--python", sys.executable]
    subprocess.run([*compiling, "pyproject.toml", *chosen, "-o", str(lowest)], cwd=ROOT, check=True)
    subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder / "venv")], check=True)
    package = f"{ROOT}[{','.join(names)}]"
    installing = [uv, "pip", "install", "--quiet", "--python", str(python), "--constraints", str(lowest)]
    subprocess.run([*installing, "--editable", package, "--group", f"{ROOT}/pyproject.toml:bare", *TOOLS], check=True)
    return python


def extras() -> list[str]:
    """The extras that do not bring PySpark."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [name for name in project["optional-dependencies"] if name not in WITHOUT]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
