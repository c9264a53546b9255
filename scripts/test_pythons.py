"""Tests the package on other releases of Python than that of `make test`, each in a virtual environment of its own.

    test_pythons.py --pyspark "pyspark[connect]==4.3.0" [PYTHON ...] [-- PYTEST-ARGUMENT ...]

A PYTHON is an interpreter, as `python3.13` or a path. By default all releases that the PATH has are tested, and the
others are named. The tests are those that need no Spark (`core`), and the smoke tests of Spark (`smoke`). They run as
the stages of `run_tests.py` do, and each has a line at the end with what pytest said last.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.run_tests import CORE, Stage, interrupt, report, run_all  # noqa: E402

ENVIRONMENTS = ".cache/pythons"
MINORS = (11, 12, 13, 14)
SELECTIONS = {"core": CORE, "smoke": ("tests/spark", "-m", "smoke")}
_GROUPS = ("--group", "test", "--group", "peers", "--group", "lint")
_RELEASE = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"


def main(arguments: list[str]) -> int:
    """Test each interpreter; 0 when all passed, 2 when one named is missing or none is found, 130 when interrupted."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser()
    parser.add_argument("--pyspark", required=True)
    parser.add_argument("pythons", nargs="*")
    options = parser.parse_args(arguments[:at])
    wanted = options.pythons or [f"python3.{minor}" for minor in MINORS]
    found = {python: release for python in wanted if (release := release_of(python))}
    missing = [python for python in wanted if python not in found]
    if not found or (options.pythons and missing):
        sys.stderr.write(
            f"No Python that can make environments: {', '.join(missing)}. Install it, or name one by its path.\n"
        )
        return 2
    signal.signal(signal.SIGTERM, interrupt)
    try:
        stages = [stage for python, release in found.items() for stage in _stages(release, python, options.pyspark)]
        outcomes = run_all(stages, lambda stage: _pytest(stage, arguments[at + 1 :]))
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted; the tests have been ended.\n")
        return 130
    sys.stdout.write(f"\n{report(outcomes)}")
    if missing:
        sys.stdout.write(f"Not on the PATH, or cannot make environments: {', '.join(missing)}\n")
    return 1 if any(outcome.code != 0 for outcome in outcomes) else 0


def release_of(python: str) -> str | None:
    """The release of an interpreter, as `3.13`; None if it cannot be run, or cannot make environments."""
    if shutil.which(python) is None:
        return None
    done = subprocess.run([python, "-c", _RELEASE], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def _stages(release: str, python: str, pyspark: str) -> list[Stage]:
    """The tests of one release, whose virtual environment is made."""
    folder = f"{ENVIRONMENTS}/{release}"
    _prepare(ROOT / folder, python, pyspark)
    return [Stage(f"{release} {name}", folder, selection) for name, selection in SELECTIONS.items()]


def _pytest(stage: Stage, extra: list[str]) -> list[str]:
    return [str(stage.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *stage.arguments, *extra]


def _prepare(folder: Path, python: str, pyspark: str) -> None:
    """Make the virtual environment in a folder, with the package and what its tests need."""
    made = folder / "bin" / "python"
    if not made.exists():
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        _install(made, "--upgrade", "pip>=25.1")
    _install(made, "--editable", ".[cli,cloud,catalog,postgresql,server]", pyspark, *_GROUPS)


def _install(python: Path, *what: str) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what]
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
