"""The catalog `delta`, whose tables are paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark_delta.ddl.create import CreateMode
from pyspark_delta.ddl.dropping import no_name_to_drop
from pyspark_delta.errors import DeltaError, InvalidOperationError, TableNotFoundError
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.frames.catalyst.proxies import crossing
from pyspark_delta.spark.frames.tables import open_snapshot, read_options
from pyspark_delta.spark.hadoop.default_system import on_default_system
from pyspark_delta.spark.sql.classic.catalogs import DeltaCatalogProxy
from pyspark_delta.spark.sql.classic.creation import Destination
from pyspark_delta.spark.sql.classic.definitions import Declared
from pyspark_delta.spark.sql.classic.relations import CONNECTOR, Description, Relations
from pyspark_delta.spark.sql.classic.sessions import SessionReference
from pyspark_delta.spark.sql.classic.travel import LATEST, Travel, parts_of
from pyspark_delta.storage import normalize_location
from pyspark_delta.storage.paths import is_absolute

PATH_CATALOG = "delta"
RENAMED = "pyspark_delta path"
"""The part between `delta` and a path in names that were written without it (`path_names`); it is not shown."""
STATEMENTS = "pyspark_delta statement"
"""The part between `delta` and the number of a statement (`table_call`)."""
PROBE = "/pyspark-delta-probe"
"""A path under which the catalog has a table with one row, so that `enable` can try whether SQL reaches it."""


class PathCatalog(DeltaCatalogProxy):
    """The catalog `delta`, whose tables are paths, such as ``delta.`/path/to/table@v1` ``.

    A name that is no absolute path is a table of the schema `delta` in Spark's session catalog, if there is one, and a
    relative path otherwise.
    """

    def __init__(self, session: SessionReference, relations: Relations, statement: Callable[[str], Any] | None) -> None:
        super().__init__(session, PATH_CATALOG, relations)
        self._statement = statement  # carries out a statement by its number, on Spark 3.5

    # ------------------------------------------------------------------------------------------ called by the JVM
    def listTables(self, namespace: Any) -> Any:
        return self._jvm.array((), f"{CONNECTOR}.Identifier")

    def listTableSummaries(self, namespace: Any) -> Any:
        return self._jvm.array((), f"{CONNECTOR}.TableSummary")

    def listNamespaces(self, namespace: Any = None) -> Any:
        return self._jvm.array((), "java.lang.String[]")

    def namespaceExists(self, namespace: Any) -> bool:
        return len(namespace) == 0

    def loadNamespaceMetadata(self, namespace: Any) -> Any:
        return self._jvm.root.java.util.Collections.emptyMap()

    def createNamespace(self, namespace: Any, metadata: Any) -> None:
        self._refuse("CREATE SCHEMA")

    def dropNamespace(self, namespace: Any, cascade: bool) -> bool:
        self._refuse("DROP SCHEMA")

    def renameTable(self, before: Any, after: Any) -> None:
        self._refuse("ALTER TABLE ... RENAME TO")

    @crossing
    def dropTable(self, identifier: Any) -> bool:
        """Refuse to drop a table that exists; False tells Spark that there is none."""
        parts = parts_of(identifier)
        if not self._exists(parts):
            return False
        raise no_name_to_drop(column_path_text((PATH_CATALOG, path_in(parts) or parts[-1])))

    def purgeTable(self, identifier: Any) -> bool:
        return self.dropTable(identifier)

    # -------------------------------------------------------------------------------------------------- details
    def _load(self, parts: Sequence[str], travel: Travel, *, writes: bool) -> Any:
        if parts[0] == STATEMENTS and self._statement is not None:
            return self._statement(parts[-1])
        path = path_in(parts)
        if path is None:
            return None
        if path == PROBE:
            frame = self._session.spark.range(1)
            return self._relations.of_frame(frame, Description(name=(PATH_CATALOG, path), schema=frame.schema), PROBE)
        if not is_absolute(path):
            found = self._in_schema(path, travel)
            if found is not None:
                return found
        options = travel.apply(read_options(self._session.spark, on_default_system(self._session.spark, path)))
        is_latest = options.version is None and options.timestamp_ms is None
        if writes and not is_latest:
            raise InvalidOperationError(
                f"The path '{path}' names an old version of a table, but a write goes to the latest one. Nothing was "
                "written. Remove the part of the path that begins with '@'.",
                error_class="DELTA_CANNOT_WRITE_INTO_VIEW",
            )
        shown = parts[-1:] if parts[0] == RENAMED else parts
        return self._table(open_snapshot(options), (PATH_CATALOG, *shown), is_latest=is_latest, writes=writes)

    def open(self, parts: Sequence[str], travel: Travel = LATEST) -> Snapshot:
        path = path_in(parts)
        if path is None:
            raise _not_a_path(parts)
        return open_snapshot(
            travel.apply(read_options(self._session.spark, on_default_system(self._session.spark, path)))
        )

    def _destination(self, parts: Sequence[str], made: Declared, mode: CreateMode) -> Destination:
        path = path_in(parts)
        if path is None:
            raise _not_a_path(parts)
        spark = self._session.spark
        location = normalize_location(on_default_system(spark, path))
        if made.location is not None and normalize_location(on_default_system(spark, made.location)) != location:
            raise InvalidOperationError(
                f"The name of the table is the path '{path}', but LOCATION is '{made.location}'. Leave LOCATION out.",
                error_class="DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
            )
        return Destination(location)

    def _exists(self, parts: Sequence[str]) -> bool:
        path = path_in(parts)
        if path is None:
            return False
        try:
            open_snapshot(read_options(self._session.spark, on_default_system(self._session.spark, path)))
        except TableNotFoundError:
            return False
        return True

    def _in_schema(self, name: str, travel: Travel) -> Any:
        """Return a table of the schema `delta` of the session catalog; None if it does not exist."""
        jvm, manager = self._jvm, self._session.state.catalogManager()
        catalog = manager.v2SessionCatalog()
        schema = jvm.array((PATH_CATALOG,), "java.lang.String")
        identifier = jvm.type(f"{CONNECTOR}.Identifier").of(schema, name)
        if not catalog.tableExists(identifier):
            return None
        if travel.is_latest:
            return catalog.loadTable(identifier)
        if travel.version is not None:
            return catalog.loadTable(identifier, travel.version)
        return catalog.loadTable(identifier, jvm.root.java.lang.Long((travel.timestamp_ms or 0) * 1000))


def path_in(parts: Sequence[str]) -> str | None:
    """Return the path that the parts of a name in the catalog `delta` name; None if they name none.

    A path is one part, or two if the first is `path`.
    """
    if len(parts) == 1 or (len(parts) == 2 and parts[0].casefold() in ("path", RENAMED)):
        return parts[-1]
    return None


def _not_a_path(parts: Sequence[str]) -> DeltaError:
    name = ".".join((PATH_CATALOG, *parts))
    return InvalidOperationError(
        f"A table of the catalog 'delta' is a path, as in delta.`/path/to/table`, found '{name}'."
    )
