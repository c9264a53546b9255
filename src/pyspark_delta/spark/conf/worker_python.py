"""The Python that Spark's workers run: that of this process in local mode, otherwise one that has this package.

Spark starts the `python3` of the PATH unless PYSPARK_PYTHON names another. A virtual environment that is not activated
is not in the PATH, so workers would lack its packages.
"""

from __future__ import annotations

import json
import os
import re
import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any

from pyspark_delta._version import __version__
from pyspark_delta.errors import MissingDependencyError
from pyspark_delta.spark.conf.sessions import ask_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTING = "spark.pyspark.python"
_REMEDY = (
    "Install pyspark-delta in that Python on every worker; or, before Spark starts, set the environment variable "
    f"PYSPARK_PYTHON to a Python that has it; this process runs {sys.executable}."
)
_NO_START = re.compile(r'PYTHON_VERSION_MISMATCH\] (?P<versions>[^\n]*)|Cannot run program "(?P<program>[^"]*)"')


def prepare_workers(spark: SparkSession) -> None:
    """Make sure that Python workers can run the package before the first job that needs them.

    In local mode, workers run the Python of this process unless the user chose one. Any other Python is checked once.
    Raises MissingDependencyError if it lacks a package, has another version of this package, or does not start.
    """
    use_running_python(spark)
    session = getattr(spark, "session_id", None)
    if session is None and _is_local(spark.sparkContext.master) and spark.sparkContext.pythonExec == sys.executable:
        return
    ask_once(session or spark.sparkContext.applicationId, "workers", lambda: _check(spark))


def use_running_python(spark: SparkSession) -> bool:
    """Run this process's Python on the workers of a local master, unless the user chose one.

    Return True if the workers ran another Python before. On Spark Connect, the server chooses the Python, from its own
    environment.
    """
    if hasattr(spark, "session_id") or not sys.executable or os.environ.get("PYSPARK_PYTHON"):
        return False
    context = spark.sparkContext
    if not _is_local(context.master):
        return False
    chosen = context._conf.get(_SETTING) or sys.executable  # not `getConf`, which copies every setting
    before, context.pythonExec = context.pythonExec, chosen
    return before != chosen


def choose_for_local_master(options: dict[str, str]) -> None:
    """Pass this process's Python to the JVM that a session builder with these options starts, if its master is local.

    The lookup of data sources and a Spark Connect server take their Python from the environment of the JVM. Nothing
    changes if the user chose a Python.
    """
    local = _is_local(options.get("spark.master") or options.get("spark.remote"))
    chosen = _SETTING in options or "PYSPARK_DRIVER_PYTHON" in os.environ
    if local and sys.executable and not chosen:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def missing_package(name: str) -> MissingDependencyError:
    """Return the error for a package that the Python of a worker does not find."""
    return MissingDependencyError(
        f"The Python of Spark's workers does not find the package '{name}'. {_REMEDY}", package=name
    )


def self_contained(function: Any) -> Any:
    """Return the function as if it had been defined in `__main__`, so that it is pickled by value."""
    moved = FunctionType(function.__code__, {"__builtins__": __builtins__}, function.__name__)
    moved.__module__ = "__main__"
    return moved


def _is_local(master: str | None) -> bool:
    return master is not None and re.match(r"local(\[|-cluster\[|$)", master) is not None


def _check(spark: SparkSession) -> None:
    """Raise MissingDependencyError as `prepare_workers` does. Other failures appear in the job that follows."""
    from pyspark.sql.functions import udf

    ask = udf(self_contained(_answer), "string", useArrow=False)  # without Arrow, which a worker may lack
    try:
        found = json.loads(spark.range(1).select(ask("id")).collect()[0][0])
    except Exception as error:
        failure = _NO_START.search(str(error))
        if failure is None:
            return
        reason = failure["versions"] or f"Spark cannot start '{failure['program']}', the Python of its workers."
        raise MissingDependencyError(f"{reason} {_REMEDY}") from None
    if found["missing"]:
        raise missing_package(found["missing"])
    if found["version"] != __version__:
        raise MissingDependencyError(
            f"Spark's workers have pyspark-delta {found['version']}, and this process has {__version__}. Install the "
            "same version on every worker.",
            version=found["version"],
        )


def _answer(_: object) -> str:
    """Return, as JSON, a package that the worker lacks, if any, and its version of pyspark-delta.

    The function is self-contained, because the worker may lack the package.
    """
    import json
    from importlib import import_module
    from importlib.util import find_spec

    needed = ("pyspark_delta", "pyarrow", "numpy", "orjson", "pyroaring", "sqlglot")
    missing = next((name for name in needed if find_spec(name) is None), None)
    version = None if missing else import_module("pyspark_delta").__version__
    return json.dumps({"missing": missing, "version": version})
