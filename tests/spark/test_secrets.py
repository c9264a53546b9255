"""A secret among storage options is in no plan, event log, error or repr of Spark or of this package."""

from __future__ import annotations

import contextlib
import io
import traceback
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.costs import SetCost

from pyspark_delta import DeltaTable

SECRET = "s3cr3twJalrXUtnFEMI"
HADOOP = {"fs.s3a.secret.key": SECRET, "fs.azure.account.key.x.dfs.core.windows.net": SECRET}
OPTIONS = {
    **HADOOP,
    "aws_access_key_id": SECRET,
    "aws_secret_access_key": SECRET,
    "azure_storage_account_key": SECRET,
    "azure_storage_sas_token": SECRET,
    "google_service_account_key": SECRET,
}
CODEGEN = "spark.sql.codegen.wholeStage"
REDACTED = "(?i)url|secret|token|key|password"  # as the documentation advises for sessions without `enable`


class Seen:
    """Everything that is shown to a user, or written where others read it."""

    def __init__(self, log: Path) -> None:
        self.log, self.texts = log, dict[str, str]()

    def run(self, name: str, action: Callable[[], Any]) -> None:
        """Keep the repr of the result and the plans of a frame, or the error with its causes."""
        try:
            found = action()
            self.texts[name] = f"{found!r} {found}"
            if isinstance(found, DataFrame):
                for mode in ("extended", "formatted", "cost", "codegen"):
                    self.texts[f"{name}, {mode}"] = explained(found, mode)
                found.collect()
        except Exception as error:
            facts = getattr(error, "facts", "")
            self.texts[name] = "".join(traceback.format_exception(error)) + repr(error) + str(facts)

    def check(self) -> None:
        """The secret is nowhere."""
        [events] = [path.read_text() for path in self.log.iterdir()]
        assert "SparkListenerSQLExecutionStart" in events
        assert [name for name, text in self.texts.items() if SECRET in text] == []
        found = [line for line in events.splitlines() if SECRET in line]
        assert [line[max(0, line.index(SECRET) - 300) :][:400] for line in found] == []


def explained(frame: DataFrame, mode: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        frame.explain(mode=mode)
    return output.getvalue()


@pytest.fixture
def seen(spark: SparkSession, tmp_path: Path) -> Iterator[Seen]:
    """Spark's event log is on while the test runs."""
    log = tmp_path / "events"
    log.mkdir()
    jvm: Any = spark._jvm
    context = spark.sparkContext._jsc.sc()  # type: ignore[attr-defined]
    conf = context.conf().clone().set("spark.eventLog.compress", "false").set("spark.eventLog.rolling.enabled", "false")
    writer = jvm.org.apache.spark.scheduler.EventLoggingListener(
        f"app-{uuid.uuid4().hex}", jvm.scala.Option.empty(), jvm.java.net.URI(log.as_uri()), conf
    )
    writer.start()
    context.addSparkListener(writer)
    seen = Seen(log)
    yield seen
    context.listenerBus().waitUntilEmpty()
    context.removeSparkListener(writer)
    writer.stop()
    seen.check()


def write_and_read(session: SparkSession, seen: Seen, path: str, options: dict[str, str]) -> None:
    def load(at: str = path) -> DataFrame:
        return session.read.format("delta").options(**options).load(at)

    def writer(rows: int) -> Any:
        return session.range(rows).write.format("delta").options(**options).mode("append")

    codegen = session.conf.get(CODEGEN)
    session.conf.set(CODEGEN, "true")  # which is shown too
    seen.run("writer", lambda: writer(1))
    seen.run("write", lambda: writer(10).save(path))
    seen.run("append", lambda: writer(3).save(path))
    seen.run("bad write", lambda: writer(3).option("replaceWhere", "id < 1").mode("overwrite").save(path))
    seen.run("read", lambda: load().where("id > 3"))
    seen.run("aggregate", lambda: load().groupBy("id").count())
    seen.run("no table", lambda: load(f"{path}-none").collect())
    load().createOrReplaceTempView("hidden")
    seen.run("view", lambda: session.sql("SELECT * FROM hidden WHERE id = 1"))
    assert load().count() == 13
    session.conf.set(CODEGEN, str(codegen))


@pytest.mark.parametrize("uses_arrow", [True, False])
def test_native_scan_write_and_dml(
    delta_spark: SparkSession, seen: Seen, tmp_path: Path, cost: SetCost, uses_arrow: bool
) -> None:
    path = str(tmp_path / "t")
    write_and_read(delta_spark, seen, path, OPTIONS)
    cost(delta_spark, uses_arrow=uses_arrow)
    table = DeltaTable.forPath(delta_spark, path, HADOOP)
    source = delta_spark.range(3, 20).toDF("k")
    merge = table.merge(source, "id = k").whenMatchedUpdate(set={"id": "k"}).whenNotMatchedInsert(values={"id": "k"})
    seen.run("table", lambda: table)
    seen.run("frame", table.toDF)
    seen.run("merge", merge.execute)
    seen.run("update", lambda: table.update("id = 6", {"id": "id + 100"}))
    seen.run("delete", lambda: table.delete("id = 7"))
    seen.run("history", table.history)
    seen.run("detail", table.detail)
    for file in Path(path).glob("*.parquet"):
        file.unlink()
    seen.run("lost files", lambda: delta_spark.read.format("delta").options(**OPTIONS).load(path).collect())
    seen.run("delete from lost files", lambda: table.delete("id = 8"))


def test_task_scan(delta_spark: SparkSession, seen: Seen, s3_options: dict[str, str]) -> None:
    secrets = dict.fromkeys(("aws_access_key_id", "aws_secret_access_key", "aws_session_token"), SECRET)
    options = {**secrets, **{key: value for key, value in s3_options.items() if "KEY" not in key}}
    write_and_read(delta_spark, seen, f"s3://contract/{uuid.uuid4().hex}", options)


@pytest.mark.since("4.0")
def test_python_data_source(plain_spark: SparkSession, seen: Seen, tmp_path: Path) -> None:
    plain_spark.conf.set("spark.sql.redaction.options.regex", REDACTED)
    try:
        write_and_read(plain_spark, seen, str(tmp_path / "t"), OPTIONS)
    finally:
        plain_spark.conf.unset("spark.sql.redaction.options.regex")
