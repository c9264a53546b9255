"""From the parts of a name in SQL to a Delta table: a path, a table of a connected catalog, or one of the session's.

Spark has parsed the name, so its parts are exact, and nothing here parses text again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from pyspark_delta.errors import CatalogNameNotFoundError, TableNotFoundError
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.api.table import DeltaTable
from pyspark_delta.spark.conf.sessions import FORMATS
from pyspark_delta.spark.frames.catalyst.jvm import jvm_of
from pyspark_delta.spark.frames.tables import open_snapshot, read_options
from pyspark_delta.spark.hadoop.default_system import on_default_system
from pyspark_delta.spark.session.identifiers import identify, is_in_catalog
from pyspark_delta.spark.sql.classic.entries import SESSION_CATALOG, entry_location, find_entry, is_delta_entry
from pyspark_delta.spark.sql.classic.sessions import catalog_manager, session_catalog
from pyspark_delta.storage import normalize_location
from pyspark_delta.storage.paths import is_absolute

_GLOBAL_VIEWS = "spark.sql.globalTempDatabase"


@dataclass(frozen=True)
class SqlTable:
    """A Delta table as a statement names it.

    `name` are the parts of its whole name, which qualify its columns. `location` may not exist yet.
    """

    name: tuple[str, ...]
    location: str
    storage_options: Mapping[str, str] = field(repr=False, default_factory=dict, hash=False)
    catalog_table: CatalogTable | None = None

    @property
    def text(self) -> str:
        """The name as SQL shows it."""
        return ".".join(part if part.isidentifier() else quoted(part) for part in self.name)

    @property
    def catalog_name(self) -> str | None:
        """The name in a catalog as DESCRIBE DETAIL shows it; None for a path."""
        return None if is_path_name(self.name) else ".".join(self.name)

    def snapshot(self) -> Snapshot:
        """Return the newest version. Raises as `Snapshot.load`."""
        return Snapshot.load(self.location, storage_options=self.storage_options, catalog_table=self.catalog_table)

    def selected(self, spark: SparkSession) -> Snapshot:
        """Return the version that a path selects, as in ``delta.`/path@v3` ``, otherwise the newest one."""
        if not is_path_name(self.name):
            return self.snapshot()
        return open_snapshot(read_options(spark, on_default_system(spark, self.name[1])))

    def delta_table(self, spark: SparkSession) -> DeltaTable:
        """Return the table with the methods that statements call. They open the table."""
        return DeltaTable(spark, self.location, self.storage_options, self.catalog_table, name=self.catalog_name)


def is_path_name(parts: Sequence[str]) -> bool:
    """Return True for the parts of a name such as ``delta.`/path` ``.

    The path is absolute, because `delta` may also be a schema of the session catalog.
    """
    return len(parts) == 2 and parts[0].lower() in FORMATS and is_absolute(parts[1])


def is_delta_name(spark: SparkSession, parts: Sequence[str]) -> bool:
    """Return True if a name is that of a Delta table. A path, or a table of a connected catalog, need not exist."""
    if is_path_name(parts):
        return True
    name = whole_name(spark, parts)
    return _is_connected(spark, name) or _session_location(spark, name) is not None


def is_session_table(spark: SparkSession, parts: Sequence[str]) -> bool:
    """Return True if a name is that of a Delta table in Spark's session catalog."""
    return not is_path_name(parts) and _session_location(spark, whole_name(spark, parts)) is not None


def has_only_delta_tables(spark: SparkSession, parts: Sequence[str]) -> bool:
    """Return True for a path, and for a name in a connected catalog: there are no tables of other formats."""
    return is_path_name(parts) or _is_connected(spark, whole_name(spark, parts))


def table_exists(spark: SparkSession, parts: Sequence[str]) -> bool:
    """Return True if a name is that of a table of any format, or of a permanent view. Raises CatalogError."""
    if not is_path_name(parts) and is_in_session_catalog(name := whole_name(spark, parts)):
        return session_entry(spark, name) is not None
    try:
        table = find_table(spark, parts)
        return table is not None and table.snapshot() is not None
    except (CatalogNameNotFoundError, TableNotFoundError):
        return False


def find_table(spark: SparkSession, parts: Sequence[str]) -> SqlTable | None:
    """Return the Delta table of a name; None if the name is that of another table, of a view, or of nothing.

    Raises CatalogNameNotFoundError for a table that a connected catalog does not have, and CatalogError.
    """
    if is_path_name(parts):
        return SqlTable(tuple(parts), normalize_location(on_default_system(spark, parts[1])))
    name = whole_name(spark, parts)
    if _is_connected(spark, name):
        found = identify(spark, ".".join(map(quoted, name)))
        assert found is not None
        return SqlTable(name, normalize_location(found.path), found.storage_options, found.catalog_table)
    location = _session_location(spark, name)
    return None if location is None else SqlTable(name, location)


def is_temporary_view(spark: SparkSession, parts: Sequence[str]) -> bool:
    """Return True if a name is that of a temporary view, which comes before tables."""
    if len(parts) == 1:
        return bool(session_catalog(spark).getRawTempView(parts[0]).isDefined())
    if len(parts) != 2 or is_path_name(parts) or parts[0].lower() != str(spark.conf.get(_GLOBAL_VIEWS)).lower():
        return False
    return bool(session_catalog(spark).getRawGlobalTempView(parts[1]).isDefined())


def is_permanent_view(spark: SparkSession, parts: Sequence[str]) -> bool:
    """Return True if a name is that of a view in Spark's session catalog."""
    entry = session_entry(spark, whole_name(spark, parts))
    return entry is not None and str(entry.tableType().name()) == "VIEW"


def is_in_session_catalog(name: Sequence[str]) -> bool:
    """Return True if a whole name is one of Spark's session catalog."""
    return len(name) == 3 and name[0].lower() == SESSION_CATALOG


def session_entry(spark: SparkSession, name: Sequence[str]) -> Any:
    """Return the `CatalogTable` of a whole name in Spark's session catalog; None if there is none."""
    if not is_in_session_catalog(name):
        return None
    return find_entry(jvm_of(spark), session_catalog(spark), name[1], name[2])


def whole_name(spark: SparkSession, parts: Sequence[str]) -> tuple[str, ...]:
    """Return a name with the current catalog and schema where it lacks them."""
    if len(parts) > 2:
        return tuple(parts)
    manager = catalog_manager(spark)
    catalog = str(manager.currentCatalog().name())
    if len(parts) == 2:
        return (catalog, *parts)
    if catalog.lower() == SESSION_CATALOG:
        return (catalog, str(session_catalog(spark).getCurrentDatabase()), *parts)
    return (catalog, *map(str, manager.currentNamespace()), *parts)


def _is_connected(spark: SparkSession, name: Sequence[str]) -> bool:
    """Return True if a whole name is one of a connected catalog."""
    return len(name) == 3 and not is_in_session_catalog(name) and is_in_catalog(spark, ".".join(map(quoted, name)))


def _session_location(spark: SparkSession, name: Sequence[str]) -> str | None:
    """Return the location of a Delta table in Spark's session catalog; None for anything else."""
    entry = session_entry(spark, name)
    return entry_location(jvm_of(spark), entry) if entry is not None and is_delta_entry(entry) else None
