"""Check the packages: those always needed, PySpark, each extra, and what PySpark asks of pandas and pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from pyspark_delta._version import __version__
from pyspark_delta.cli.doctor.check import Check
from pyspark_delta.cli.doctor.requirements import Requirement, extras_of, requirements_of, version_of

_OURS = "pyspark-delta"
_PURPOSES = {
    "catalog": "catalogs in SQLite, and Unity Catalog",
    "cli": "the command line",
    "cloud": "S3, Google Cloud Storage and Azure without Hadoop",
    "connect": "Spark Connect",
    "polars": "a faster reader without Spark",
    "postgresql": "catalogs in PostgreSQL",
    "server": "the catalog server",
    "spark": "PySpark",
}
# Modules that have another name than their distribution. An empty name: nothing that can be imported by itself.
_MODULES = {
    "googleapis-common-protos": "google.rpc.status_pb2",
    "grpcio": "grpc",
    "grpcio-status": "grpc_status",
    "psycopg-binary": "",
}
_FOR_ARROW = ("pandas", "pyarrow", "numpy")


def check_packages() -> Iterator[Check]:
    """Check this package and what it always needs."""
    installed = version_of(_OURS)
    if installed is None:
        yield Check(
            _OURS,
            "warning",
            f"{__version__}, imported from a folder; it is not installed, so its requirements are unknown",
            "pip install the wheel, or the folder of the sources",
        )
        return
    if installed != __version__:
        yield Check(
            _OURS,
            "failed",
            f"{__version__} is imported, but {installed} is installed",
            "remove the other copy from PYTHONPATH, or install this one",
        )
    else:
        yield Check(_OURS, "ok", __version__)
    for needed in requirements_of(_OURS):
        yield _check(needed, f"pip install --upgrade '{needed.name}{needed.shown}'")


def check_pyspark() -> Check:
    """Check that PySpark is installed in a version that this package supports."""
    needed = next((found for found in requirements_of(_OURS, "spark") if found.name == "pyspark"), None)
    version = version_of("pyspark")
    remedy = f"pip install --upgrade '{_OURS}[spark]'"
    if version is None:
        return Check("pyspark", "failed", "not installed", remedy)
    if needed is not None and not needed.admits(version):
        return Check("pyspark", "failed", f"{version}, but {needed.shown} is supported", remedy)
    return Check("pyspark", "ok", version)


def check_extras() -> Iterator[Check]:
    """Check each extra: whether its packages are installed in versions that fit, and can be imported."""
    for extra in extras_of(_OURS):
        if extra not in ("all", "spark"):
            yield _check_extra(extra)


def check_arrow_of_pyspark() -> Iterator[Check]:
    """Check pandas and pyarrow against what the installed PySpark asks for, and against what it supports fully."""
    bounds: dict[str, tuple[tuple[str, str], ...]] = {}
    for needed in (*requirements_of("pyspark", "sql"), *requirements_of(_OURS, "spark")):
        if needed.name in _FOR_ARROW:
            bounds[needed.name] = bounds.get(needed.name, ()) + needed.bounds
    for name, every in bounds.items():
        needed = Requirement(name, (), tuple(dict.fromkeys(every)), "sql")
        version = version_of(name)
        title, remedy = f"{name} for PySpark", f"pip install '{name}{needed.shown}'"
        if version is None:
            yield Check(title, "failed", "not installed", remedy)
        elif not needed.admits(version):
            yield Check(title, "failed", f"{version}, but this PySpark needs {needed.shown}", remedy)
        else:
            yield Check(title, "ok", version)


def _check(needed: Requirement, remedy: str) -> Check:
    version = version_of(needed.name)
    if version is None:
        return Check(needed.name, "failed", "not installed", remedy)
    if not needed.admits(version):
        return Check(needed.name, "failed", f"{version}, but {needed.shown} is needed", remedy)
    failure = _import_failure(needed.name)
    if failure:
        return Check(needed.name, "failed", f"{version} cannot be imported: {failure}", f"reinstall it: {remedy}")
    return Check(needed.name, "ok", version)


def _check_extra(extra: str) -> Check:
    """Check all packages of an extra, and report them on one line."""
    title, remedy = f"extra {extra}", f"pip install --upgrade '{_OURS}[{extra}]'"
    checks = [_check(needed, remedy) for needed in _packages_of(extra)]
    missing = [check.name for check in checks if check.found == "not installed"]
    if missing:
        purpose = _PURPOSES.get(extra, extra)
        return Check(title, "optional", f"{', '.join(missing)} not installed; needed for {purpose}", remedy)
    wrong = [f"{check.name} {check.found}" for check in checks if check.status == "failed"]
    if wrong:
        return Check(title, "failed", "; ".join(wrong), remedy)
    return Check(title, "ok", ", ".join(f"{check.name} {check.found}" for check in checks))


def _packages_of(extra: str) -> Iterator[Requirement]:
    """Yield the packages of an extra, and those that the extras of these packages add."""
    seen: set[str] = set()
    for needed in requirements_of(_OURS, extra):
        inner = [found for name in needed.extras for found in requirements_of(needed.name, name)]
        for found in (needed, *inner):
            if found.name not in seen:
                seen.add(found.name)
                yield found


def _import_failure(distribution: str) -> str:
    """Return why the module of a distribution cannot be imported, or an empty text."""
    module = _MODULES.get(distribution, distribution.replace("-", "_"))
    if module and module != "pyspark":  # PySpark is tried by the session, in another process
        try:
            import_module(module)
        except Exception as error:  # also ImportError of a native library, and what a broken package raises
            return str(error).partition("\n")[0] or type(error).__name__
    return ""
