"""Access of tasks to Hadoop's file systems: each task gets what it needs from the session, with its function."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_delta.engines.tasks import ArrowTask
from pyspark_delta.spark.hadoop.connections import TaskAccess, client_of_driver, has_client, use_access

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SENT = ("fs.", "dfs.", "hadoop.", "ipc.")
_KEPT = ("fs.s3a.", "fs.azure.", "fs.gs.", "fs.adl.")  # with secrets of stores that tasks reach by storage options
_DEFAULTS = "-default.xml"


def with_hadoop_access(spark: SparkSession, task: ArrowTask) -> ArrowTask:
    """Return the task with access to the file systems of Hadoop, if this process has used one."""
    return partial(_run, _access(spark), task) if has_client() else task


def _run(access: TaskAccess, task: ArrowTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    use_access(access)
    yield from task(batches)


def _access(spark: SparkSession) -> TaskAccess:
    if not hasattr(spark, "_jsparkSession"):
        return TaskAccess()
    context = spark.sparkContext
    if str(context.master).partition("[")[0] == "local":
        gateway: Any = context._gateway
        parameters = gateway.gateway_parameters
        is_pinned = type(gateway).__name__ == "ClientServer"
        return TaskAccess(port=parameters.port, secret=parameters.auth_token, is_pinned=is_pinned)
    client = client_of_driver(context)
    sink = client.new("java.io.StringWriter")()
    client.configuration.writeXml(sink)
    return TaskAccess(settings=_own_settings(sink.toString()))


def _own_settings(xml: str) -> dict[str, str]:
    """Return the settings of Hadoop that are not its defaults."""
    settings = {}
    for one in ElementTree.fromstring(xml).iter("property"):
        name, value = one.findtext("name") or "", one.findtext("value") or ""
        is_default = any((source.text or "").endswith(_DEFAULTS) for source in one.iter("source"))
        if name.startswith(_SENT) and not name.startswith(_KEPT) and not is_default:
            settings[name] = value
    return settings
