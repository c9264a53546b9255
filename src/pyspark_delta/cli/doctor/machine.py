"""Check Python, Java, and the Pythons that the environment names for the driver and the workers of Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

from pyspark_delta.cli.doctor.check import Check
from pyspark_delta.cli.doctor.requirements import parse_version, version_of

_MINIMUM_PYTHON = (3, 11)
_MINIMUM_JAVA = 17
_MINIMUM_JAVA_OF_SPARK_3 = 8
_SECONDS = 30
_VERSION = "import platform; print(platform.python_version())"
_PYTHONS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")


def check_python() -> Check:
    """Check the version of the Python that runs doctor."""
    found = f"{'.'.join(map(str, sys.version_info[:3]))} ({sys.executable})"
    if sys.version_info[:2] < _MINIMUM_PYTHON:
        return Check("Python", "failed", found, f"use Python {'.'.join(map(str, _MINIMUM_PYTHON))} or newer")
    return Check("Python", "ok", found)


def check_java() -> Check:
    """Check that the Java which Spark starts runs, in a version that the installed PySpark supports."""
    spark_3 = parse_version(version_of("pyspark") or "")[:1] == (3,)
    minimum = _MINIMUM_JAVA_OF_SPARK_3 if spark_3 else _MINIMUM_JAVA
    remedy = f"install Java {_MINIMUM_JAVA} or newer and set JAVA_HOME to it"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    if java is None:
        where = f"no bin/java in JAVA_HOME={home}" if home else "no java on the PATH"
        return Check("Java", "failed", where, remedy)
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("Java", "failed", f"{java} does not run: {error}", remedy)
    major = java_major(done.stderr + done.stdout)
    if major is None:
        return Check("Java", "failed", f"the output of {java} -version has no version", remedy)
    found = f"{major} ({java})"
    return Check("Java", "ok", found) if major >= minimum else Check("Java", "failed", found, remedy)


def java_major(text: str) -> int | None:
    """Return the major version in the output of `java -version`.

    It is 8 for "1.8.0_402", 17 for "17.0.9", and None without a version.
    """
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    major = int(found[1])
    return int(found[2]) if major == 1 and found[2] else major


def check_pythons_of_spark() -> Iterator[Check]:
    """Check the Pythons that PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON name: each runs, in the same minor version.

    Without PYSPARK_PYTHON, nothing is to be checked: `enable` gives local workers the Python of the script.
    """
    versions: dict[str, str] = {"this Python": ".".join(map(str, sys.version_info[:3]))}
    for variable in _PYTHONS:
        program = os.environ.get(variable)
        if not program:
            continue
        version = _python_version(program)
        if version is None:
            remedy = f"set {variable} to a Python that has pyspark-delta, such as {sys.executable}, or unset it"
            yield Check(variable, "failed", f"{program} does not run", remedy)
            continue
        other = next((name for name, found in versions.items() if _minor(found) != _minor(version)), None)
        if other is not None:
            yield Check(
                variable,
                "failed",
                f"{version} ({program}), but {other} is {versions[other]}",
                f"set {' and '.join(_PYTHONS)} to the same Python, such as {sys.executable}",
            )
        else:
            yield Check(variable, "ok", f"{version} ({program})")
        versions[variable] = version


def _python_version(program: str) -> str | None:
    try:
        done = subprocess.run([program, "-c", _VERSION], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = done.stdout.strip()
    return text if done.returncode == 0 and parse_version(text) else None


def _minor(version: str) -> tuple[int, ...]:
    return parse_version(version)[:2]
