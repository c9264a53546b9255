"""Python objects that implement interfaces of Java: each method of an interface is decided about, on every PySpark."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyspark_delta.spark import streaming
from pyspark_delta.spark.frames.catalyst.file_index import DeltaFileIndex
from pyspark_delta.spark.frames.catalyst.jvm import Jvm, jvm_of
from pyspark_delta.spark.frames.catalyst.proxies import JavaProxy
from pyspark_delta.spark.sql import classic
from pyspark_delta.spark.sql.classic.session_catalog import SessionCatalogProxy

pytestmark = pytest.mark.smoke

_CATALOG = "org.apache.spark.sql.connector.catalog"

# Default methods that Python does not have: the JVM runs them, or Spark does not call them on objects of this package.
LEFT_TO_THE_JVM = {
    "Function1": {"andThen", "compose"},
    "LocalScan": {
        *("toBatch", "toMicroBatchStream", "toContinuousStream", "columnarSupportMode"),
        *("supportedCustomMetrics", "reportDriverMetrics"),
    },
    "Sink": {"schema", "capabilities", "id", "columns", "partitioning", "properties", "constraints", "version"},
    "SupportsDynamicOverwrite": {"buildForBatch", "buildForStreaming"},
    "SupportsOverwriteV2": {"buildForBatch", "buildForStreaming"},
    "V1Write": {"toBatch", "toStreaming"},
}


def proxies() -> Iterator[type]:
    """Every class of the package that names interfaces of Java."""
    yield DeltaFileIndex
    for package in (classic, streaming):
        for module in iter_modules(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    left = [JavaProxy]
    while left:
        proxy = left.pop()
        left += proxy.__subclasses__()
        if proxy.Java.implements and not proxy.__subclasses__():
            yield proxy


@pytest.mark.parametrize("proxy", list(proxies()))
def test_every_method_of_an_interface_is_decided(spark: SparkSession, proxy: Any) -> None:
    """A new Spark may add methods: each is implemented, or known to be left to the JVM."""
    jvm = jvm_of(spark)
    for interface in proxy.Java.implements:  # Spark 3.5 has no procedures
        assert not jvm.has_class(interface) or undecided(jvm, proxy, interface) == set(), interface


def test_every_method_of_the_session_catalog_is_decided(spark: SparkSession) -> None:
    """What its proxy does not implement, Spark's own catalog does."""
    jvm, manager = jvm_of(spark), spark._jsparkSession.sessionState().catalogManager()
    before = jvm.field(manager, "defaultSessionCatalog").get(manager)
    for interface in ("StagingTableCatalog", "CatalogExtension"):
        left = undecided(jvm, SessionCatalogProxy, f"{_CATALOG}.{interface}")
        assert left <= {str(method.getName()) for method in before.getClass().getMethods()}, interface


def undecided(jvm: Jvm, proxy: type, interface: str) -> set[str]:
    methods: list[Any] = list(jvm.load_class(interface).getMethods())
    names = {
        str(one.getName()) for one in methods if not jvm.root.java.lang.reflect.Modifier.isStatic(one.getModifiers())
    }
    left = LEFT_TO_THE_JVM.get(interface.rpartition(".")[2], set())
    return {name for name in names if not hasattr(proxy, name) and name not in left and "$" not in name}
