"""Check that this machine and Spark's workers have what pyspark-delta needs; each finding has a remedy."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any, Literal

_SPARK_JOB_SECONDS = 300
_MINIMUM_PYTHON = (3, 11)
_MINIMUM_JAVA = 17
_REQUIRED = {"pyarrow": (18,), "numpy": (1, 26), "orjson": (3, 10), "pyroaring": (1, 0), "sqlglot": (26,)}
_OPTIONAL = {
    "obstore": ("S3, Google and Azure storage", "pip install 'pyspark-delta[cloud]'"),
    "grpcio": ("Spark Connect", "pip install 'pyspark-delta[connect]'"),
    "rich": ("output as tables in the terminal", "pip install 'pyspark-delta[cli]'"),
}


@dataclass(frozen=True, slots=True)
class Check:
    """A finding. `remedy` is a command or a sentence; empty if nothing has to be done."""

    name: str
    status: Literal["ok", "failed", "optional"]
    found: str
    remedy: str = ""

    def as_row(self) -> tuple[str, str, str, str]:
        """Return the finding as a row of a table."""
        return self.status, self.name, self.found, self.remedy

    def as_dict(self) -> dict[str, str]:
        """Return the finding for JSON."""
        return asdict(self)


def examine(*, spark: bool = True, master: str | None = None) -> Iterator[Check]:
    """Run all checks, in the order in which to fix findings; `spark` also runs a job on Spark's workers."""
    yield _check_python()
    for name, minimum in _REQUIRED.items():
        yield _check_package(name, minimum, f"pip install --upgrade '{name}>={_dotted(minimum)}'")
    java = _check_java()
    yield java
    pyspark = _check_package("pyspark", (4, 2), "pip install 'pyspark-delta[spark]'")
    yield pyspark
    for name, (purpose, remedy) in _OPTIONAL.items():
        yield _check_optional(name, purpose, remedy)
    if spark:
        if "failed" in (java.status, pyspark.status):
            yield Check("Spark job", "failed", "not run: Java and PySpark are needed", "fix the failures above")
        else:
            yield from _check_workers(master)


def parse_version(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: `4.3.0.dev1` is (4, 3, 0)."""
    leading = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in leading[0].split(".")) if leading else ()


def java_major(text: str) -> int | None:
    """Return the major version in the output of `java -version`.

    It is 8 for "1.8.0_402", 17 for "17.0.9", and None without a version.
    """
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    major = int(found[1])
    return int(found[2]) if major == 1 and found[2] else major


def _check_python() -> Check:
    found = f"{_dotted(sys.version_info[:3])} ({sys.executable})"
    if sys.version_info[:2] < _MINIMUM_PYTHON:
        return Check("Python", "failed", found, "use Python 3.11 or newer")
    return Check("Python", "ok", found)


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _check_package(name: str, minimum: tuple[int, ...], remedy: str) -> Check:
    version = _installed(name)
    if version is None:
        return Check(name, "failed", "not installed", remedy)
    if parse_version(version) < minimum:
        return Check(name, "failed", f"{version}, older than {_dotted(minimum)}", remedy)
    return Check(name, "ok", version)


def _check_optional(name: str, purpose: str, remedy: str) -> Check:
    version = _installed(name)
    if version is None:
        return Check(name, "optional", f"not installed; needed for {purpose}", remedy)
    return Check(name, "ok", version)


def _check_java() -> Check:
    remedy = f"install Java {_MINIMUM_JAVA} or newer and set JAVA_HOME to it"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    if java is None:
        where = f"no bin/java in JAVA_HOME={home}" if home else "no java on the PATH"
        return Check("Java", "failed", where, remedy)
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("Java", "failed", f"{java} does not run: {error}", remedy)
    major = java_major(done.stderr + done.stdout)
    if major is None:
        return Check("Java", "failed", f"the output of {java} -version has no version", remedy)
    found = f"{major} ({java})"
    return Check("Java", "ok", found) if major >= _MINIMUM_JAVA else Check("Java", "failed", found, remedy)


def _check_workers(master: str | None) -> Iterator[Check]:
    """Run the probe in a separate process: a JVM that hangs or crashes must not end the report."""
    command = [sys.executable, "-m", "pyspark_delta.spark.probe", *([master] if master else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SPARK_JOB_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        yield Check("Spark job", "failed", f"no answer within {_SPARK_JOB_SECONDS} s", "see the logs of Spark")
        return
    report = _last_json(done.stdout)
    if report is None:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no output")
        yield Check(
            "Spark job", "failed", last.strip(), "run python -m pyspark_delta.spark.probe for the complete output"
        )
        return
    yield from judge(report)


def judge(report: dict[str, Any]) -> Iterator[Check]:
    """Check what the probe reported about driver and workers."""
    driver, workers = report["driver"], report["workers"]
    if report.get("error"):
        yield Check(
            "Spark job",
            "failed",
            str(report["error"]),
            "set PYSPARK_PYTHON to a Python that has pyspark-delta and pyarrow, on every machine",
        )
    else:
        yield Check("Spark job", "ok", f"Spark {driver['pyspark']}, {len(workers)} worker process(es)")
    for worker in workers:
        where = f"worker on {worker['host']}"
        if worker["python"].split(".")[:2] != driver["python"].split(".")[:2]:
            yield Check(
                f"{where}: Python",
                "failed",
                f"{worker['python']}, the driver has {driver['python']}",
                "set PYSPARK_PYTHON to the same Python on every machine",
            )
        for name, remedy in (("pyarrow", "pip install pyarrow"), ("pyspark_delta", "pip install pyspark-delta")):
            yield _compare(where, name, worker.get(name), driver.get(name), remedy)
    if report.get("source") is not None:
        yield Check("format('delta')", "ok", str(report["source"]))
    elif not report.get("error"):
        yield Check(
            "format('delta')",
            "failed",
            str(report.get("source_error") or "Spark cannot find the data source"),
            "install pyspark-delta for the Python that the driver of Spark starts (PYSPARK_PYTHON)",
        )


def _compare(where: str, name: str, found: str | None, expected: str | None, remedy: str) -> Check:
    title = f"{where}: {name}"
    if found is None:
        return Check(title, "failed", "cannot be imported", f"{remedy} on every machine, for its PYSPARK_PYTHON")
    if found != expected:
        return Check(title, "failed", f"{found}, the driver has {expected}", "install the same version everywhere")
    return Check(title, "ok", found)


def _last_json(text: str) -> dict[str, Any] | None:
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                found: dict[str, Any] = json.loads(line)
            except json.JSONDecodeError:
                continue
            return found
    return None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)
