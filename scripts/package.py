"""Builds the sdist and the wheel, checks what they hold, and uses the wheel in clean environments, one for each extra.

    package.py                         the wheel without an extra, then all extras but those that bring Spark on top
    package.py --every --record        also each extra by itself; writes docs/developers/packaging.md

The wheel is built from the sdist, so that the sdist is complete. Environments are made with `pip install`, as in the
README. Limits of size and import are in this file: raise one with the change that needs it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
PAGE = ROOT / "docs" / "developers" / "packaging.md"
SOURCES = ("src/pyspark_delta", "src/pyspark_deltapy")
IN_SDIST = ("README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", ".gitignore")

WHEEL_BYTES = 2_500_000
INSTALLED_BYTES = 9_000_000  # of the package itself, without what it requires
MODULES = {"import pyspark_delta": 20, "from pyspark_delta import Table": 900}  # with those of Python and Arrow
SECONDS = {
    "import pyspark_delta": 0.15,
    "from pyspark_delta import Table": 3.0,
}  # of one processor; far above what is usual

LIGHT = ("cli", "cloud", "polars", "catalog", "postgresql", "server")
FIRST = """
import sys, tempfile
from pyspark_delta import Table
with tempfile.TemporaryDirectory() as folder:
    table = Table.create(folder + "/t", "id BIGINT, name STRING")
    table.append({"id": [1, 2], "name": ["a", "b"]})
    assert table.scan(where="id > 1").to_arrow().to_pylist() == [{"id": 2, "name": "b"}]
assert not {"pyspark", "pandas", "obstore", "sqlalchemy"} & set(sys.modules), "an import of an extra without need"
"""
SPARK = """
import tempfile
from pyspark.sql import SparkSession
from pyspark_delta import enable
with tempfile.TemporaryDirectory() as folder:
    builder = SparkSession.builder.config("spark.ui.enabled", "false")
    spark = enable(builder.{master}("local[1]").getOrCreate())
    spark.range(10).write.format("delta").save(folder + "/t")
    assert spark.read.format("delta").load(folder + "/t").where("id > 6").count() == 3
    spark.stop()
"""
PIP_OPTIONS = ("--quiet", "--disable-pip-version-check", "--no-compile")
# For each extra: code that needs it. A command line runs as `python -m pyspark_delta`.
USES = {
    "": FIRST,
    "cli": "import sys; sys.argv = ['pyspark-delta', 'info', '--help']; from pyspark_delta.cli import main; main()",
    "cloud": (
        "from pyspark_delta.storage import store_for\n"
        "assert 'ObjectStorage' in type(store_for('s3://bucket/t', {'aws_region': 'eu-west-1'})).__name__"
    ),
    "polars": FIRST.replace(
        '.to_arrow().to_pylist() == [{"id": 2, "name": "b"}]', ".to_polars().collect().height == 1"
    ),
    "catalog": (
        "import os, tempfile, pyspark_delta\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    catalog = pyspark_delta.connect_catalog('sqlite:///' + os.path.join(folder, 'catalog.db'))\n"
        "    catalog.create_schema('sales')\n"
        "    pyspark_delta.disconnect_catalog()"
    ),
    "postgresql": "import psycopg, sqlalchemy; sqlalchemy.create_engine('postgresql+psycopg://host/database')",
    "server": "import pyspark_delta.server.run, uvicorn",
    "spark": SPARK.format(master="master"),
    "connect": SPARK.format(master="remote"),
}


class Failure(Exception):
    """What is wrong with the package, as a sentence."""


@dataclass(frozen=True)
class Trial:
    """A clean environment: its extras, and what it took. Sizes are bytes, times are seconds."""

    extras: str
    install: float
    size: int
    first_use: float


def main(arguments: list[str]) -> int:
    """Build, check and try; 0 if everything holds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--every", action="store_true", help="also each extra by itself, with Spark too")
    parser.add_argument("--record", action="store_true", help="write docs/developers/packaging.md")
    options = parser.parse_args(arguments)
    try:
        wheel, sdist = build(DIST)
        check_content(wheel, sdist)
        with tempfile.TemporaryDirectory() as folder:
            trials = list(try_extras(wheel, Path(folder), USES if options.every else []))
    except Failure as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    if options.record:
        PAGE.write_text(render(wheel, sdist, trials), encoding="utf-8")
    return 0


# ------------------------------------------------------------------------------------------------ build and content
def build(target: Path) -> tuple[Path, Path]:
    """Build into an empty folder, and return the wheel and the sdist."""
    shutil.rmtree(target, ignore_errors=True)
    run([sys.executable, "-m", "build", "--outdir", str(target), str(ROOT)])
    (wheel,), (sdist,) = target.glob("*.whl"), target.glob("*.tar.gz")
    return wheel, sdist


def check_content(wheel: Path, sdist: Path) -> None:
    """The archives hold the tracked files of the package, and nothing else. Raises Failure."""
    tracked = tracked_files()
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if not name.endswith("/")}
    information = {name for name in held if name.partition("/")[0].endswith(".dist-info")}
    require_equal("wheel", {name.removeprefix("src/") for name in tracked}, held - information)
    ends = {name.partition("/")[2] for name in information}
    require_equal("wheel", {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}, ends)
    with tarfile.open(sdist) as archive:
        held = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    require_equal("sdist", {*tracked, *IN_SDIST, "PKG-INFO"}, held)
    if wheel.stat().st_size > WHEEL_BYTES:
        raise Failure(f"The wheel has {wheel.stat().st_size:,} bytes, more than the limit of {WHEEL_BYTES:,}.")


def tracked_files() -> set[str]:
    """The files of the package that git tracks; what lies beside them must not be packed."""
    return set(run(["git", "ls-files", *SOURCES]).split())


def require_equal(archive: str, expected: set[str], found: set[str]) -> None:
    """Raise Failure naming what is missing and what is too much."""
    missing, extra = sorted(expected - found), sorted(found - expected)
    if missing or extra:
        raise Failure(f"The {archive} lacks {missing} and holds besides {extra}.")


# ------------------------------------------------------------------------------------------------------ environments
def try_extras(wheel: Path, folder: Path, each: Iterable[str]) -> Iterator[Trial]:
    """Install and use the wheel without an extra, with the light ones on top, and with each of the given ones alone."""
    yield try_extra(wheel, folder / "light", "")
    check_limits(folder / "light" / "bin" / "python")
    yield try_extra(wheel, folder / "light", ",".join(LIGHT))
    for extra in each:
        if extra:
            yield try_extra(wheel, folder / extra, extra)
            shutil.rmtree(folder / extra)


def try_extra(wheel: Path, environment: Path, extra: str) -> Trial:
    """Make the environment if there is none, install the wheel with extras (separated by commas), and use each."""
    python = environment / "bin" / "python"
    start = time.monotonic()
    if not environment.exists():
        run([sys.executable, "-m", "venv", str(environment)])
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    run([str(python), "-m", "pip", "install", *PIP_OPTIONS, wanted])
    installed = time.monotonic()
    for name in extra.split(","):
        run([str(python), "-c", USES[name]], clean=True)
    used = time.monotonic()
    run([str(python), "-m", "pip", "check", "--disable-pip-version-check"])
    trial = Trial(extra, installed - start, size_of(environment), used - installed)
    sys.stdout.write(
        f"[{extra or 'no extra'}] installed in {trial.install:.1f} s, {trial.size / 1e6:.0f} MB; "
        f"first use {trial.first_use:.1f} s\n"
    )
    return trial


def check_limits(python: Path) -> None:
    """The size of the package, and what its imports take: the number of modules, and the best time of three."""
    site = Path(run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip())
    size = sum(size_of(site / Path(name).name) for name in SOURCES)
    if size > INSTALLED_BYTES:
        raise Failure(f"The installed package has {size:,} bytes, more than the limit of {INSTALLED_BYTES:,}.")
    for statement in MODULES:
        found = [measure_import(python, statement) for _ in range(3)]
        seconds, modules = min(found)
        sys.stdout.write(f"{statement}: {seconds * 1000:.0f} ms, {modules} modules\n")
        if modules > MODULES[statement]:
            raise Failure(f"`{statement}` loads {modules} modules, more than the limit of {MODULES[statement]}.")
        if seconds > SECONDS[statement]:
            raise Failure(f"`{statement}` takes {seconds:.2f} s, more than the limit of {SECONDS[statement]} s.")


def measure_import(python: Path, statement: str) -> tuple[float, int]:
    """The seconds of a processor that an import takes in a fresh process, and the number of modules that it loads."""
    code = (
        "import json, sys, time; before = len(sys.modules); start = time.process_time()\n"
        f"{statement}\n"
        "print(json.dumps([time.process_time() - start, len(sys.modules) - before]))"
    )
    seconds, modules = json.loads(run([str(python), "-c", code], clean=True))
    return float(seconds), int(modules)


def size_of(path: Path) -> int:
    """Return the bytes of the files below a path; compiled modules and targets of links are not counted."""
    return sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir() and file.suffix != ".pyc")


def run(command: list[str], *, clean: bool = False) -> str:
    """Run a command and return its output; `clean` hides this checkout from it. Raises Failure with its last lines."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYSPARK_PYTHON")}
    where = tempfile.gettempdir() if clean else str(ROOT)
    done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise Failure(f"{' '.join(command[:6])} ... failed with {done.returncode}:\n{last}")
    return done.stdout


# ------------------------------------------------------------------------------------------------------------- page
def render(wheel: Path, sdist: Path, trials: list[Trial]) -> str:
    """Return the page of what was measured."""
    lines = [
        "# Packaging",
        "",
        "`make package` builds the sdist and the wheel, checks what they hold, installs the wheel with each extra in",
        "an environment of its own, uses it, and writes this page. `scripts/package.py` has the limits.",
        "",
        f"The wheel has {wheel.stat().st_size / 1e6:.1f} MB, the sdist {sdist.stat().st_size / 1e6:.1f} MB. Times",
        "depend on the machine and its network; sizes are those of environments, without compiled modules.",
        "",
        "| Extras | Install (s) | Size (MB) | First use (s) |",
        "|---|---|---|---|",
    ]
    for trial in trials:
        name = ", ".join(f"`{extra}`" for extra in trial.extras.split(",")) if trial.extras else "none"
        lines.append(f"| {name} | {trial.install:.0f} | {trial.size / 1e6:.0f} | {trial.first_use:.1f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
