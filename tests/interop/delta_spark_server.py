"""delta-spark that answers questions: `python delta_spark_server.py JARS...`, one JSON object a line in and out.

Questions: `{"do": "sql", "statements": [...]}`,
`{"do": "read", "path": ..., "version": ..., "texts": {COLUMN: SQL}, "out": ARROW_FILE}`,
`{"do": "query", "select": SQL, "out": ARROW_FILE}`, `{"do": "rows", "statement": SQL}`,
`{"do": "append", "path": ..., "select": SQL}`, `{"do": "history", "path": ...}`,
`{"do": "write", "path": ..., "select": SQL, "mode": ..., "partition_by": [...], "options": {...}, "tasks": 1}`,
`{"do": "batches", "sources": [{"path": ..., "options": {...}, "columns": [SQL, ...]}], "checkpoint": ...}`,
`{"do": "rules", "path": ...}`, `{"do": "parse", "statements": [...]}`,
`{"do": "stream", "source": ..., "path": ..., "checkpoint": ..., "mode": ...}`,
`{"do": "run", "code": PYTHON}`,
`{"do": "tables", "out": FOLDER, "only": NAMES or null}`. Answers begin with `ANSWER `.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from delta_spark_session import session
from delta_spark_tables import BUILDERS, make_tables
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name


def _delta_table() -> Any:
    """The class of delta-spark's Python package, which its JAR contains."""
    sys.path[:0] = [jar for jar in sys.argv[1:] if "delta-spark" in jar and jar not in sys.path]
    sys.modules.setdefault("importlib_metadata", importlib.metadata)  # a backport that the package requires
    from delta.tables import DeltaTable

    return DeltaTable


def answer(spark: SparkSession, question: dict[str, Any]) -> Any:
    """The answer to one question."""
    path = question.get("path")
    match question["do"]:
        case "sql":
            for statement in question["statements"]:
                spark.sql(statement)
            return None
        case "run":
            exec(question["code"], {"spark": spark, "DeltaTable": _delta_table()})
            return None
        case "read":
            reader = spark.read.format("delta")
            if question.get("version") is not None:
                reader = reader.option("versionAsOf", question["version"])
            texts = {name: F.expr(text) for name, text in question.get("texts", {}).items()}
            rows = reader.load(path).withColumns(texts).toArrow()
            with pa.OSFile(question["out"], "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
                writer.write_table(rows)
            return rows.num_rows
        case "rows":
            return [row.asDict(recursive=True) for row in spark.sql(question["statement"]).collect()]
        case "parse":
            return [_parsed(spark, statement) for statement in question["statements"]]
        case "types":
            return spark.sql(question["statement"]).schema.simpleString()
        case "query":
            rows = spark.sql(question["select"]).toArrow()
            with pa.OSFile(question["out"], "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
                writer.write_table(rows)
            return rows.num_rows
        case "append":
            spark.sql(question["select"]).write.format("delta").mode("append").save(path)
            return None
        case "write":
            frame, tasks = spark.sql(question["select"]), question.get("tasks")
            frame = frame.repartition(tasks) if tasks else frame.coalesce(1)
            writer = frame.write.format("delta").mode(question["mode"])
            if question["partition_by"]:
                writer = writer.partitionBy(*question["partition_by"])
            writer.options(**question["options"]).save(path)
            return None
        case "history":
            rows = spark.sql(f"describe history delta.`{path}`").orderBy("version")
            return [json.loads(row.text) for row in rows.selectExpr("to_json(struct(*)) as text").collect()]
        case "batches":
            return _batches(spark, question["sources"], question["checkpoint"])
        case "stream":
            _stream(spark, question)
            return None
        case "tables":
            make_tables(spark.newSession(), Path(question["out"]), question["only"] or BUILDERS)
            return None
        case "rules":
            _table_with_rules(spark, str(path))
            return None
        case other:
            raise ValueError(other)


def _batches(spark: SparkSession, sources: list[dict[str, Any]], checkpoint: str) -> dict[int, list[Any]]:
    """The rows of each batch of a query that reads everything that is available in some tables."""
    batches: dict[int, list[Any]] = {}

    def keep(batch: DataFrame, number: int) -> None:
        batches[number] = sorted([list(row) for row in batch.collect()], key=str)

    streams = [spark.readStream.format("delta").options(**one["options"]).load(one["path"]) for one in sources]
    chosen = [stream.selectExpr(*one["columns"]) for stream, one in zip(streams, sources, strict=True)]
    writer = reduce(DataFrame.union, chosen).writeStream.foreachBatch(keep)
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    return batches


def _stream(spark: SparkSession, question: dict[str, Any]) -> None:
    """Write what there is in a folder of Parquet files, one file in a batch, to a table."""
    reader = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1)
    rows = reader.parquet(question["source"])
    if question["mode"] == "complete":
        rows = rows.groupBy("id").count()
    writer = rows.writeStream.format("delta").outputMode(question["mode"]).trigger(availableNow=True)
    writer.option("checkpointLocation", question["checkpoint"]).start(question["path"]).awaitTermination()


def _parsed(spark: SparkSession, statement: str) -> str | None:
    """The class of the plan that a statement is parsed to; None if it is refused."""
    try:
        return str(spark._jsparkSession.sessionState().sqlParser().parsePlan(statement).getClass().getName())
    except Exception:
        return None


def _table_with_rules(spark: SparkSession, path: str) -> None:
    """A table whose rows are generated, numbered and checked."""
    tables = spark._jvm.io.delta.tables.DeltaTable
    builder = tables.create(spark._jsparkSession).location(path)
    identity = tables.columnBuilder(spark._jsparkSession, "id").dataType("bigint").generatedAlwaysAsIdentity(100, 10)
    day = tables.columnBuilder(spark._jsparkSession, "day").dataType("date").generatedAlwaysAs("CAST(ts AS DATE)")
    builder = builder.addColumn(identity.build()).addColumn("a", "int").addColumn("ts", "timestamp")
    builder.addColumn(day.build()).execute()
    spark.sql(f"alter table delta.`{path}` add constraint positive check (a > 0)")


def main() -> None:
    """Answer until the end of the input."""
    spark = session(sys.argv[1:])
    for line in sys.stdin:
        try:
            reply = {"ok": answer(spark, json.loads(line))}
        except Exception as error:
            reply = {"error": str(error)[:2000]}
        print("ANSWER " + json.dumps(reply), flush=True)  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main()
