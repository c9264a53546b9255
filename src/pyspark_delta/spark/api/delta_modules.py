"""`install_as_delta()`: code that imports `delta`, the module of delta-spark, uses the classes of this package."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import metadata
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from pyspark_delta import errors
from pyspark_delta._version import __version__
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.spark.api.builder import DeltaTableBuilder, IdentityGenerator
from pyspark_delta.spark.api.merge_builder import DeltaMergeBuilder
from pyspark_delta.spark.api.optimize_builder import DeltaOptimizeBuilder
from pyspark_delta.spark.api.table import DeltaTable
from pyspark_delta.spark.session.delta_spark_settings import without_delta_spark
from pyspark_delta.spark.session.enable import configure_spark_with_delta_pip, enable

_EXCEPTIONS = (
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "DeltaConcurrentModificationException",
    "MetadataChangedException",
    "ProtocolChangedException",
)
_ORIGIN = "pyspark_delta.install_as_delta()"


def install_as_delta() -> None:
    """Make `import delta` give the classes of this package, so that code written for delta-spark runs unchanged.

    The modules are `delta`, `delta.tables`, `delta.exceptions`, `delta.pip_utils` and `delta.version`, with the public
    names of delta-spark's. `delta.configure_spark_with_delta_pip(builder)` also removes delta-spark's classes and JAR
    from the settings of the builder, and calls `enable` for its session. Call it before the first `import delta`;
    calling it again changes nothing.

    Raises InvalidOperationError if delta-spark or another module `delta` is installed, and MissingDependencyError
    without PySpark. Nothing has changed then.

    >>> install_as_delta()
    >>> from delta.tables import DeltaTable
    """
    present = sys.modules.get("delta")
    if present is not None and getattr(present.__spec__, "origin", None) == _ORIGIN:
        return
    _refuse_another_delta()
    sys.modules.update(_modules())


def configure_builder(spark_session_builder: Any, extra_packages: list[str] | None = None) -> Any:
    """Return the builder, whose sessions are enabled and have no settings of delta-spark.

    `extra_packages` become `spark.jars.packages`.
    """
    builder = configure_spark_with_delta_pip(spark_session_builder, extra_packages)
    for name in ("getOrCreate", "create"):
        if hasattr(builder, name):
            setattr(builder, name, _enabling(builder, getattr(builder, name)))
    return builder


def _enabling(builder: Any, start: Callable[[], Any]) -> Callable[[], Any]:
    def start_enabled() -> Any:
        # At the start, because settings may be added to the builder until then.
        kept = without_delta_spark(builder._options)
        builder._options.clear()
        builder._options.update(kept)
        return enable(start())

    return start_enabled


def _refuse_another_delta() -> None:
    """Raise InvalidOperationError if another distribution has the module `delta`.

    A folder `delta` without code, which Python takes for a namespace, is no reason.
    """
    try:
        version = metadata.version("delta-spark")
    except metadata.PackageNotFoundError:
        spec = find_spec("delta")
        if spec is None or spec.origin is None:
            return
        found, remedy = f"another module 'delta' is at {spec.origin}", "Remove or rename it"
    else:
        found, remedy = f"delta-spark {version} is installed, and 'import delta' means it", "Uninstall delta-spark"
    raise InvalidOperationError(
        f"install_as_delta cannot provide the module 'delta': {found}. {remedy}, or import from pyspark_delta instead."
    )


def _modules() -> dict[str, ModuleType]:
    """Return the modules by name. Every submodule is an attribute of `delta`, as after an import."""
    version = {"__version__": __version__}
    configure = {"configure_spark_with_delta_pip": configure_builder}
    tables = (DeltaTable, DeltaMergeBuilder, IdentityGenerator, DeltaTableBuilder, DeltaOptimizeBuilder)
    contents: dict[str, dict[str, Any]] = {
        "delta": {"DeltaTable": DeltaTable, **configure, **version},
        "delta.tables": {found.__name__: found for found in tables},
        "delta.exceptions": {name: getattr(errors, name) for name in _EXCEPTIONS},
        "delta.pip_utils": configure,
        "delta.version": version,
    }
    made = {name: _module(name, names) for name, names in contents.items()}
    for name, module in made.items():
        if name != "delta":
            setattr(made["delta"], name.rpartition(".")[2], module)
    return made


def _module(name: str, names: dict[str, Any]) -> ModuleType:
    is_package = name == "delta"
    module = ModuleType(name, f"Names of delta-spark's module `{name}`, made by {_ORIGIN}.")
    module.__spec__ = ModuleSpec(name, loader=None, origin=_ORIGIN, is_package=is_package)
    module.__package__ = "delta"
    if is_package:
        module.__path__ = []
    module.__dict__.update(names, __all__=list(names))
    return module
