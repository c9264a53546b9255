"""Tests the package on other releases of Python than that of `make test`, each in a virtual environment of its own.

    test_pythons.py --pyspark "pyspark[connect]==4.3.0" [PYTHON ...]

A PYTHON is an interpreter, as `python3.13` or a path. By default all releases that the PATH has are tested. The tests
are those that need no Spark, and the smoke tests of Spark. Writes a line for each release.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = ROOT / ".cache" / "pythons"
MINORS = (11, 12, 13, 14)
SELECTIONS = (
    ("-m", "not spark and not connect and not cluster and not bare"),
    ("tests/spark", "-m", "smoke"),
)
_GROUPS = ("--group", "test", "--group", "peers", "--group", "lint")
_RELEASE = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"


def main() -> int:
    """Test each interpreter; 0 when all passed, 2 when there is none."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pyspark", required=True)
    parser.add_argument("pythons", nargs="*")
    options = parser.parse_args()
    wanted = options.pythons or [f"python3.{minor}" for minor in MINORS]
    found = {python: release for python in wanted if (release := release_of(python))}
    missing = [python for python in wanted if python not in found]
    if not found or (options.pythons and missing):
        sys.stderr.write(f"No Python that can make environments at {missing}: install it, or name one by its path.\n")
        return 2
    outcomes = {release: _test(release, python, options.pyspark) for python, release in found.items()}
    for release, failed in outcomes.items():
        sys.stdout.write(f"Python {release}: {'failed: ' + '; '.join(failed) if failed else 'passed'}\n")
    return 1 if any(outcomes.values()) else 0


def release_of(python: str) -> str | None:
    """The release of an interpreter, as `3.13`; None if it cannot be run, or cannot make environments."""
    if shutil.which(python) is None:
        return None
    done = subprocess.run([python, "-c", _RELEASE], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def _test(release: str, python: str, pyspark: str) -> list[str]:
    """Run the tests on one release, and return the selections that failed."""
    made = _environment(ENVIRONMENTS / release, python, pyspark)
    environment = {**os.environ, "PYSPARK_PYTHON": str(made), "PYSPARK_DRIVER_PYTHON": str(made)}
    failed = []
    for selection in SELECTIONS:
        sys.stdout.write(f"\n--- Python {release}: pytest {' '.join(selection)}\n")
        sys.stdout.flush()
        command = [str(made), "-m", "pytest", "-q", "-p", "no:cacheprovider", *selection]
        if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode != 0:
            failed.append(" ".join(selection))
    return failed


def _environment(folder: Path, python: str, pyspark: str) -> Path:
    """The interpreter of the virtual environment in a folder, with the package and what its tests need."""
    made = folder / "bin" / "python"
    if not made.exists():
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        _install(made, "--upgrade", "pip>=25.1")
    _install(made, "--editable", ".[cli,cloud,catalog,postgresql,server]", pyspark, *_GROUPS)
    return made


def _install(python: Path, *what: str) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what]
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main())
