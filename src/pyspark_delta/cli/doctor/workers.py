"""Check a session of Spark: it starts, its workers fit to the driver, and a small table is written and read.

The session runs in a separate process, because a JVM that hangs or crashes must not end the report.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from pyspark_delta.cli.doctor.check import Check

_SECONDS = 300


def check_session(master: str | None) -> Iterator[Check]:
    """Run the probe in a process of its own, and judge its report."""
    command = [sys.executable, "-m", "pyspark_delta.spark.probe", *([master] if master else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        yield Check("Spark job", "failed", f"no answer within {_SECONDS} s", "see the logs of Spark")
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
    """Check what the probe reported about driver, workers and the small table."""
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
    if report.get("table") is not None:
        yield Check("small table", "ok", str(report["table"]))
    elif report.get("table_error"):
        yield Check("small table", "failed", str(report["table_error"]), "see the error; it names the remedy")


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
