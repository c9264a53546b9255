"""What the figures were measured on: the machine, and the versions of everything that took part."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

_PACKAGES = ("pyspark", "pyarrow", "numpy", "orjson", "deltalake", "polars")


def describe(environments: Mapping[str, str], jars: list[Path]) -> dict[str, str]:
    """Names and values, for people."""
    found = {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "Java": _first_line(["java", "-version"]),
        "Python": platform.python_version(),
    }
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "absent"
    if "delta-spark" in environments:
        script = "import pyspark; print(pyspark.__version__)"
        pyspark = _first_line([environments["delta-spark"], "-c", script])
        versions = [m[1] for jar in jars if (m := re.fullmatch(r"delta-spark_.*-([\d.]+)\.jar", jar.name))]
        found["delta-spark"] = f"{''.join(versions[:1]) or 'unknown'} on PySpark {pyspark}"
    return found


def commit(root: Path) -> str:
    """The commit that is measured."""
    return _first_line(["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*"])


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    found = re.search(r"model name\s*:\s*(.*)", text)
    return found[1] if found else platform.machine()


def _first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return "absent"
    lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
    return lines[0] if lines else "unknown"
