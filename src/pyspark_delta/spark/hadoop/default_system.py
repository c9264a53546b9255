"""Paths without a scheme: in a session they are on its default file system, `fs.defaultFS`, as for Spark itself.

Executors of a cluster whose default is HDFS would otherwise each write to a disk of their own.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from pyspark_delta.spark.hadoop.connections import client_of_driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:/")


def on_default_system(spark: SparkSession, path: Any) -> Any:
    """Return a user's path with the file system on which Spark looks for it; unchanged if that is the local one.

    Relative paths start from the user's directory on that file system. Anything but a text is returned unchanged: a
    `Path` is local.
    """
    if not isinstance(path, str) or not path or _SCHEME.match(path) or not hasattr(spark, "_jsparkSession"):
        return path
    client = client_of_driver(spark.sparkContext)
    default = str(client.configuration.get("fs.defaultFS") or "file:///")
    if default.startswith("file:"):
        return path
    if path.startswith("/"):
        return default.rstrip("/") + os.path.normpath("/" + path.lstrip("/"))
    return f"{client.home_directory(default)}/{path}"
