"""Reports the versions on the driver and on workers, with a small Spark job: `python -m pyspark_delta.spark.probe`.

Prints one line of JSON: `driver`, `workers` (a list), `source` (the name under which Spark finds the data source),
`table` (what was written and read), `error`, `source_error` and `table_error`. The last three are one sentence if the
job, the lookup or the small table failed, otherwise null.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from pyspark_delta.spark.conf.cores import cores_of
from pyspark_delta.spark.conf.sessions import is_enabled
from pyspark_delta.spark.conf.worker_python import self_contained, use_running_python
from pyspark_delta.spark.session.enable import disable, enable


def versions() -> dict[str, str | None]:
    """Return the host of this process, and its versions of Python and packages; None if a package cannot be imported.

    The function is self-contained, because workers may lack the package.
    """
    import platform
    import socket
    from importlib import import_module

    def version_of(name: str) -> str | None:
        try:
            return str(import_module(name).__version__)
        except Exception:
            return None

    found: dict[str, str | None] = {name: version_of(name) for name in ("pyspark", "pyarrow", "pyspark_delta")}
    return {"python": platform.python_version(), "host": socket.gethostname(), **found}


def report(spark: SparkSession) -> dict[str, Any]:
    """Run the job, look up the data source, use a small table, and return what `main` prints."""
    result: dict[str, Any] = {"driver": versions(), "workers": []}
    result |= dict.fromkeys(("source", "table", "error", "source_error", "table_error"))
    use_running_python(spark)
    try:
        result["workers"] = _ask_workers(spark)
    except Exception as error:
        result["error"] = _sentence(error)
        return result
    result["source"], result["source_error"] = _find_source(spark)
    result["table"], result["table_error"] = _use_small_table(spark)
    return result


def _ask_workers(spark: SparkSession) -> list[dict[str, str | None]]:
    """Return the distinct reports of the workers."""
    ask = self_contained(versions)

    def answer(batches: Iterator[Any]) -> Iterator[Any]:
        import json as worker_json

        import pyarrow as pa

        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict({"report": [worker_json.dumps(ask())]})

    tasks = max(2, min(256, cores_of(spark)))  # one task for each core, to reach every machine
    rows = spark.range(0, tasks, 1, tasks).mapInArrow(answer, "report string").collect()
    return [json.loads(text) for text in sorted({row["report"] for row in rows})]


def _find_source(spark: SparkSession) -> tuple[str | None, str | None]:
    """Return the short name under which Spark finds the data source, or None and the failure.

    The data source is recognized by its error for a table that does not exist.
    """
    failure = ""
    for name in ("delta", "deltapy"):
        try:
            spark.read.format(name).load("/pyspark-delta-probe/no-table")
        except Exception as error:
            if "pyspark_delta" in str(error):
                return name, None
            failure = _sentence(error)
    return None, failure


def _use_small_table(spark: SparkSession) -> tuple[str | None, str | None]:
    """Write a table with `enable`, change it and read it; return what was done, or None and the failure.

    The table lies in a temporary folder of this machine, so a session on other machines is not asked for it.
    """
    if not str(spark.sparkContext.master).startswith("local"):
        return "not written: the session runs on other machines", None
    was_enabled = is_enabled(spark)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/table"
        try:
            enable(spark)
            spark.range(1000).write.format("delta").save(path)
            spark.sql(f"DELETE FROM delta.`{path}` WHERE id >= 900")
            count = spark.read.format("delta").load(path).where("id >= 100").count()
        except Exception as error:
            return None, _sentence(error)
        finally:
            if not was_enabled:
                disable(spark)
    return (f"{count} rows read", None) if count == 800 else (None, f"{count} of 800 rows were read")


def _sentence(error: Exception) -> str:
    """Return the line that says what happened, from the text of an error of Spark or of a worker."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    found = [line for line in lines if "Error: " in line and not line.startswith(("at ", "File "))]
    return (found or lines or [type(error).__name__])[-1 if found else 0]


def main() -> None:
    """Print the report of a session, with the master given as an argument or as the environment configures it."""
    builder = SparkSession.builder.appName("pyspark-delta doctor").config("spark.ui.enabled", "false")
    spark = (builder.master(sys.argv[1]) if len(sys.argv) > 1 else builder).getOrCreate()
    try:
        line = json.dumps(report(spark))
    finally:
        spark.stop()
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
