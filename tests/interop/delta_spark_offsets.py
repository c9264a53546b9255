"""Runs streams of delta-spark and leaves the texts of their offsets: `python delta_spark_offsets.py OUT JARS...`.

Runs in a virtual environment of its own (delta-spark's PySpark). OUT is a JSON file: for each stream, the offsets of
its batches, and the entries of its schema log if it has one.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

ONE_FILE = {"maxFilesPerTrigger": "1"}
STREAMS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    # Options, and what happens to the table between two runs; {t} stands for the table.
    "snapshot_and_tail": (ONE_FILE, ("insert into {t} values (10, 'x')", "insert into {t} values (11, 'y')")),
    "starting_version": ({"startingVersion": "1", "maxFilesPerTrigger": "2"}, ("insert into {t} values (10, 'x')",)),
    "commits_without_rows": (
        ONE_FILE,
        ("optimize {t}", "alter table {t} set tblproperties ('note' = 'n')", "insert into {t} values (10, 'x')"),
    ),
    "change_feed": (
        {"readChangeFeed": "true", "startingVersion": "0", **ONE_FILE},
        ("update {t} set s = 'z' where id < 2",),
    ),
    "schema_log": (
        {"schemaTrackingLocation": "{c}/_schema", "allowSourceColumnRename": "always"},
        (
            "alter table {t} add column d int",
            "alter table {t} rename column s to r",
            "insert into {t} values (9, 'x', 1)",
        ),
    ),
}


def offsets(spark: SparkSession, folder: str, name: str) -> dict[str, list[str]]:
    """Make a table, run a stream of it after each statement, and return the texts in its checkpoint."""
    options, statements = STREAMS[name]
    path, checkpoint = f"{folder}/{name}", f"{folder}/{name}-checkpoint"
    spark.sql(
        f"create table delta.`{path}` (id long, s string) using delta tblproperties "
        "('delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name')"
    )
    for first in (0, 4):
        spark.range(first, first + 4, 1, 2).selectExpr("id", "'a' s").write.format("delta").mode("append").save(path)
    run = _runner(spark, path, checkpoint, {key: text.replace("{c}", checkpoint) for key, text in options.items()})
    run()
    for statement in statements:
        spark.sql(statement.replace("{t}", f"delta.`{path}`"))
        run()
    return {"offsets": _texts(Path(checkpoint, "offsets")), "schema_log": _schema_log(Path(checkpoint, "_schema"))}


def _runner(spark: SparkSession, path: str, checkpoint: str, options: dict[str, str]) -> Callable[[], None]:
    def run() -> None:
        """Run until nothing is new: again after each change of the schema."""
        for _ in range(4):
            frame = spark.readStream.format("delta").options(**options).load(path)
            writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
            try:
                writer.trigger(availableNow=True).start().awaitTermination()
                return
            except StreamingQueryException as error:
                if "DELTA_STREAMING_METADATA_EVOLUTION" not in str(error):
                    raise

    return run


def _texts(folder: Path) -> list[str]:
    files = sorted((file for file in folder.iterdir() if file.name.isdecimal()), key=lambda file: int(file.name))
    return [file.read_text().splitlines()[-1] for file in files]


def _schema_log(folder: Path) -> list[str]:
    logs = list(folder.iterdir()) if folder.exists() else []
    return [text for log in logs for text in _texts(log)]


def main(out: str, *jars: str) -> None:
    """Run all streams in one session."""
    from delta_spark_session import session  # beside this file, which tests import too

    spark = session(list(jars))
    with tempfile.TemporaryDirectory() as folder:
        made = {name: offsets(spark, folder, name) for name in STREAMS}
    Path(out).write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
