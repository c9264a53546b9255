"""From a snapshot to a table that Spark's analyzer resolves to our plan.

For a table with a provider, Spark looks into the session's cache of relations, by catalog, database and name, before it
looks for the data source. So the analyzed plan of the snapshot is put there under a handle, and the analyzer gets a
`V1Table` with this handle as its name. The plan is that of `spark.table`.
"""

from __future__ import annotations

import itertools
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.sessions import session_time_zone
from pyspark_delta.spark.frames.catalyst.jvm import Jvm
from pyspark_delta.spark.frames.read_marks import mark_read
from pyspark_delta.spark.frames.reading import read_snapshot
from pyspark_delta.spark.frames.schemas import empty_frame, to_spark
from pyspark_delta.spark.sql.classic.sessions import SessionReference
from pyspark_delta.storage.paths import to_hadoop

CATALYST = "org.apache.spark.sql.catalyst"
CONNECTOR = "org.apache.spark.sql.connector.catalog"
CACHE_SIZE = "spark.sql.filesourceTableRelationCacheSize"
_HANDLES = "pyspark_delta"  # the catalog and the database of the handles
_KEPT = 16  # tables that are kept even if no query uses them
_UNUSED_SECONDS = 60.0  # longer than any analysis takes between looking a table up and resolving it
_numbers = itertools.count(1)


@dataclass
class _Entry:
    """A table, the key of its plan in Spark's cache of relations, and the monotonic time of its last use."""

    table: Any
    key: Any
    used: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, kw_only=True)
class Description:
    """What DESCRIBE and SHOW say about a table. `name` are the parts of its name; times are ms since the epoch."""

    name: tuple[str, ...]
    schema: SparkStruct
    location: str | None = None
    partition_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    comment: str | None = None
    created_ms: int = 0

    @classmethod
    def of(cls, snapshot: Snapshot, name: Sequence[str]) -> Description:
        """Return the description of a snapshot under a name."""
        metadata = snapshot.metadata
        return cls(
            name=tuple(name),
            schema=to_spark(snapshot.schema),
            location=snapshot.location,
            partition_columns=tuple(metadata.partition_columns),
            properties=snapshot.properties,
            comment=metadata.description,
            created_ms=metadata.created_time or 0,
        )


class Relations:
    """The tables of one session. A table is made once for each version, and made again if Spark has dropped its plan.

    This object refers to no plan: a plan refers to the session, and would keep it alive.
    """

    def __init__(self, session: SessionReference) -> None:
        self._session = session
        self._lock = Lock()
        self._entries: OrderedDict[Any, _Entry] = OrderedDict()  # the least recently used first
        self._cached: dict[tuple[str, str, str], Any] = {}  # the versions of tables of Spark's catalog, by name

    def table(self, snapshot: Snapshot, name: Sequence[str], *, is_latest: bool) -> Any:
        """Return the `V1Table` of a snapshot, which queries show under the parts of a name.

        `is_latest` is True for a read without time travel; a write whose source it is then detects conflicts with it.
        """
        spark, catalog = self._session.spark, self._session.catalog
        key = (
            snapshot.location,
            snapshot.version,
            snapshot.metadata.id,
            snapshot.catalog_table,
            tuple(sorted(snapshot.storage_options.items())),
            session_time_zone(spark),
            tuple(name),
            is_latest,
        )
        entry, dropped = self._use(key)
        for one in dropped:
            catalog.invalidateCachedTable(one.key)
        if entry is not None and catalog.getCachedTable(entry.key) is not None:
            return entry.table
        frame = read_snapshot(spark, snapshot)
        if is_latest:
            mark_read(frame, snapshot, None)
        return self.of_frame(frame, Description.of(snapshot, name), key)

    def of_transaction(self, snapshot: Snapshot, name: Sequence[str]) -> Any:
        """Return the table that an open transaction would leave, under the parts of a name."""
        spark = self._session.spark
        frame = mark_read(read_snapshot(spark, snapshot), snapshot.as_committed, None)
        return self.of_frame(frame, Description.of(snapshot, name), ("transaction", next(_numbers)))

    def of_definition(self, snapshot: Snapshot, name: Sequence[str]) -> Any:
        """Return a table without rows, with the definition of a snapshot that is in no commit."""
        frame = empty_frame(self._session.spark, to_spark(snapshot.schema))
        return self.of_frame(frame, Description.of(snapshot, name), ("definition", next(_numbers)))

    def of_frame(self, frame: DataFrame, description: Description, key: Any) -> Any:
        """Put the plan of a frame into Spark's cache, and return the table for it."""
        jvm = self._session.jvm
        handle = _handle_of(jvm, next(_numbers), description.name)
        table = jvm.type(f"{CONNECTOR}.V1Table")(catalog_table(jvm, description, table_identifier(jvm, *handle)))
        cached = jvm.type(f"{CATALYST}.QualifiedTableName")(*handle)
        plan: Any = frame._jdf.queryExecution().analyzed()
        self._session.catalog.cacheTable(cached, plan)
        with self._lock:
            self._entries[key] = _Entry(table, cached)
        return table

    def cache(self, snapshot: Snapshot, name: tuple[str, str, str]) -> bool:
        """Put the plan of a latest snapshot into Spark's cache under the name of a table of Spark's own catalog.

        Return False if it is there already.
        """
        spark, jvm, catalog = self._session.spark, self._session.jvm, self._session.catalog
        key = jvm.type(f"{CATALYST}.QualifiedTableName")(*name)
        version = (snapshot.location, snapshot.version, snapshot.metadata.id, session_time_zone(spark))
        with self._lock:
            is_same = self._cached.get(name) == version
        if is_same and catalog.getCachedTable(key) is not None:
            return False
        plan: Any = mark_read(read_snapshot(spark, snapshot), snapshot, None)._jdf
        catalog.cacheTable(key, plan.queryExecution().analyzed())
        with self._lock:
            self._cached[name] = version
        return True

    def clear(self) -> None:
        """Forget all tables, and remove their plans from Spark's cache."""
        with self._lock:
            entries, names = list(self._entries.values()), list(self._cached)
            self._entries.clear()
            self._cached.clear()
        catalog = self._session.catalog
        for entry in entries:
            catalog.invalidateCachedTable(entry.key)
        for name in names:
            catalog.invalidateCachedTable(self._session.jvm.type(f"{CATALYST}.QualifiedTableName")(*name))

    def _use(self, key: Any) -> tuple[_Entry | None, list[_Entry]]:
        """Return the entry of a key, and the entries that no query can be using any more, which are removed."""
        now, dropped = time.monotonic(), []
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                entry.used = now
                self._entries.move_to_end(key)
            for old in list(self._entries)[: max(0, len(self._entries) - _KEPT)]:
                if now - self._entries[old].used < _UNUSED_SECONDS:
                    break
                dropped.append(self._entries.pop(old))
        return entry, dropped


def _handle_of(jvm: Jvm, number: int, name: Sequence[str]) -> tuple[str, str, str]:
    """Return the catalog, the database and the name of a new handle.

    The last parts of the table's name qualify columns. Spark that keeps no name beside a table's identifier (before
    4.2) takes the database and the name of the handle for them. Only the catalog of such a handle is unique.
    """
    if len(name) < 2 or jvm.has_method(f"{CATALYST}.catalog.CatalogTable", "multipartIdentifier"):
        return _HANDLES, _HANDLES, f"t{number}"
    return f"{_HANDLES}{number}", name[-2], name[-1]


def table_identifier(jvm: Jvm, catalog: str, database: str, name: str) -> Any:
    """Return a name as Spark's `TableIdentifier`."""
    some = jvm.root.scala.Option.apply
    in_handles = jvm.once("catalog of handles", lambda: some(_HANDLES))
    where = (in_handles if part == _HANDLES else some(part) for part in (database, catalog))
    return jvm.type(f"{CATALYST}.TableIdentifier")(name, *where)


def catalog_table(
    jvm: Jvm, description: Description, identifier: Any, *, is_external: bool = True, before: Any = None
) -> Any:
    """Return Spark's `CatalogTable` of a table. DESCRIBE and SHOW take what they show from it.

    Spark deletes the files of a table that is not external when the table is dropped. The owner, the times and the
    version of Spark are those of `before`, the entry of the table that exists.
    """
    some, none, kind = jvm.root.scala.Option.apply, jvm.none, f"{CATALYST}.catalog"
    location = none
    if description.location is not None:
        location = some(jvm.type(f"{kind}.CatalogUtils").stringToURI(to_hadoop(description.location)))
    storage = jvm.make(f"{kind}.CatalogStorageFormat", location, none, none, none, False, jvm.map({}), none)
    collation = (none,) if jvm.has_method(f"{kind}.CatalogTable", "collation") else ()
    return jvm.make(
        f"{kind}.CatalogTable",
        identifier,
        getattr(jvm.module(f"{kind}.CatalogTableType"), "EXTERNAL" if is_external else "MANAGED")(),
        storage,
        jvm.data_type(description.schema.json()),
        some("delta"),
        jvm.seq(list(description.partition_columns)),
        none,  # buckets
        "" if before is None else before.owner(),
        description.created_ms if before is None else before.createTime(),
        -1 if before is None else before.lastAccessTime(),
        "" if before is None else before.createVersion(),
        jvm.map(dict(description.properties)),
        none,  # statistics
        none,  # text of a view
        none if description.comment is None else some(description.comment),
        *collation,
        jvm.nil,  # unsupported features
        False,  # partitions are not in the catalog
        True,  # the schema preserves case
        jvm.map({}),
        none,  # original text of a view
        some(jvm.seq(list(description.name))) if description.name else none,
    )
