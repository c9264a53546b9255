"""Which JVM has Hadoop's client for this process: that of the classic session, or one that the process starts.

- The driver of a classic session uses the session's JVM.
- A task of a local master uses it too: `TaskAccess` has the address and the secret of its gateway.
- Any other process, such as a task on a cluster, starts a JVM of its own when it first needs one. It ends with the
  process.
"""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyspark
from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from pyspark import SparkContext

from pyspark_delta.errors import MissingDependencyError
from pyspark_delta.spark.hadoop.client import HadoopClient

# A small heap holds blocks that are in flight; the client compiles little code.
_JVM_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True)
class TaskAccess:
    """How a task reaches Hadoop's client: by the driver's gateway, or with settings for a JVM of its own.

    `cloud` has the session's settings for object stores, which tasks reach without Hadoop.
    """

    port: int = 0
    secret: str = field(default="", repr=False)
    is_pinned: bool = True
    settings: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    cloud: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)


_given: TaskAccess | None = None


def use_access(access: TaskAccess) -> None:
    """Let this process, which runs a task, use what its driver gave it."""
    global _given
    _given = access


def given_access() -> TaskAccess | None:
    """Return what the driver gave this process; None if it runs no task."""
    return _given


def current_client() -> HadoopClient:
    """Return the client of this process. Raises MissingDependencyError if it cannot start a JVM."""
    context = SparkContext._active_spark_context
    if context is not None and context._gateway is not None:
        return client_of_driver(context)
    if _given is not None and _given.port:
        return _client_of_gateway(os.getpid(), _given.port, _given.secret, _given.is_pinned)
    return _own_client(os.getpid(), tuple(sorted((_given.settings if _given else {}).items())))


def has_client() -> bool:
    """Return True if this process has opened a file system of Hadoop."""
    return HadoopClient.opened


def client_of_driver(context: SparkContext) -> HadoopClient:
    """Return the client in the JVM of a classic session."""
    return _client_of_context(context._gateway, context.applicationId)


@lru_cache(maxsize=2)
def _client_of_context(gateway: Any, application: str) -> HadoopClient:
    context = SparkContext._active_spark_context
    assert context is not None
    return HadoopClient(gateway, context._jsc.hadoopConfiguration())


@lru_cache(maxsize=2)
def _client_of_gateway(process: int, port: int, secret: str, is_pinned: bool) -> HadoopClient:
    gateway: Any
    if is_pinned:
        java = JavaParameters(port=port, auth_token=secret, auto_convert=True)
        gateway = ClientServer(java_parameters=java, python_parameters=PythonParameters(port=0, eager_load=False))
    else:
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret, auto_convert=True))
    contexts = getattr(getattr(gateway.jvm, "org.apache.spark.SparkContext$"), "MODULE$")
    return HadoopClient(gateway, contexts.getActive().get().hadoopConfiguration())


# ----------------------------------------------------------------------------------------------- a JVM of its own
@lru_cache(maxsize=2)
def _own_client(process: int, settings: tuple[tuple[str, str], ...]) -> HadoopClient:
    jars = _jars()
    java = _java()
    _use_spark_user()
    classpath = os.pathsep.join(filter(None, [os.environ.get("HADOOP_CONF_DIR"), f"{jars}/*"]))
    port, secret = launch_gateway(
        jarpath=_py4j(jars),
        classpath=classpath,
        javaopts=list(_JVM_OPTIONS),
        java_path=java,
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret, auto_convert=True))
    configuration = gateway.jvm.org.apache.hadoop.conf.Configuration()
    for name, value in settings:
        configuration.set(name, value)
    return HadoopClient(gateway, configuration)


def _jars() -> str:
    """Return the folder of Spark's JARs, which hold Hadoop's client and py4j."""
    home = os.environ.get("SPARK_HOME")
    folders = [*([f"{home}/jars"] if home else []), str(Path(pyspark.__file__).parent / "jars")]
    for folder in folders:
        if glob.glob(f"{folder}/hadoop-client-api-*.jar"):
            return folder
    raise MissingDependencyError(
        f"Hadoop's client was not found in {' or '.join(folders)}. Set the environment variable SPARK_HOME to the "
        "folder of Spark on every worker (spark.executorEnv.SPARK_HOME)."
    )


def _py4j(jars: str) -> str:
    return glob.glob(f"{jars}/py4j-*.jar")[0]


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = f"{home}/bin/java" if home else shutil.which("java")
    if found is None or not os.access(found, os.X_OK):
        raise MissingDependencyError(
            f"Hadoop's client needs Java, and there is none at {found or 'any folder of the PATH'}. Set the "
            "environment variable JAVA_HOME."
        )
    return found


def _use_spark_user() -> None:
    """Access file systems as the user of the Spark application; Hadoop ignores the variable if it uses Kerberos."""
    user = os.environ.get("SPARK_USER")
    if user:
        os.environ.setdefault("HADOOP_USER_NAME", user)
