"""Runs the test suite in its stages, each a pytest process of its own, and repeats their closing lines at the end.

Classic Spark, Spark Connect and another PySpark version cannot share a process: a process has one kind of session.
Three stages run at the same time; when one ends, the next begins. What a stage says is shown when it ends, below its
heading; where it is the only one, as it comes.

    run_tests.py [STAGE ...] [-- PYTEST-ARGUMENT ...]
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "build" / "test-reports"
GRACE = 20  # seconds that an interrupted stage has to end by itself
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


@dataclass(frozen=True)
class Outcome:
    """How a stage ended."""

    name: str
    code: int
    closing: str
    seconds: float


# Tests of `Table` run in the environment that has no PySpark, and where it has been made nowhere else.
OF_TABLE, BARE = "tests/unit/table", ".venv-bare"
ELSEWHERE = (f"--ignore={OF_TABLE}",) if (ROOT / BARE).exists() else ()

SOAK = "tests/spark/test_streaming_soak.py"  # for minutes, mostly waiting

# They need packages that the environments of the older PySparks do not have.
_GUIDE = "--ignore=tests/spark/test_guide.py"
_LACKING = ("--ignore=tests/spark/test_catalog_tables.py", "--ignore=tests/spark/test_mixins.py", _GUIDE)

_SOME = ("tests/spark", "-m", "smoke or versions")
_ALL = ("tests/spark", f"--ignore={SOAK}", "-m", "spark and not connect")
# At full length, all classic tests run on older releases, except those marked `since` a newer one.
_ON_OLDER = _ALL if os.environ.get("PYSPARK_DELTA_TEST_FULL") else _SOME

CORE = ("-n", "2", "--dist", "worksteal", "-m", "not spark and not connect and not cluster and not bare")

# A stage leaves a core idle for much of its time, so that three keep two cores busy.
AT_ONCE = 3

# The longest first: the short ones fill what the others leave.
STAGES = (
    Stage("soak", ".venv", (SOAK,)),
    Stage("classic", ".venv", ("--ignore=tests/interop", f"--ignore={SOAK}", "-m", "spark and not connect")),
    Stage("interop", ".venv", ("tests/interop", "-m", "spark and not connect")),
    Stage("core", ".venv", (*CORE, *ELSEWHERE)),
    Stage("connect", ".venv", ("-m", "connect")),
    Stage("oldest-pyspark", ".venv-4.2", (*_ON_OLDER, _GUIDE)),
    Stage("cluster", ".venv", ("tests/cluster", "-m", "cluster")),
    *(Stage(f"pyspark-{old}", f".venv-{old}", (*_ON_OLDER, *_LACKING)) for old in ("4.1", "4.0", "3.5")),
    Stage("bare", BARE, ("tests/bare", OF_TABLE, "-m", "not spark and not connect")),
)


def main(arguments: list[str]) -> int:
    """Run the named stages, all by default; 0 when every one passed, 130 when interrupted."""
    names, extra = _split(arguments)
    known = [stage.name for stage in STAGES]
    unknown = set(names) - set(known)
    if unknown:
        sys.stderr.write(f"Unknown stages {sorted(unknown)}; there are {known}.\n")
        return 2
    REPORTS.mkdir(parents=True, exist_ok=True)
    for old in REPORTS.glob("*.xml"):
        old.unlink()
    chosen = [stage for stage in STAGES if not names or stage.name in names]
    signal.signal(signal.SIGTERM, interrupt)
    try:
        outcomes = run_all(chosen, lambda stage: _pytest(stage, extra))
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted; the stages have been ended.\n")
        return 130
    sys.stdout.write(f"\n{report(outcomes)}")
    return 1 if any(outcome.code != 0 for outcome in outcomes) else 0


def report(outcomes: Sequence[Outcome]) -> str:
    """A line for each stage, and one that names those that failed."""
    lines = [f"{one.name:>15}: {one.closing} [{one.seconds:.0f} s with set-up]" for one in outcomes]
    failed = [one.name for one in outcomes if one.code != 0]
    lines.append(f"Failed: {', '.join(failed)}" if failed else "All stages passed.")
    return "\n".join(lines) + "\n"


def run_all(stages: Sequence[Stage], command: Callable[[Stage], list[str]]) -> list[Outcome]:
    """Run stages, some at the same time, in their order. On an interrupt every process is ended."""
    running, live = Running(), len(stages) < 2
    with ThreadPoolExecutor(AT_ONCE) as threads:
        futures = [threads.submit(run, stage, command(stage), running, live=live) for stage in stages]
        try:
            return [future.result() for future in futures]
        except BaseException:
            running.end()
            raise


@dataclass
class Running:
    """The processes that run, each with a process group of its own, and whose turn it is to write."""

    ended: bool = False
    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    changing: threading.Lock = field(default_factory=threading.Lock)
    writing: threading.Lock = field(default_factory=threading.Lock)

    def start(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
        """A new process. Raises RuntimeError after `end`."""
        with self.changing:
            if self.ended:
                raise RuntimeError("the test run was interrupted")
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            self.processes.append(process)
            return process

    def end(self) -> None:
        """End what runs: as Ctrl-C does, and after a while by force, with all that it started."""
        with self.changing:
            self.ended = True
            left = [process for process in self.processes if process.poll() is None]
        for process in left:
            _signal_group(process, signal.SIGINT)
        deadline = time.monotonic() + GRACE
        for process in left:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0))
            _signal_group(process, signal.SIGKILL)

    def write(self, text: str) -> None:
        """Write without another stage in between."""
        with self.writing:
            sys.stdout.write(text)
            sys.stdout.flush()


def run(stage: Stage, command: list[str], running: Running, *, live: bool) -> Outcome:
    """Run one stage and show its output, as it comes where `live`, else when it has ended."""
    environment = {**os.environ, "PYSPARK_PYTHON": str(stage.python), "PYSPARK_DRIVER_PYTHON": str(stage.python)}
    heading = f"\n--- {stage.name}: {stage.environment}, pytest {' '.join(stage.arguments)}\n"
    start, closing, said = time.monotonic(), "pytest gave no closing line", [heading]
    with running.start(command, environment) as process:
        assert process.stdout is not None
        running.write(heading if live else f"{stage.name} runs; its output follows when it ends.\n")
        for line in process.stdout:
            if live:
                running.write(line)
            else:
                said.append(line)
            plain = ANSI.sub("", line).strip()
            if CLOSING.match(plain):
                closing = plain.strip("= ")
    code = process.returncode
    if code == 5:
        closing = f"no test was selected, so the stage proves nothing ({closing})"
    if not live:
        running.write("".join(said))
    return Outcome(stage.name, code, closing, time.monotonic() - start)


def _pytest(stage: Stage, extra: list[str]) -> list[str]:
    return [
        *(str(stage.python), "-m", "pytest", *stage.arguments, "-q"),
        "--color=yes" if sys.stdout.isatty() else "--color=no",
        *("--durations=15", "--durations-min=1", f"--junit-xml={REPORTS / stage.name}.xml", *extra),
    ]


def _signal_group(process: subprocess.Popen[str], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # all of it has ended
        os.killpg(process.pid, number)


def interrupt(_number: int, _frame: FrameType | None) -> None:
    """Handle a signal as Ctrl-C."""
    raise KeyboardInterrupt


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
