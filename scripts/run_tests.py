"""Runs the test suite in its stages, each a pytest process of its own, and repeats their closing lines at the end.

Classic Spark, Spark Connect and another PySpark version cannot share a process: a process has one kind of session.

    run_tests.py [STAGE ...] [-- PYTEST-ARGUMENT ...]
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "build" / "test-reports"
ANSI = re.compile(r"\x1b\[[0-9;]*m")
CLOSING = re.compile(r"=* ?\d+ (passed|failed|skipped|error|errors|xfailed|deselected)\b.* in [\d.]+s")


@dataclass(frozen=True)
class Stage:
    """One pytest process: the virtual environment it runs in and what it selects."""

    name: str
    environment: str
    arguments: tuple[str, ...]

    @property
    def python(self) -> Path:
        """The interpreter; that of this process where the environment has not been made."""
        made = ROOT / self.environment / "bin" / "python"
        return made if made.exists() else Path(sys.executable)


STAGES = (
    Stage("core", ".venv", ("-n", "2", "--dist", "worksteal", "-m", "not spark and not connect")),
    Stage("classic", ".venv", ("-m", "spark and not connect")),
    Stage("connect", ".venv", ("-m", "connect")),
    Stage("oldest-pyspark", ".venv-4.2", ("tests/spark", "-m", "smoke")),
)


def main(arguments: list[str]) -> int:
    """Run the named stages, all by default; 0 when every one passed."""
    names, extra = _split(arguments)
    unknown = set(names) - {stage.name for stage in STAGES}
    if unknown:
        sys.stderr.write(f"Unknown stages {sorted(unknown)}; there are {[stage.name for stage in STAGES]}.\n")
        return 2
    REPORTS.mkdir(parents=True, exist_ok=True)
    for old in REPORTS.glob("*.xml"):
        old.unlink()
    outcomes = [run(stage, extra) for stage in STAGES if not names or stage.name in names]
    sys.stdout.write("\n")
    for name, _code, closing, seconds in outcomes:
        sys.stdout.write(f"{name:>15}: {closing} [{seconds:.0f} s with set-up]\n")
    failed = [name for name, code, _closing, _seconds in outcomes if code != 0]
    sys.stdout.write(f"Failed: {', '.join(failed)}\n" if failed else "All stages passed.\n")
    return 1 if failed else 0


def run(stage: Stage, extra: list[str]) -> tuple[str, int, str, float]:
    """Run one stage, show its output as it comes, and return its name, exit code, closing line and seconds."""
    command = [
        *(
            str(stage.python),
            "-m",
            "pytest",
            *stage.arguments,
            "-q",
            "--color=yes" if sys.stdout.isatty() else "--color=no",
        ),
        *("--durations=15", "--durations-min=1", f"--junit-xml={REPORTS / stage.name}.xml", *extra),
    ]
    environment = {**os.environ, "PYSPARK_PYTHON": str(stage.python), "PYSPARK_DRIVER_PYTHON": str(stage.python)}
    sys.stdout.write(f"\n--- {stage.name}: {stage.environment}, pytest {' '.join(stage.arguments)}\n")
    sys.stdout.flush()
    start, closing = time.monotonic(), "pytest gave no closing line"
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            plain = ANSI.sub("", line).strip()
            if CLOSING.match(plain):
                closing = plain.strip("= ")
    code = process.returncode
    if code == 5:
        closing = f"no test was selected, so the stage proves nothing ({closing})"
    return stage.name, code, closing, time.monotonic() - start


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
