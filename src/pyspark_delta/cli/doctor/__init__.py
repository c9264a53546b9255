"""Check that this machine, Spark's workers and a store have what pyspark-delta needs; each finding has a remedy."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_delta.cli.doctor.check import Check
from pyspark_delta.cli.doctor.leftovers import check_leftovers
from pyspark_delta.cli.doctor.machine import check_java, check_python, check_pythons_of_spark
from pyspark_delta.cli.doctor.packages import check_arrow_of_pyspark, check_extras, check_packages, check_pyspark
from pyspark_delta.cli.doctor.workers import check_session

__all__ = ["Check", "examine"]


def examine(*, spark: bool = True, master: str | None = None) -> Iterator[Check]:
    """Run all checks of the machine, in the order in which to fix findings; `spark` also starts a session of Spark."""
    yield check_python()
    yield from check_packages()
    java = check_java()
    yield java
    pyspark = check_pyspark()
    yield pyspark
    if pyspark.status == "ok":
        yield from check_arrow_of_pyspark()
    yield from check_pythons_of_spark()
    yield from check_leftovers()
    yield from check_extras()
    if spark and "failed" in (java.status, pyspark.status):
        yield Check("Spark job", "failed", "not run: Java and PySpark are needed", "fix the failures above")
    elif spark:
        yield from check_session(master)
