"""What the catalogs of Spark that have Delta tables have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

from pyspark_delta.errors import DeltaError, InvalidOperationError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.frames.catalyst.jvm import Jvm
from pyspark_delta.spark.frames.catalyst.proxies import JavaProxy, crossing
from pyspark_delta.spark.sql.classic.changes import apply_changes
from pyspark_delta.spark.sql.classic.creation import Creation, writable
from pyspark_delta.spark.sql.classic.relations import CONNECTOR, Relations
from pyspark_delta.spark.sql.classic.sessions import SessionReference
from pyspark_delta.spark.sql.classic.travel import LATEST, Travel, context_of, parts_of
from pyspark_delta.spark.sql.transactions import alteration_of, altered, staged

_CAPABILITIES = (
    "SUPPORT_TABLE_CONSTRAINT",
    "SUPPORT_COLUMN_DEFAULT_VALUE",
    "SUPPORTS_CREATE_TABLE_WITH_GENERATED_COLUMNS",
    "SUPPORTS_CREATE_TABLE_WITH_IDENTITY_COLUMNS",
)


class DeltaCatalogProxy(Creation, JavaProxy):
    """What the catalogs have in common. A subclass finds the snapshot of a name."""

    class Java:
        implements: ClassVar[tuple[str, ...]] = (Creation.INTERFACE, f"{CONNECTOR}.SupportsNamespaces")

    def __init__(self, session: SessionReference, name: str, relations: Relations) -> None:
        super().__init__(session.jvm)
        self._session = session
        self._name = name
        self._relations = relations

    # ------------------------------------------------------------------------------------------ called by the JVM
    def initialize(self, name: str, options: Any) -> None:
        return None

    def name(self) -> str:
        return self._name

    def defaultNamespace(self) -> Any:
        return self._jvm.array((), "java.lang.String")

    def capabilities(self) -> Any:
        return capabilities(self._jvm)

    def tableStateOptionKeys(self) -> Any:
        return self._jvm.once("empty set", lambda: self._jvm.root.java.util.Collections.emptySet())

    def changelogStateOptionKeys(self) -> Any:
        return self.tableStateOptionKeys()

    def useNullableQuerySchema(self) -> bool:
        return True

    @crossing
    def loadTable(self, identifier: Any, context: Any = None, options: Any = None) -> Any:
        """Return a table; None, which Spark takes for a table that does not exist."""
        travel, writes = context_of(context)
        return self._load(parts_of(identifier), travel, writes=writes)

    @crossing
    def tableExists(self, identifier: Any) -> bool:
        return self._exists(parts_of(identifier))

    @crossing
    def alterTable(self, identifier: Any, changes: Any) -> Any:
        """Change a table. Null as the answer tells Spark to load it if it needs it."""
        spark, parts = self._session.spark, parts_of(identifier)
        apply_changes(alteration_of(spark, lambda: self.open(parts), (self._name, *parts)), self._jvm, list(changes))

    def invalidateTable(self, identifier: Any) -> None:
        return None

    def alterNamespace(self, namespace: Any, changes: Any) -> None:
        self._refuse("ALTER SCHEMA")

    # ------------------------------------------------------------------------------------------- for subclasses
    @crossing
    def _refuse(self, statement: str) -> NoReturn:
        raise unsupported(statement, self._name)

    @abstractmethod
    def _load(self, parts: Sequence[str], travel: Travel, *, writes: bool) -> Any:
        """Return a table for Spark; None if the name has none."""

    @abstractmethod
    def open(self, parts: Sequence[str], travel: Travel = LATEST) -> Snapshot:
        """Return the snapshot of a name. Raises CatalogNameNotFoundError, TableNotFoundError."""

    @abstractmethod
    def _exists(self, parts: Sequence[str]) -> bool:
        """Return True if the name has a table."""

    def _table(self, snapshot: Snapshot, name: Sequence[str], *, is_latest: bool, writes: bool) -> Any:
        changed = altered(self._session.spark, snapshot) if is_latest else None
        if changed is not None:
            return self._relations.of_definition(changed, name)
        if writes:
            return writable(self._session, snapshot, name)
        own = staged(self._session.spark, snapshot.location) if is_latest else None
        if own is not None:
            return self._relations.of_transaction(own, name)
        return self._relations.table(snapshot, name, is_latest=is_latest)


def capabilities(jvm: Jvm) -> Any:
    """Return what CREATE TABLE may declare, as a set of Spark's `TableCatalogCapability`."""
    kind, found = jvm.type(f"{CONNECTOR}.TableCatalogCapability"), jvm.root.java.util.HashSet()
    known = {str(one.name()) for one in kind.values()}
    for name in known.intersection(_CAPABILITIES):
        found.add(kind.valueOf(name))
    return found


def unsupported(statement: str, catalog: str) -> DeltaError:
    """Return the error for a statement that a catalog does not support."""
    return InvalidOperationError(
        f"The catalog '{catalog}' does not support {statement}. Nothing was changed.",
        error_class="DELTA_OPERATION_NOT_ALLOWED",
        sqlstate="0AKDC",
        operation=statement,
    )
