"""Access of tasks to Hadoop's file systems: each task gets what it needs from the session, with its function."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_delta.engines.tasks import ArrowTask
from pyspark_delta.spark.hadoop.cloud_settings import PREFIXES, cloud_settings, driver_settings
from pyspark_delta.spark.hadoop.connections import TaskAccess, client_of_driver, has_client, use_access
from pyspark_delta.storage.paths import HADOOP_SCHEMES, LOCAL_SCHEME, canonical_scheme, split

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_SENT = ("fs.", "dfs.", "hadoop.", "ipc.")
_KEPT = (*PREFIXES, "fs.adl.")  # with secrets that a JVM for another file system does not need
_DEFAULTS = "-default.xml"


def with_hadoop_access(spark: SparkSession, task: ArrowTask) -> ArrowTask:
    """Return the task with the session's settings for object stores, and access to Hadoop's file systems if in use."""
    is_classic = hasattr(spark, "_jsparkSession")
    cloud = driver_settings(spark.sparkContext) if is_classic else {}
    if not has_client():
        return partial(_run, TaskAccess(cloud=cloud), task) if cloud else task
    access = _access(spark.sparkContext) if is_classic else TaskAccess()
    return partial(_run, replace(access, cloud=cloud), task)


def options_for_workers(spark: SparkSession, location: str, storage_options: Mapping[str, str]) -> Mapping[str, str]:
    """Return the storage options of a table for processes that get nothing else from the session.

    Options of the table replace the session's settings.
    """
    scheme = canonical_scheme(split(location)[0])
    if storage_options or scheme == LOCAL_SCHEME or not hasattr(spark, "_jsparkSession"):
        return storage_options
    return _session_settings(spark.sparkContext) if scheme in HADOOP_SCHEMES else cloud_settings(scheme)


def _run(access: TaskAccess, task: ArrowTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    use_access(access)
    yield from task(batches)


def _access(context: SparkContext) -> TaskAccess:
    if str(context.master).partition("[")[0] == "local":
        gateway: Any = context._gateway
        parameters = gateway.gateway_parameters
        is_pinned = type(gateway).__name__ == "ClientServer"
        return TaskAccess(port=parameters.port, secret=parameters.auth_token, is_pinned=is_pinned)
    return TaskAccess(settings=_session_settings(context))


def _session_settings(context: SparkContext) -> dict[str, str]:
    client = client_of_driver(context)
    sink = client.new("java.io.StringWriter")()
    client.configuration.writeXml(sink)
    return changed_settings(sink.toString())


def changed_settings(xml: str) -> dict[str, str]:
    """Return the settings in the XML of a Hadoop configuration that are not defaults and name no credentials."""
    settings = {}
    for one in ElementTree.fromstring(xml).iter("property"):
        name, value = one.findtext("name") or "", one.findtext("value") or ""
        is_default = any((source.text or "").endswith(_DEFAULTS) for source in one.iter("source"))
        if name.startswith(_SENT) and not name.startswith(_KEPT) and not is_default:
            settings[name] = value
    return settings
