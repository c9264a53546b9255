"""Says in one sentence what the machine lacks to run pyspark-delta with Spark: Python >= 3.11, its venv, Java >= 17.

Runs on any Python 3, before anything is installed.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys

PYTHON = (3, 11)
JAVA = 17


def main():
    """Print the first problem and return 1, or return 0."""
    problem = python_problem() or java_problem()
    if problem:
        sys.stderr.write(problem + "\n")
        return 1
    return 0


def python_problem():
    """What is wrong with this Python, or an empty text."""
    if sys.version_info[:2] < PYTHON:
        return (
            f"pyspark-delta needs Python {PYTHON[0]}.{PYTHON[1]} or newer, but this is {sys.version.split()[0]} "
            f"({sys.executable}): install a newer one and name it, for example `make test PYTHON=python3.12`."
        )
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        return (
            f"The Python at {sys.executable} cannot make virtual environments: install its venv package, for example "
            f"`apt-get install python{sys.version_info[0]}.{sys.version_info[1]}-venv`."
        )
    return ""


def java_problem():
    """What is wrong with Java, or an empty text."""
    advice = (
        "install one, for example `apt-get install openjdk-17-jre-headless`, and set JAVA_HOME when it is elsewhere."
    )
    java = find_java()
    if java is None and os.environ.get("JAVA_HOME"):
        return (
            f"Spark needs Java {JAVA} or newer, and JAVA_HOME ({os.environ['JAVA_HOME']}) holds no bin/java: {advice}"
        )
    if java is None:
        return f"Spark needs Java {JAVA} or newer, and there is no java on the PATH: {advice}"
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"Spark needs Java {JAVA} or newer, but {java} cannot be run ({error}): {advice}"
    version = java_version(done.stderr + done.stdout)
    if version is None:
        return f"Spark needs Java {JAVA} or newer, but {java} does not tell its version: {advice}"
    if version < JAVA:
        return f"Spark needs Java {JAVA} or newer, but {java} is Java {version}: {advice}"
    return ""


def find_java():
    """The java that Spark would start: that of JAVA_HOME, otherwise the first on the PATH; None without any."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return shutil.which(os.path.join(home, "bin", "java")) or None
    return shutil.which("java")


def java_version(text):
    """The feature version in the output of `java -version`: 8 for `1.8.0_392`, 17 for `17.0.15`; None without one."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


if __name__ == "__main__":
    sys.exit(main())
