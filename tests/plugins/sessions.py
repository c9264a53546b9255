"""Spark sessions for tests: a process has one kind, with its siblings: classic, Spark Connect, or that of a cluster."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pyspark
import pytest
from pyspark import SparkConf, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType, _parse_datatype_string

from pyspark_delta.spark.conf.arrow import collect_arrow
from pyspark_delta.spark.session.enable import disable, enable

if not hasattr(DataFrame, "toArrow"):  # PySpark 3.5: tests use names of 4.0 in their own code
    DataFrame.toArrow = collect_arrow
    StructType.fromDDL = classmethod(lambda _, text: _parse_datatype_string(text))

SOURCES = Path(__file__).parents[2] / "src"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.scripting.enabled": "true",  # the default from PySpark 4.1 on
    "spark.sql.execution.arrow.pyspark.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.log.level": "OFF",
}
# What costs each test time, and concerns none: the imports of every new worker; five calls of the JVM for each call of
# a function of columns, to note its line for messages; code generated for few rows. The stage `cluster` has all of it,
# and generated code reads the golden tables.
LEAN = {
    "spark.python.daemon.module": "tests.plugins.warm_daemon",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# A JVM lives for minutes at most: the second compiler costs more than its code gains, and there is little garbage. All
# of Spark's compiled methods find room; with one compiler the JVM gives them little, and compiles them again and again.
EXECUTOR = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
SHORT_LIVED = f"{EXECUTOR} -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=256m -Xms1g -Xmn400m"


def pytest_configure(config: pytest.Config) -> None:
    """Every JVM that Spark starts, in this process and those below it, takes these options beside its own."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", SHORT_LIVED)
    if find_spec("pyspark.sql.streaming.datasource") is None:
        # PySpark before 4.2 leaves the sockets of collected rows to the garbage collector.
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
    if find_spec("pyspark.sql.classic") is None:  # PySpark 3.5 compares versions by means of Python's standard library
        config.addinivalue_line("filterwarnings", "ignore:distutils Version classes:DeprecationWarning")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The classic session of this process."""
    session = _start(SparkSession.builder.master("local[2]"), tmp_path_factory, LEAN)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def delta_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """A classic session for which `enable` was called."""
    session = enable(spark.newSession())
    yield session
    disable(session)


@pytest.fixture(scope="session")
def compiled_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """An enabled session that generates code for its plans, as sessions of users do."""
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "true")
    session.conf.set("spark.sql.codegen.factoryMode", "CODEGEN_ONLY")
    yield enable(session)
    disable(session)


@pytest.fixture(scope="session")
def plain_spark(spark: SparkSession) -> SparkSession:
    """A classic session that has only the Python Data Source."""
    session = spark.newSession()
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    return session


@pytest.fixture(scope="session")
def plain_connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The Spark Connect session of this process, with a server of its own."""
    # Spark that knows that it is tested runs rules twice to compare: its JVM is started before it is told.
    _prepare_environment()
    with _without_zipped_pyspark(tmp_path_factory):
        SparkContext._ensure_initialized(conf=SparkConf().setAll(list({**SETTINGS, **LEAN}.items())))
    os.environ["SPARK_TESTING"] = "1"  # the server takes any free port, and the client asks it which
    session = _start(SparkSession.builder.remote("local[2]"), tmp_path_factory, LEAN)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def delta_connect(plain_connect: SparkSession) -> Iterator[SparkSession]:
    """The Spark Connect session, with `enable` called for it."""
    yield enable(plain_connect)
    disable(plain_connect)


@pytest.fixture(scope="session")
def plain_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session of a cluster whose two executors are processes of their own."""
    executors = {"spark.executor.extraJavaOptions": EXECUTOR}
    session = _start(SparkSession.builder.master("local-cluster[2,1,1024]"), tmp_path_factory, executors)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def delta_cluster(plain_cluster: SparkSession) -> Iterator[SparkSession]:
    """A session of the cluster for which `enable` was called."""
    session = enable(plain_cluster.newSession())
    yield session
    disable(session)


@pytest.fixture
def count_jobs(spark: SparkSession) -> Callable[[Callable[[], object]], int]:
    """How many Spark jobs a function starts."""

    def count(function: Callable[[], object]) -> int:
        context = spark.sparkContext
        group = f"count-jobs-{os.urandom(4).hex()}"
        context.setJobGroup(group, "counted by a test")
        try:
            function()
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)
        return len(context.statusTracker().getJobIdsForGroup(group))

    return count


def _prepare_environment() -> None:
    """Spark's Python processes must be those of this environment, and find the package where it is not installed."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(SOURCES), str(SOURCES.parent), os.environ.get("PYTHONPATH")])
    )


@contextmanager
def _without_zipped_pyspark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A JVM that starts here lets workers import the PySpark that is installed, not Spark's zipped copy of it.

    What is zipped is compiled again by every process that forks workers, and read again by each worker. Executors that
    are processes of their own are started from the folder, and leave their files in it.
    """
    home, installed = tmp_path_factory.mktemp("spark"), Path(pyspark.__file__).parent
    for folder in ("bin", "jars"):
        (home / folder).symlink_to(installed / folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(home))
        yield


def _start(
    builder: SparkSession.Builder, tmp_path_factory: pytest.TempPathFactory, more: Mapping[str, str]
) -> SparkSession:
    _prepare_environment()
    for name, value in {**SETTINGS, **more}.items():
        builder = builder.config(name, value)
    warehouse = tmp_path_factory.mktemp("warehouse")
    with warnings.catch_warnings(), _without_zipped_pyspark(tmp_path_factory):
        # Spark Connect starts its server with all settings, and then says which cannot be set in the session as well.
        warnings.filterwarnings("ignore", "Failed to set", UserWarning)
        return builder.config("spark.sql.warehouse.dir", str(warehouse)).getOrCreate()
