"""Installs SQL into a classic session, and removes it.

Spark has no public way to add a catalog object to a running session. So private fields are set by reflection, and
`uninstall` restores them. `install` first tries once whether the internals are as expected; if not, the session stays
as it is, with a warning.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from pyspark.errors import ParseException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from pyspark_delta.catalog.connections import connected_names, on_change
from pyspark_delta.catalog.contract import TableName
from pyspark_delta.catalog.names import resolve, resolve_or_create
from pyspark_delta.errors import CatalogNameNotFoundError, DeltaWarning, InvalidOperationError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.probing import probing
from pyspark_delta.spark.conf.sessions import session_key, settings_like
from pyspark_delta.spark.frames.catalyst.error_relay import pass_expected
from pyspark_delta.spark.frames.catalyst.nodes import texts
from pyspark_delta.spark.frames.catalyst.proxies import JavaProxy
from pyspark_delta.spark.frames.catalyst.scan import unavailable
from pyspark_delta.spark.frames.tables import open_snapshot, read_options
from pyspark_delta.spark.hadoop.default_system import on_default_system
from pyspark_delta.spark.session.identifiers import CATALOG_SETTING, Identified, of_catalog
from pyspark_delta.spark.sql import transactions
from pyspark_delta.spark.sql.classic.call import Procedures, has_procedures
from pyspark_delta.spark.sql.classic.catalogs import DeltaCatalogProxy
from pyspark_delta.spark.sql.classic.connected import ConnectedCatalog
from pyspark_delta.spark.sql.classic.entries import SESSION_CATALOG
from pyspark_delta.spark.sql.classic.functions import BY_NAME, BY_PATH, ChangesFunction, register
from pyspark_delta.spark.sql.classic.parser import install_parser
from pyspark_delta.spark.sql.classic.paths import PATH_CATALOG, PROBE, PathCatalog, path_in
from pyspark_delta.spark.sql.classic.relations import CACHE_SIZE, Relations
from pyspark_delta.spark.sql.classic.session_catalog import SessionCatalogProxy
from pyspark_delta.spark.sql.classic.sessions import SessionReference
from pyspark_delta.spark.sql.classic.table_call import TableCalls

_CATALOGS = "spark.sql.catalog."
_SESSION_CATALOG = "spark.sql.catalog.spark_catalog"
_BUILTIN = "builtin"  # the value of that setting for Spark's own catalog
_EXTENSIONS = "spark.sql.extensions"
_OF_DELTA_SPARK = re.compile(r"(?:io\.delta|org\.apache\.spark\.sql\.delta)\.[\w.$]+")
_DELTA_SPARK_CLASS = "io/delta/sql/DeltaSparkSessionExtension.class"
_RESERVED = frozenset((PATH_CATALOG, "spark_catalog", "system", "session", "global_temp"))

_lock = RLock()


@dataclass
class Installation:
    """What was changed in a session: the catalogs that were added, by name, and how to restore everything else."""

    session: SessionReference
    relations: Relations
    calls: Procedures | TableCalls
    map: Any
    catalogs: dict[str, JavaProxy] = field(default_factory=dict)
    undo: list[Callable[[], object]] = field(default_factory=list)
    session_catalog: SessionCatalogProxy | None = None

    def add(self, name: str, catalog: JavaProxy) -> None:
        """Add a catalog to the session."""
        self.map.put(name, catalog)
        catalog.set_java_side(self.map.apply(name))
        self.catalogs[name] = catalog

    def remove(self, name: str) -> None:
        """Remove a catalog from the session. If it is the current one, Spark's catalog becomes the current one."""
        manager = self.session.state.catalogManager()
        if manager.currentCatalog().name() == name:
            manager.setCurrentCatalog("spark_catalog")
        self.map.remove(name)
        self.catalogs.pop(name).release()

    def replace_session_catalog(self, manager: Any) -> None:
        """Put a proxy with Delta tables in front of Spark's session catalog."""
        place = self.session.jvm.field(manager, "defaultSessionCatalog")
        before = place.get(manager)
        self.session_catalog = SessionCatalogProxy(self.session, before, self.relations)
        place.set(manager, self.session_catalog)
        self.undo.append(lambda: place.set(manager, before))

    def add_parser(self) -> None:
        """Put a parser with Delta's statements around Spark's."""
        self.undo.append(install_parser(self.session, self.calls))

    def add_functions(self) -> None:
        """Add the table functions."""
        for name, open_table in ((BY_NAME, self.open_table), (BY_PATH, self.open_path)):
            self.undo.append(register(self.session, ChangesFunction(self.session, name, open_table), name))

    def open_path(self, path: str) -> Snapshot:
        """Return the latest snapshot of the table at a path."""
        return open_snapshot(read_options(self.session.spark, on_default_system(self.session.spark, path)))

    def open_table(self, name: str) -> Snapshot:
        """Return the latest snapshot of the table that a name means where it is used. Raises InvalidOperationError."""
        catalog, parts = self.qualified(texts(self.session.state.sqlParser().parseMultipartIdentifier(name)))
        if catalog == SESSION_CATALOG and self.session_catalog is not None:
            return self.session_catalog.open(parts)
        found = self.catalogs.get(catalog)
        if not isinstance(found, DeltaCatalogProxy):
            raise InvalidOperationError(
                f"'{name}' is not a Delta table: its catalog '{catalog}' has none.",
                error_class="DELTA_MISSING_DELTA_TABLE",
            )
        return found.open(parts)

    def identify(self, text: str, *, create: bool) -> Identified | None:
        """Return the Delta table of a name; None if there is none."""
        try:
            with probing():
                named = texts(self.session.state.sqlParser().parseMultipartIdentifier(text))
        except ParseException:
            return None
        if not create and self.session.catalog.isTempView(self.session.jvm.seq(named)):
            return None
        catalog, parts = self.qualified(named)
        if catalog == SESSION_CATALOG:
            return self._in_session_catalog(parts, create=create)
        if catalog == PATH_CATALOG:
            path = path_in(parts)
            return None if path is None else Identified(path)
        if catalog not in self.catalogs or len(parts) != 2:
            return None
        name = TableName(catalog, *parts)
        try:
            found = (resolve_or_create if create else resolve)(name)
        except CatalogNameNotFoundError:
            if create:
                raise
            return None
        return of_catalog(name, found)

    def _in_session_catalog(self, parts: tuple[str, ...], *, create: bool) -> Identified | None:
        catalog = self.session_catalog
        if catalog is None or len(parts) != 2:
            return None
        location, name = catalog.location(parts), ".".join((SESSION_CATALOG, *parts))
        if location is not None:
            return Identified(location, whole_name=name)
        if not create or catalog.exists(parts):
            return None

        def register(place: str, is_external: bool) -> None:
            catalog.register(parts, place, is_external=is_external)

        return Identified(catalog.new_location(parts), whole_name=name, register=register)

    def qualified(self, parts: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Return the catalog of a name and the other parts, as Spark completes names in queries and inside views."""
        manager = self.session.state.catalogManager()
        analysis = self.session.jvm.module("org.apache.spark.sql.catalyst.analysis.AnalysisContext").get()
        where = texts(analysis.catalogAndNamespace())
        where = where or (str(manager.currentCatalog().name()), *map(str, manager.currentNamespace()))
        if len(parts) == 1:
            return where[0], (*where[1:], *parts)
        if manager.isCatalogRegistered(parts[0]):
            return parts[0], parts[1:]
        return where[0], parts

    def remove_everything(self) -> None:
        """Restore the session."""
        for name in list(self.catalogs):
            self.remove(name)
        for restore in reversed(self.undo):
            restore()
        self.undo.clear()
        self.relations.clear()

    def update_connected(self) -> None:
        """Add the catalogs that are connected now, or named by the session's settings, and remove the others.

        A name that Spark knows from a setting of its own stays Spark's.
        """
        ours, of_spark = (self._catalogs_of_settings(prefix) for prefix in (CATALOG_SETTING, _CATALOGS))
        wanted = {*connected_names(), *ours} - of_spark
        wanted = {name for name in wanted if name.lower() not in _RESERVED}
        for name in set(self.catalogs) - wanted - {PATH_CATALOG}:
            self.remove(name)
        for name in wanted - set(self.catalogs):
            self.add(name, ConnectedCatalog(self.session, name, self.relations))

    def _catalogs_of_settings(self, prefix: str) -> set[str]:
        """Return the names of catalogs in the settings with a prefix; what follows another dot is an option of one."""
        return {name.removeprefix(prefix) for name in settings_like(self.session.spark, re.escape(prefix) + r"[^.]+")}


_installed: dict[str, Installation] = {}  # by session
_working: list[Any] = []  # the gateway of a JVM in which SQL has been tried and works


def install(spark: SparkSession) -> None:
    """Let the statements of a classic session use Delta tables; do nothing if they can already.

    If the session does not allow it, warn once with the reason, and change nothing.
    """
    with _lock:
        key = session_key(spark)
        if key in _installed:
            return
        reason = obstacle(spark)
        if reason is not None:
            _warn(reason)
            return
        failure: str | None
        try:
            _installed[key] = _install(spark)
            failure = _try(spark)
        except Exception as error:
            failure = _first_line(error)
        if failure is not None:
            uninstall(spark)
            _warn(f"this Spark does not take catalogs from Python ({failure})")
            return
    on_change(update_connected)


def uninstall(spark: SparkSession) -> None:
    """Restore a session to what it was before `install`. An open transaction is rolled back."""
    transactions.end(spark)
    with _lock:
        installation = _installed.pop(session_key(spark), None)
        if installation is not None:
            installation.remove_everything()


def is_installed(spark: SparkSession) -> bool:
    """Return True if statements of the session can use Delta tables."""
    return bool(_installed) and session_key(spark) in _installed


def identify(spark: SparkSession, text: str, *, create: bool) -> Identified | None:
    """Return the Delta table that a name means in a session, as `sql_hooks.find_named`. Raises CatalogError."""
    installation = _installed.get(session_key(spark))
    return None if installation is None else installation.identify(text, create=create)


def update_connected() -> None:
    """Bring the catalogs of all sessions up to date with the connections of this process."""
    with _lock:
        for key, installation in list(_installed.items()):
            if installation.session.is_stopped:
                del _installed[key]
            else:
                installation.update_connected()


def obstacle(spark: SparkSession) -> str | None:
    """Return why SQL cannot be installed into a session: a part of a sentence; None if it can."""
    catalog = spark.conf.get(_SESSION_CATALOG, None) or _BUILTIN
    of_delta = [
        f"{name}={value}"
        for name, value in ((_SESSION_CATALOG, catalog), (_EXTENSIONS, spark.conf.get(_EXTENSIONS, None) or ""))
        if _OF_DELTA_SPARK.search(value)
    ]
    if of_delta:
        return f"delta-spark is configured for it: remove the settings {', '.join(of_delta)}"
    if catalog != _BUILTIN:
        return f"its catalog is '{catalog}': remove the setting {_SESSION_CATALOG}"
    loader = spark._jvm.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    if loader.getResource(_DELTA_SPARK_CLASS) is not None:
        return "the JAR of delta-spark is on its class path: remove it from spark.jars and spark.jars.packages"
    if spark.conf.get(CACHE_SIZE, "1000") == "0":
        return f"its cache of relations is off: remove the setting {CACHE_SIZE}=0"
    reason = unavailable(spark)
    return None if reason is None else f"this Spark cannot use a file index in Python ({reason})"


def _install(spark: SparkSession) -> Installation:
    """Put everything into a session. If something does not fit, remove it again and raise."""
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    pass_expected(spark.sparkContext._gateway)
    session = SessionReference(spark)
    manager = session.state.catalogManager()
    catalogs = session.jvm.field(manager, "catalogs").get(manager)
    relations = Relations(session)
    calls = Procedures(session.jvm) if has_procedures(session.jvm) else TableCalls(session, relations)
    installation = Installation(session, relations, calls, catalogs)
    try:
        installation.add(PATH_CATALOG, PathCatalog(session, relations, getattr(calls, "load", None)))
        installation.replace_session_catalog(manager)
        installation.add_functions()
        installation.add_parser()
        installation.update_connected()
    except Exception:
        installation.remove_everything()
        raise
    return installation


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else repr(error)


def _try(spark: SparkSession) -> str | None:
    """Return what fails if a query names a table of the catalog `delta`; None if it works. It is tried once per JVM."""
    gateway = spark.sparkContext._gateway
    if _working and _working[-1] is gateway:
        return None
    try:
        with probing():
            plan = spark._jsparkSession.sql(f"SELECT * FROM {PATH_CATALOG}.`{PROBE}`").queryExecution().analyzed()
        found = str(plan.output().head().name())
    except Exception as error:
        return _first_line(error)
    if found != "id":
        return f"a query returned the column {found}"
    _working[:] = [gateway]
    return None


def _warn(reason: str) -> None:
    warnings.warn(
        f"SQL statements of the Spark session cannot name Delta tables, because {reason}. DataFrames and DeltaTable "
        "work.",
        DeltaWarning,
        stacklevel=5,
    )
